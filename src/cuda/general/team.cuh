// Threads that work on one row together, a warp or a whole block, and what they find in common: in
// float64, every thread with the same bits.
#pragma once

#include <cstdint>

#include "core/numerics.h"
#include "cuda/prim/reduce.cuh"

namespace softmax {

constexpr int kMostTeamWarps = 32;

// Shared memory of a block that is a team.
struct TeamScratch {
  double hi[kMostTeamWarps];
  double lo[kMostTeamWarps];
};

class Team {
 public:
  // A warp, by all of its lanes.
  static __device__ __forceinline__ Team of_warp() {
    const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
    return Team(thread % kWarpThreads, kWarpThreads, nullptr);
  }
  // The block, by all of its threads, whole warps.
  static __device__ __forceinline__ Team of_block(TeamScratch *scratch) {
    return Team(static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x),
                static_cast<int>(blockDim.x * blockDim.y), scratch);
  }

  __device__ __forceinline__ int thread() const { return thread_; }
  __device__ __forceinline__ int threads() const { return threads_; }

  // The largest, or a NaN.
  __device__ __noinline__ double max(double value) const {
#pragma unroll 1
    for (int step = kWarpThreads / 2; step > 0; step /= 2) {
      value = max_or_nan(value, __shfl_xor_sync(kFullWarp, value, step));
    }
    if (scratch_ == nullptr) return value;
    if (is_first_lane()) scratch_->hi[warp()] = value;
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < warps(); ++i) value = max_or_nan(value, scratch_->hi[i]);
    __syncthreads();
    return value;
  }
  __device__ __forceinline__ double min(double value) const { return -max(-value); }
  __device__ __forceinline__ bool any(bool value) const { return max(value ? 1.0 : 0.0) != 0.0; }

  __device__ __noinline__ CompensatedSum<double> sum(CompensatedSum<double> value) const {
    value = lanes_sum<kWarpThreads>(value);
    if (scratch_ == nullptr) return value;
    if (is_first_lane()) {
      scratch_->hi[warp()] = value.hi;
      scratch_->lo[warp()] = value.lo;
    }
    __syncthreads();
    CompensatedSum<double> total;
#pragma unroll 1
    for (int i = 0; i < warps(); ++i) {
      total.add(CompensatedSum<double>::of({scratch_->hi[i], scratch_->lo[i]}));
    }
    __syncthreads();
    return total;
  }

 private:
  __device__ __forceinline__ Team(int thread, int threads, TeamScratch *scratch)
      : thread_(thread), threads_(threads), scratch_(scratch) {}

  __device__ __forceinline__ bool is_first_lane() const { return thread_ % kWarpThreads == 0; }
  __device__ __forceinline__ int warp() const { return thread_ / kWarpThreads; }
  __device__ __forceinline__ int warps() const { return threads_ / kWarpThreads; }

  int thread_;
  int threads_;
  TeamScratch *scratch_;  // null: a warp
};

}  // namespace softmax
