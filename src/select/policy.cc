// The policies of the ladder, the kernels that hold a row in registers, and the reference. See
// policy.h.
#include "select/policy.h"

#include <algorithm>
#include <cinttypes>

#include "core/dtype.h"
#include "core/held_rows.h"
#include "core/slabs.h"

namespace softmax {
namespace {

constexpr int kWarp = 32;
constexpr int kBlockThreads = 256;
constexpr int kVectorBytes = 16;

// The least power of two that is >= value, between 32 and 256: threads that share a row.
int threads_for(std::int64_t value) {
  int threads = kWarp;
  while (threads < kBlockThreads && threads < value) threads *= 2;
  return threads;
}

// Shared memory that one participant of a block reduction needs: a maximum and a compensated sum.
std::int64_t reduction_slot_bytes(const Problem &p) { return 3 * accumulator_size(p.x_dtype); }

// A grid of so few blocks that none waits for another's multiprocessor: there is nothing but
// latency then, which short code and a word a thread have least of. Beyond that, what counts is
// work.
constexpr int kFewRowsPerSm = 2;

}  // namespace

bool take_few_rows(const DeviceCaps &caps, const Problem &p, int lanes, std::int64_t runs,
                   Policy *policy) {
  if (p.rows > std::int64_t{kFewRowsPerSm} * caps.sm_count) return false;
  const std::int64_t threads = runs * std::max(kWarp, lanes * policy->packs);
  if (threads > kFewMostWords) return false;
  const int accumulator = accumulator_size(p.x_dtype);
  policy->few_lanes = lanes;
  policy->threads_per_row = static_cast<int>(threads);
  policy->rows_per_block = 1;
  policy->smem_bytes = few_fixed_bytes(accumulator) +
                       threads * few_slot_bytes(dtype_size(p.x_dtype), accumulator, p.is_log());
  return true;
}

bool naive_policy(const DeviceCaps &, const Problem &, Policy *policy, char *, std::size_t) {
  policy->threads_per_row = 1;
  policy->rows_per_block = 64;
  return true;
}

bool shared_policy(const DeviceCaps &, const Problem &p, Policy *policy, char *, std::size_t) {
  policy->threads_per_row = kBlockThreads;
  policy->rows_per_block = 1;
  policy->smem_bytes = kBlockThreads * reduction_slot_bytes(p);
  return true;
}

// A thread takes four elements of a short row before another warp is added: below that, the second
// stage of the reduction costs more than the warp brings.
bool shuffle_policy(const DeviceCaps &, const Problem &p, Policy *policy, char *, std::size_t) {
  policy->threads_per_row = threads_for((p.cols + 3) / 4);
  policy->rows_per_block = kBlockThreads / policy->threads_per_row;
  policy->smem_bytes = kBlockThreads / kWarp * reduction_slot_bytes(p);
  return true;
}

bool vector_policy(const DeviceCaps &, const Problem &p, Policy *policy, char *, std::size_t) {
  const int per_load = kVectorBytes / dtype_size(p.x_dtype);
  policy->threads_per_row = threads_for((p.cols + per_load - 1) / per_load);
  policy->rows_per_block = kBlockThreads / policy->threads_per_row;
  policy->vec_bytes = kVectorBytes;
  policy->smem_bytes = kBlockThreads / kWarp * reduction_slot_bytes(p);
  return true;
}

bool online_policy(const DeviceCaps &, const Problem &p, Policy *policy, char *, std::size_t) {
  policy->threads_per_row = kBlockThreads;
  policy->rows_per_block = 1;
  policy->vec_bytes = kVectorBytes;
  policy->smem_bytes = kBlockThreads / kWarp * reduction_slot_bytes(p);
  return true;
}

bool warp_online_policy(const DeviceCaps &, const Problem &, Policy *policy, char *, std::size_t) {
  policy->threads_per_row = kWarp;
  policy->rows_per_block = kBlockThreads / kWarp;
  policy->vec_bytes = kVectorBytes;
  return true;
}

bool warp_policy(const DeviceCaps &caps, const Problem &p, Policy *policy, char *why,
                 std::size_t cap) {
  constexpr std::int64_t kMostWords = kWarp * kWarpMostPacks;
  const int size = dtype_size(p.x_dtype);
  const std::int64_t row = ceil_div(p.cols, kHeldPackBytes / size);
  if (row > kMostWords) {
    return decline(why, cap, "a warp holds at most %d columns of %s",
                   static_cast<int>(kMostWords * kHeldPackBytes / size), dtype_name(p.x_dtype));
  }
  // Odd rows as TILE's, which takes them where they are many, if there is one.
  const bool is_as_tile = goes_by_units(p.cols, size) && caps.compute_capability >= 90;
  const RowShape shape = is_as_tile ? unit_shape(p.cols, size) : line_shape(row);
  policy->threads_per_row = shape.lanes;
  policy->rows_per_block = kWarpBlockThreads / shape.lanes * warp_rows_a_lane(shape.packs);
  policy->vec_bytes = kVectorBytes;
  policy->packs = shape.packs;
  take_few_rows(caps, p, shape.lanes, 1, policy);
  return true;
}

// As many warps as the row fills, not a power of two of them: at N = 5120 that would leave a third
// of the threads idle.
bool block_policy(const DeviceCaps &caps, const Problem &p, Policy *policy, char *why,
                  std::size_t cap) {
  const int size = dtype_size(p.x_dtype);
  const bool widened = dtype_size(p.y_dtype) > size;
  const int few_threads = block_most_threads_of_four(size, widened, goes_by_units(p.cols, size));
  const std::int64_t few_runs = runs_of(p.cols, size, 4);
  const int packs = few_runs * kWarp > few_threads ? block_most_packs(widened) : 4;
  const std::int64_t warps = runs_of(p.cols, size, packs);
  const int most_warps = block_most_threads(packs, widened) / kWarp;
  if (warps > most_warps) {
    return decline(why, cap, "a block holds at most %" PRId64 " columns from %s to %s",
                   run_bytes(packs) / size * most_warps, dtype_name(p.x_dtype),
                   dtype_name(p.y_dtype));
  }
  policy->threads_per_row = static_cast<int>(warps * kWarp);
  policy->rows_per_block = 1;
  policy->vec_bytes = kVectorBytes;
  policy->packs = packs;
  policy->smem_bytes = kWarp * part_bytes(accumulator_size(p.x_dtype));
  if (packs == kFewBlockPacks) take_few_rows(caps, p, kWarp, static_cast<int>(warps), policy);
  return true;
}

bool reference_policy(const DeviceCaps &, const Problem &, Policy *policy, char *, std::size_t) {
  policy->threads_per_row = 1;
  policy->rows_per_block = kWarp;
  return true;
}

// Of the plain call, whose rows are dense.
bool column_policy(const DeviceCaps &, const Problem &, Policy *, char *why, std::size_t cap) {
  return decline(why, cap,
                 "takes rows that lie side by side: a softmax axis that is not innermost");
}

}  // namespace softmax
