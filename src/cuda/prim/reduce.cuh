// Reductions over the threads that share a row: shuffles in a warp, then one value a warp through
// shared memory. Every thread of the row gets the same bits.
//
// A row's threads are threadIdx.x = 0 .. blockDim.x - 1, a multiple of 32; the rows of a block are
// threadIdx.y. Each function must be reached by every thread of the block.
#pragma once

#include "core/numerics.h"

namespace softmax {

constexpr int kWarpThreads = 32;
constexpr int kMaxWarpsPerBlock = 8;  // 256 threads
constexpr unsigned kFullWarp = 0xffffffffu;

// Over groups of kLanes neighbouring lanes; every lane gets its group's result.
template <int kLanes, typename T>
__device__ __forceinline__ T lanes_max(T value) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) {
    value = fmax(value, __shfl_xor_sync(kFullWarp, value, step));
  }
  return value;
}

template <int kLanes, typename T>
__device__ __forceinline__ CompensatedSum<T> lanes_sum(CompensatedSum<T> sum) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) {
    CompensatedSum<T> other;
    other.hi = __shfl_xor_sync(kFullWarp, sum.hi, step);
    other.lo = __shfl_xor_sync(kFullWarp, sum.lo, step);
    sum.add(other);
  }
  return sum;
}

// One slot a warp of the block; the two reductions of a row have arrays of their own, so that one
// barrier each is enough, also around a loop over rows.
template <typename T>
struct RowScratch {
  T max[kMaxWarpsPerBlock];
  Split<T> sum[kMaxWarpsPerBlock];
};

// The reductions over a row's threads, for three_pass.cuh and the online kernels. After the barrier
// every warp reduces the warps' values again for itself: eight lanes read one each, and three
// shuffles are fewer instructions than eight reads by every thread.
template <typename T>
struct ShuffleReduction {
  RowScratch<T> &scratch;

  __device__ __forceinline__ T max(T value) const {
    value = lanes_max<kWarpThreads>(value);
    const int warps = blockDim.x / kWarpThreads;
    if (warps == 1) return value;  // the same for the whole block
    if (lane() == 0) scratch.max[slot()] = value;
    __syncthreads();
    const int other = lane() % kMaxWarpsPerBlock;
    return lanes_max<kMaxWarpsPerBlock>(other < warps ? scratch.max[first_slot() + other]
                                                      : -Limits<T>::infinity());
  }

  __device__ __forceinline__ CompensatedSum<T> sum(CompensatedSum<T> value) const {
    value = lanes_sum<kWarpThreads>(value);
    const int warps = blockDim.x / kWarpThreads;
    if (warps == 1) return value;
    if (lane() == 0) scratch.sum[slot()] = value.parts();
    __syncthreads();
    const int other = lane() % kMaxWarpsPerBlock;
    return lanes_sum<kMaxWarpsPerBlock>(
        other < warps ? CompensatedSum<T>::of(scratch.sum[first_slot() + other])
                      : CompensatedSum<T>());
  }

 private:
  static __device__ __forceinline__ int lane() { return threadIdx.x % kWarpThreads; }
  static __device__ __forceinline__ int first_slot() {
    return threadIdx.y * (blockDim.x / kWarpThreads);
  }
  static __device__ __forceinline__ int slot() { return first_slot() + threadIdx.x / kWarpThreads; }
};

}  // namespace softmax
