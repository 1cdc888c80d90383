// Reductions of parts: the PartSum of a group of lanes or of a block, and the row's from the parts'.
// Every thread of the group gets the same bits, in an order that is a function of the group's size
// and the number of parts alone.
#pragma once

#include "cuda/prim/reduce.cuh"
#include "cuda/prim/staged_row.cuh"

namespace softmax {

constexpr int kMaxPartWarps = 16;  // 512 threads

// Over groups of `lanes` neighbouring lanes, a power of two that the whole warp agrees on.
template <typename T>
__device__ __forceinline__ T group_lanes_max(T value, int lanes) {
  for (int step = lanes / 2; step > 0; step /= 2) {
    value = fmax(value, __shfl_xor_sync(kFullWarp, value, step));
  }
  return value;
}

template <typename T>
__device__ __forceinline__ TermSum<T> group_lanes_sum(TermSum<T> sum, int lanes, bool is_log) {
  for (int step = lanes / 2; step > 0; step /= 2) {
    CompensatedSum<T> other;
    other.hi = __shfl_xor_sync(kFullWarp, sum.others.hi, step);
    other.lo = __shfl_xor_sync(kFullWarp, sum.others.lo, step);
    sum.others.add(other);
    if (is_log) sum.ones.hi += __shfl_xor_sync(kFullWarp, sum.ones.hi, step);
  }
  return sum;
}

// One slot a warp. The two reductions have arrays of their own, so that a barrier each is enough,
// also around a loop.
template <typename T>
struct PartScratch {
  T max[kMaxPartWarps];
  PartSum<T> sum[kMaxPartWarps];
};

template <typename T>
struct BlockReduction {
  PartScratch<T> &scratch;

  __device__ __forceinline__ T max(T value) const {
    value = lanes_max<kWarpThreads>(value);
    if (lane() == 0) scratch.max[warp()] = value;
    __syncthreads();
    const int other = lane() % kMaxPartWarps;
    return lanes_max<kMaxPartWarps>(other < warps() ? scratch.max[other]
                                                    : -Limits<T>::infinity());
  }

  // The sum's first half: until the caller's barrier.
  __device__ __forceinline__ void put(TermSum<T> sum, bool is_log) const {
    sum = group_lanes_sum(sum, kWarpThreads, is_log);
    if (lane() == 0) scratch.sum[warp()] = PartSum<T>::of(T(0), sum);
  }
  // The second half: after it.
  __device__ __forceinline__ TermSum<T> take(bool is_log) const {
    TermSum<T> sum;
    const int other = lane() % kMaxPartWarps;
    if (other < warps()) sum = terms_of(scratch.sum[other]);
    return group_lanes_sum(sum, kMaxPartWarps, is_log);
  }

  static __device__ __forceinline__ TermSum<T> terms_of(const PartSum<T> &part) {
    TermSum<T> sum;
    sum.ones.hi = part.ones;
    sum.others.hi = part.hi;
    sum.others.lo = part.lo;
    return sum;
  }

 private:
  static __device__ __forceinline__ int lane() { return threadIdx.x % kWarpThreads; }
  static __device__ __forceinline__ int warp() { return threadIdx.x / kWarpThreads; }
  static __device__ __forceinline__ int warps() { return blockDim.x / kWarpThreads; }
};

// The row of parts[0 .. count), read by `load`: every warp for itself where there are few of them,
// the whole block together where there are many. By every thread of the block.
template <typename T, typename Load>
__device__ __forceinline__ RowFactors<T> merge_parts(int count, Load load,
                                                     const BlockReduction<T> &reduction,
                                                     bool is_log, bool empty_is_zero) {
  constexpr int kFewParts = 2 * kWarpThreads;
  const bool few = count <= kFewParts;
  int lanes = kWarpThreads;
  while (lanes > 1 && lanes / 2 >= count) lanes /= 2;
  const int stride = few ? lanes : static_cast<int>(blockDim.x);
  const int first = static_cast<int>(threadIdx.x) % stride;

  T max = -Limits<T>::infinity();
  for (int i = first; i < count; i += stride) max = fmax(max, load(i).max);
  max = few ? group_lanes_max(max, lanes) : reduction.max(max);

  TermSum<T> total;
  for (int i = first; i < count; i += stride) {
    const PartSum<T> part = load(i);
    TermSum<T> sum = BlockReduction<T>::terms_of(part);
    // Equal ones are not subtracted: they may be infinite.
    if (part.max != max) sum.times_exp(raw_difference(part.max, max));
    total.ones.hi += sum.ones.hi;
    total.others.add(sum.others);
  }
  if (few) {
    total = group_lanes_sum(total, lanes, is_log);
  } else {
    reduction.put(total, is_log);
    __syncthreads();
    total = reduction.take(is_log);
  }
  return finish(max, total.combined(), empty_is_zero, is_log);
}

}  // namespace softmax
