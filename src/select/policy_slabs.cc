// The policies of the kernels that stage rows in shared memory: TILE, CLUSTER, GRID.
//
// Slab size and threads are functions of N and the types: they decide the order of additions. How
// many blocks share a row does not, so that may depend on M.
#include <algorithm>

#include "core/dtype.h"
#include "core/slabs.h"
#include "select/policy.h"

namespace softmax {
namespace {

constexpr int kWarp = 32;
constexpr int kTileThreads = 256;
constexpr std::int64_t kReservedBytes = 1024;  // of shared memory, by the system, a block
constexpr std::int64_t kStaticBytes = 1024;    // at most, of the kernels' own
constexpr int kRegisters = 65536;              // a multiprocessor's

bool has_bulk_copies(const DeviceCaps &caps, char *why, std::size_t cap) {
  if (caps.compute_capability >= 90) return true;
  return decline(why, cap, "needs bulk copies: compute capability 9.0 or above, and this is %d.%d",
                 caps.compute_capability / 10, caps.compute_capability % 10);
}

std::int64_t smem_per_sm(const DeviceCaps &caps) {
  return std::max(caps.smem_per_sm_bytes, caps.smem_per_block_bytes + kReservedBytes);
}

// What one block may have where `blocks` share a multiprocessor.
std::int64_t smem_share(const DeviceCaps &caps, int blocks) {
  return std::min(caps.smem_per_block_bytes, smem_per_sm(caps) / blocks - kReservedBytes) -
         kStaticBytes;
}

int blocks_with(const DeviceCaps &caps, const Problem &p, int threads, std::int64_t smem_bytes) {
  const int registers = p.x_dtype == SOFTMAX_DTYPE_F64 ? 128 : 64;
  const std::int64_t by_smem = smem_per_sm(caps) / (smem_bytes + kReservedBytes + kStaticBytes);
  const std::int64_t by_threads = kRegisters / registers / threads;
  return static_cast<int>(std::max<std::int64_t>(1, std::min(by_smem, by_threads)));
}

int power_of_two_at_least(std::int64_t value, int least, int most) {
  int result = least;
  while (result < most && result < value) result *= 2;
  return result;
}

}  // namespace

bool tile_policy(const DeviceCaps &caps, const Problem &p, Policy *policy, char *why,
                 std::size_t cap) {
  if (!has_bulk_copies(caps, why, cap)) return false;
  const std::int64_t row_bytes = p.cols * dtype_size(p.x_dtype);
  constexpr std::int64_t kMostRowBytes = kSegmentBytes;
  if (row_bytes > kMostRowBytes) {
    return decline(why, cap, "a row of more than %d bytes is for cluster",
                   static_cast<int>(kMostRowBytes));
  }
  policy->threads_per_row = power_of_two_at_least(ceil_div(row_bytes, kHeldBytes), 1, kWarp);
  policy->rows_per_block = kTileThreads / policy->threads_per_row;
  policy->stages = 3;
  policy->slab_bytes = row_bytes * 8 > 16384 ? row_bytes * 8 : 16384;
  const std::int64_t rows = tile_rows(row_bytes, policy->slab_bytes, policy->rows_per_block);
  policy->smem_bytes = slab_smem_bytes(slot_bytes(rows * row_bytes), policy->stages, 0);
  while (policy->stages > 1 && policy->smem_bytes > smem_share(caps, 1)) {
    --policy->stages;
    policy->smem_bytes = slab_smem_bytes(slot_bytes(rows * row_bytes), policy->stages, 0);
  }
  policy->blocks_per_sm = blocks_with(caps, p, kTileThreads, policy->smem_bytes);
  return true;
}

bool cluster_policy(const DeviceCaps &caps, const Problem &p, Policy *policy, char *why,
                    std::size_t cap) {
  if (!has_bulk_copies(caps, why, cap)) return false;
  const int size = dtype_size(p.x_dtype);
  const std::int64_t row_bytes = p.cols * size;
  policy->rows_per_block = 1;
  if (row_bytes <= 32768) {
    policy->threads_per_row = power_of_two_at_least(row_bytes / 64, 64, 512);
    policy->slab_bytes = 32768;
  } else {
    policy->threads_per_row = 256;
    policy->slab_bytes = 16384;
  }
  const Slabs slabs = cut_row(p.cols, size, policy->slab_bytes);
  const std::int64_t slot = slot_bytes(std::int64_t{slabs.cols} * size);
  const std::int64_t parts =
      2 * slabs.count * part_bytes(p.x_dtype == SOFTMAX_DTYPE_F64 ? 8 : 4);
  policy->cluster = power_of_two_at_least(slabs.count / 4, 1, 16);
  policy->row_blocks = policy->cluster;
  const std::int64_t mine = ceil_div(slabs.count, policy->row_blocks);
  const int wanted = static_cast<int>(mine + std::max<std::int64_t>(2, mine / 2));
  const std::int64_t most = (smem_share(caps, 1) - slab_smem_bytes(slot, 0, parts) - 64) / slot;
  if (mine > most) {
    return decline(why, cap, "a cluster's shared memory is too small for the row");
  }
  policy->stages = static_cast<int>(std::min<std::int64_t>(wanted, most));
  policy->smem_bytes = slab_smem_bytes(slot, policy->stages, parts);
  policy->blocks_per_sm = blocks_with(caps, p, policy->threads_per_row, policy->smem_bytes);
  return true;
}

bool grid_policy(const DeviceCaps &caps, const Problem &p, Policy *policy, char *why,
                 std::size_t cap) {
  if (!has_bulk_copies(caps, why, cap)) return false;
  const int size = dtype_size(p.x_dtype);
  policy->rows_per_block = 1;
  policy->threads_per_row = 256;
  policy->slab_bytes = 16384;
  const Slabs slabs = cut_row(p.cols, size, policy->slab_bytes);
  const std::int64_t slot = slot_bytes(std::int64_t{slabs.cols} * size);
  policy->stages = 4;
  policy->smem_bytes = slab_smem_bytes(slot, policy->stages, 0);
  policy->blocks_per_sm = blocks_with(caps, p, policy->threads_per_row, policy->smem_bytes);
  policy->row_blocks = static_cast<int>(std::min<std::int64_t>(
      slabs.count, std::int64_t{caps.sm_count} * policy->blocks_per_sm));
  return true;
}

}  // namespace softmax
