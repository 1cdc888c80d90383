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
  float max[2][kWarps];
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
        blocks_(args.row_blocks) {
    group_ = 1 << (32 - __clz(warps_ - 1));
  }

  __device__ __forceinline__ bool is_block() const { return warps_ > 1 || blocks_ > 1; }

  __device__ __forceinline__ float max(float value) const {
    value = lanes_max_or_nan(value, lanes_);
    if (!is_block()) return value;
    value = block_max(value, 0);
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

  // Of the row's threads in this block alone. `which` of two.
  __device__ __forceinline__ float part_max(float value, int which) const {
    value = lanes_ == kWarpThreads ? warp_max_or_nan(value) : lanes_max_or_nan(value, lanes_);
    return is_block() ? block_max(value, which) : value;
  }
  __device__ __forceinline__ RowSums part_sum(RowSums own, int which) const {
    own = lanes_sums<true>(own, lanes_);
    return is_block() ? block_sum<true>(own, which) : own;
  }
  __device__ __forceinline__ double part_sum(double own, int which) const {
    RowSums sums = lanes_sums<false>({own, 0.0f}, lanes_);
    return is_block() ? block_sum<false>(sums, which).others : sums.others;
  }

  // Over the lanes of a warp, whatever they are of.
  __device__ __forceinline__ RowSums lanes_sum(RowSums own) const {
    return lanes_sums<true>(own, kWarpThreads);
  }
  __device__ __forceinline__ double lanes_sum(double own) const {
    return lanes_sums<false>({own, 0.0f}, kWarpThreads).others;
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
    if (lanes == kWarpThreads) {
#pragma unroll
      for (int step = kWarpThreads / 2; step > 0; step /= 2) {
        sums.others += __shfl_xor_sync(kFullWarp, sums.others, step);
        if (kHasOnes) sums.ones += __shfl_xor_sync(kFullWarp, sums.ones, step);
      }
      return sums;
    }
#pragma unroll
    for (int step = kWarpThreads / 2; step > 0; step /= 2) {
      if (step < lanes) {
        sums.others += __shfl_xor_sync(kFullWarp, sums.others, step);
        if (kHasOnes) sums.ones += __shfl_xor_sync(kFullWarp, sums.ones, step);
      }
    }
    return sums;
  }

  // From the warps' to the block's: every warp merges them for itself.
  __device__ __forceinline__ float block_max(float value, int which) const {
    if (lane() == 0) scratch_->max[which][warp()] = value;
    __syncthreads();
    const int other = lane() % group_;
    return lanes_max_or_nan(
        other < warps_ ? scratch_->max[which][other] : -Limits<float>::infinity(), group_);
  }
  template <bool kHasOnes>
  __device__ __forceinline__ RowSums block_sum(RowSums own, int which) const {
    if (lane() == 0) {
      scratch_->others[which][warp()] = own.others;
      if (kHasOnes) scratch_->ones[which][warp()] = own.ones;
    }
    __syncthreads();
    own = {0.0, 0.0f};
    const int other = lane() % group_;
    if (other < warps_) {
      own.others = scratch_->others[which][other];
      if (kHasOnes) own.ones = scratch_->ones[which][other];
    }
    return lanes_sums<kHasOnes>(own, group_);
  }

  template <bool kHasOnes>
  __device__ __forceinline__ RowSums sum_of(RowSums own, int which) const {
    own = lanes_sums<kHasOnes>(own, lanes_);
    if (!is_block()) return own;
    own = block_sum<kHasOnes>(own, which);
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
  int group_;  // the least power of two that is no less
  int blocks_;
};

// What a block of a cluster tells the others of its part of a row.
struct alignas(16) ClusterPart {
  double apart;  // sums in units, against the block's own reference
  double plain;
  float max;      // of the part
  float ones;     // how many of its elements equal that, apart from the sum `apart`
  float is_wide;  // 1: the row is none for the arithmetic of this kernel
  float low;      // what rounding has taken from `max`
};

// Shared memory of a block for the parts of two rows.
struct RowsMail {
  ClusterPart part[2][16];
  std::uint64_t barrier[2];
};

#if SOFTMAX_BULK_COPY

// Every block writes its part into the shared memory of all, each with the bytes that the
// receiver's barrier counts: no fence, which would wait for results that are still being stored. A
// block may be one row ahead of another, not two, because it waits for all parts of every row.
class ClusterMail {
 public:
  __device__ __forceinline__ ClusterMail(RowsMail &room, int blocks, int rank)
      : room_(room), blocks_(blocks), rank_(rank) {}

  // By all threads, before anything else.
  __device__ __forceinline__ void open() const {
    if (threadIdx.x == 0) {
      for (std::uint64_t &barrier : room_.barrier) cuda::ptx::mbarrier_init(&barrier, 1);
      cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
    }
    cooperative_groups::this_cluster().sync();
  }
  // By all threads, with the same part: returns when the row's are all there. Rows are counted.
  __device__ __forceinline__ void exchange(const ClusterPart &part, unsigned row) const {
    namespace ptx = cuda::ptx;
    std::uint64_t *const barrier = &room_.barrier[row & 1];
    const int receiver = static_cast<int>(threadIdx.x);
    if (receiver < blocks_) {
      const auto cluster = cooperative_groups::this_cluster();
      auto *const to = reinterpret_cast<std::uint64_t *>(
          cluster.map_shared_rank(&room_.part[row & 1][rank_], receiver));
      std::uint64_t *const their_barrier = cluster.map_shared_rank(barrier, receiver);
      std::uint64_t words[sizeof part / 8];
      memcpy(words, &part, sizeof part);
#pragma unroll
      for (int i = 0; i < static_cast<int>(sizeof part / 8); i += 2) {
        const std::uint64_t pair[2] = {words[i], words[i + 1]};
        ptx::st_async(to + i, pair, their_barrier);
      }
    }
    if (threadIdx.x == 0) {
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, barrier,
                                     static_cast<std::uint32_t>(blocks_ * sizeof part));
    }
    wait_for(barrier, row >> 1 & 1);
  }
  // By lanes: each of a row's parts, or one that adds nothing.
  __device__ __forceinline__ ClusterPart of_lane(unsigned row) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarpThreads;
    ClusterPart part = {0.0, 0.0, -Limits<float>::infinity(), 0.0f, 0.0f, 0.0f};
    if (lane < blocks_) part = room_.part[row & 1][lane];
    return part;
  }

 private:
  RowsMail &room_;
  int blocks_;
  int rank_;
};

#endif  // SOFTMAX_BULK_COPY

}  // namespace softmax
