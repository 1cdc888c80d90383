// The threads that hold a row of the general call in registers, part of a warp, a block or a
// cluster's blocks, and what they find in common, every one of them with the same bits.
#pragma once

#include <cooperative_groups.h>

#include "cuda/general/args.h"
#include "cuda/prim/bulk.cuh"
#include "cuda/prim/part_merge.cuh"

namespace softmax {

constexpr int kRowsMostThreads = 512;

// What the threads of a row have found together.
struct RowSums {
  double others;  // in units, against the terms' reference
  float ones;     // elements that equal the maximum, where they are counted apart
};

// Which columns a thread has: kPacks times kCols that lie together, of its block's part of the row.
template <int kCols, int kPacks>
class HeldCols {
 public:
  __device__ __forceinline__ HeldCols(const GeneralArgs &args, int rank)
      : threads_(args.row_threads),
        chunk_(args.row_threads * kCols * kPacks),
        first_(std::int64_t{rank} * chunk_) {}

  // Of the row, where the block's part begins. What follows counts from there.
  __device__ __forceinline__ std::int64_t first() const { return first_; }
  __device__ __forceinline__ int col(int pack) const {
    return (pack * threads_ + static_cast<int>(threadIdx.x)) * kCols;
  }
  // Where the part ends, or the row's column `end` if that comes before.
  __device__ __forceinline__ int within(std::int64_t end) const {
    const std::int64_t left = end - first_;
    return left < 0 ? 0 : left < chunk_ ? static_cast<int>(left) : chunk_;
  }
  __device__ __forceinline__ bool is_whole(int end) const { return end == chunk_; }

 private:
  int threads_;
  int chunk_;
  std::int64_t first_;
};

// Shared memory for one reduction of each kind.
struct RowsScratch {
  static constexpr int kWarps = kRowsMostThreads / kWarpThreads;
  float max[kWarps];
  float block_max;
  double others[2][kWarps];
  float ones[2][kWarps];
  double block_others[2];
  float block_ones[2];
};

// Over the threads of a row: lanes of a warp, a block, or a cluster.
class RowTeam {
 public:
  __device__ __forceinline__ RowTeam(const GeneralArgs &args, RowsScratch &scratch)
      : scratch_(&scratch),
        lanes_(args.row_threads < kWarpThreads ? args.row_threads : kWarpThreads),
        warps_(args.row_threads <= kWarpThreads ? 1 : args.row_threads / kWarpThreads),
        blocks_(args.row_blocks) {}

  __device__ __forceinline__ bool is_block() const { return warps_ > 1 || blocks_ > 1; }

  __device__ __forceinline__ float max(float value) const {
    value = lanes_max_or_nan(value, lanes_);
    if (!is_block()) return value;
    if (lane() == 0) scratch_->max[warp()] = value;
    __syncthreads();
    value = lanes_max_or_nan(lane() < warps_ ? scratch_->max[lane()] : -Limits<float>::infinity(),
                             kWarpThreads);
    if (blocks_ == 1) return value;
#if SOFTMAX_BULK_COPY
    const auto cluster = cooperative_groups::this_cluster();
    if (threadIdx.x == 0) scratch_->block_max = value;
    cluster.sync();
    const float other = lane() < blocks_ ? *cluster.map_shared_rank(&scratch_->block_max, lane())
                                         : -Limits<float>::infinity();
    value = lanes_max_or_nan(other, kWarpThreads);
#endif
    return value;
  }

  // `which` of two that a row may have.
  __device__ __forceinline__ RowSums sum(RowSums own, int which) const {
    return sum_of<true>(own, which);
  }
  __device__ __forceinline__ double sum(double own, int which) const {
    return sum_of<false>({own, 0.0f}, which).others;
  }

  // For the reductions that follow. Rows one after another take turns between two: who is a row
  // ahead writes to the other one, and nobody is two ahead.
  __device__ __forceinline__ void use(RowsScratch *scratch) { scratch_ = scratch; }

  // Before the end: the others may still read this block's shared memory.
  __device__ __forceinline__ void part() const {
#if SOFTMAX_BULK_COPY
    if (blocks_ > 1) cooperative_groups::this_cluster().sync();
#endif
  }
  // The same in two halves: after the last sum, and at the end. Results that are stored between the
  // two are not waited for.
  __device__ __forceinline__ void leave() const {
#if SOFTMAX_BULK_COPY
    if (blocks_ > 1) cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_relaxed);
#endif
  }
  __device__ __forceinline__ void wait_for_others() const {
#if SOFTMAX_BULK_COPY
    if (blocks_ > 1) cuda::ptx::barrier_cluster_wait(cuda::ptx::sem_acquire);
#endif
  }

 private:
  static __device__ __forceinline__ int lane() {
    return static_cast<int>(threadIdx.x) % kWarpThreads;
  }
  static __device__ __forceinline__ int warp() {
    return static_cast<int>(threadIdx.x) / kWarpThreads;
  }
  template <bool kHasOnes>
  static __device__ __forceinline__ RowSums lanes_sums(RowSums sums, int lanes) {
#pragma unroll
    for (int step = kWarpThreads / 2; step > 0; step /= 2) {
      if (step < lanes) {
        sums.others += __shfl_xor_sync(kFullWarp, sums.others, step);
        if (kHasOnes) sums.ones += __shfl_xor_sync(kFullWarp, sums.ones, step);
      }
    }
    return sums;
  }

  template <bool kHasOnes>
  __device__ __forceinline__ RowSums sum_of(RowSums own, int which) const {
    own = lanes_sums<kHasOnes>(own, lanes_);
    if (!is_block()) return own;
    if (lane() == 0) {
      scratch_->others[which][warp()] = own.others;
      if (kHasOnes) scratch_->ones[which][warp()] = own.ones;
    }
    __syncthreads();
    own = {0.0, 0.0f};
    if (lane() < warps_) {
      own.others = scratch_->others[which][lane()];
      if (kHasOnes) own.ones = scratch_->ones[which][lane()];
    }
    own = lanes_sums<kHasOnes>(own, kWarpThreads);
    if (blocks_ == 1) return own;
#if SOFTMAX_BULK_COPY
    const auto cluster = cooperative_groups::this_cluster();
    if (threadIdx.x == 0) {
      scratch_->block_others[which] = own.others;
      if (kHasOnes) scratch_->block_ones[which] = own.ones;
    }
    cluster.sync();
    own = {0.0, 0.0f};
    if (lane() < blocks_) {
      own.others = *cluster.map_shared_rank(&scratch_->block_others[which], lane());
      if (kHasOnes) own.ones = *cluster.map_shared_rank(&scratch_->block_ones[which], lane());
    }
    own = lanes_sums<kHasOnes>(own, kWarpThreads);
#endif
    return own;
  }

  RowsScratch *scratch_;
  int lanes_;
  int warps_;
  int blocks_;
};

}  // namespace softmax
