// A run of a row on its way through a slot of its warp's own, where nobody else waits for it
// (compute capability 9.0 and above).
#pragma once

#include "cuda/prim/bulk.cuh"
#include "cuda/prim/reduce.cuh"

namespace softmax {

#if SOFTMAX_BULK_COPY

template <typename X>
__device__ __forceinline__ ByteRange run_range(const X *x, int cols) {
  return {address_of(x), address_of(x) + cols * sizeof(X)};
}

// By the whole warp, whose lanes have done with the turn's slot: begins to copy the run at x into
// it. Reductions put no lane's reads before lane 0's copy, so the warp meets first.
template <typename X>
__device__ __forceinline__ void ask_for_run(const Ring<X> &slots, Turn turn, const X *x, int cols) {
  __syncwarp();
  if (threadIdx.x % kWarpThreads == 0) slots.load(turn, run_range(x, cols));
}

// By the whole warp, after Ring::wait: where the run at x lies, with what no whole word brings of a
// run that reaches an end of the tensor.
template <typename X>
__device__ __forceinline__ X *run_in_slot(const Ring<X> &slots, Turn turn, const X *x, int cols,
                                          bool is_whole_words) {
  const ByteRange range = run_range(x, cols);
  if (!is_whole_words && slots.may_have_ends(range)) {
    slots.copy_ends(turn, range, static_cast<int>(threadIdx.x) % kWarpThreads);
    fence_slot_writes();  // before the next copy into the slot
    __syncwarp();
  }
  return reinterpret_cast<X *>(slots.place(turn, range));
}

#endif  // SOFTMAX_BULK_COPY

}  // namespace softmax
