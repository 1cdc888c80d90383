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

template <typename T>
__device__ __forceinline__ T warp_max(T value) {
#pragma unroll
  for (int step = kWarpThreads / 2; step > 0; step /= 2) {
    value = fmax(value, __shfl_xor_sync(kFullWarp, value, step));
  }
  return value;
}

template <typename T>
__device__ __forceinline__ CompensatedSum<T> warp_sum(CompensatedSum<T> sum) {
#pragma unroll
  for (int step = kWarpThreads / 2; step > 0; step /= 2) {
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

// The reductions over a row's threads, for three_pass.cuh and the online kernels.
template <typename T>
struct ShuffleReduction {
  RowScratch<T> &scratch;

  __device__ __forceinline__ T max(T value) const {
    value = warp_max(value);
    const int warps = blockDim.x / kWarpThreads;
    if (warps == 1) return value;  // the same for the whole block
    const int first = threadIdx.y * warps;
    if (threadIdx.x % kWarpThreads == 0) scratch.max[first + threadIdx.x / kWarpThreads] = value;
    __syncthreads();
    value = scratch.max[first];
    for (int i = 1; i < warps; ++i) value = fmax(value, scratch.max[first + i]);
    return value;
  }

  __device__ __forceinline__ CompensatedSum<T> sum(CompensatedSum<T> value) const {
    value = warp_sum(value);
    const int warps = blockDim.x / kWarpThreads;
    if (warps == 1) return value;
    const int first = threadIdx.y * warps;
    if (threadIdx.x % kWarpThreads == 0) {
      scratch.sum[first + threadIdx.x / kWarpThreads] = value.parts();
    }
    __syncthreads();
    value = CompensatedSum<T>::of(scratch.sum[first]);
    for (int i = 1; i < warps; ++i) value.add(CompensatedSum<T>::of(scratch.sum[first + i]));
    return value;
  }
};

}  // namespace softmax
