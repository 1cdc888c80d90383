// The policies of the ladder and the reference. See policy.h.
#include "select/policy.h"

#include "core/dtype.h"

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
std::int64_t reduction_slot_bytes(const Problem &p) {
  return p.x_dtype == SOFTMAX_DTYPE_F64 ? 24 : 12;
}

}  // namespace

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

bool reference_policy(const DeviceCaps &, const Problem &, Policy *policy, char *, std::size_t) {
  policy->threads_per_row = 1;
  policy->rows_per_block = kWarp;
  return true;
}

}  // namespace softmax
