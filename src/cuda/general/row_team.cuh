// The threads that hold a row of the general call in registers: some lanes of a warp, or warps of a
// block, or of a cluster's blocks; which columns they have, and how they tell each other of them.
//
// Lanes reduce by shuffles. Warps meet once a row, and blocks once more: each posts what it knows
// of its part, and then reads all parts for itself, in the same order.
#pragma once

#include <cooperative_groups.h>

#include "cuda/general/args.h"
#include "cuda/general/row_room.h"
#include "cuda/prim/bulk.cuh"
#include "cuda/prim/compile.cuh"
#include "cuda/prim/part_merge.cuh"

namespace softmax {

constexpr int kRowsMostThreads = 512;
constexpr int kRowsMostBlocks = 16;

// Which columns a thread has: kPacks times kCols that lie together, of its block's part of the row.
template <int kCols, int kPacks>
class HeldCols {
 public:
  __device__ __forceinline__ HeldCols(const GeneralArgs &args, int rank, int thread)
      : threads_(args.row_threads),
        chunk_(args.row_threads * kCols * kPacks),
        rank_(rank),
        thread_(thread) {}

  // Of the row, where the block's part begins. What follows counts from there.
  __device__ __forceinline__ std::int64_t first() const { return std::int64_t{rank_} * chunk_; }
  __device__ __forceinline__ int col(int pack) const { return (pack * threads_ + thread_) * kCols; }
  // Where the part ends, or the row's column `end` if that comes before.
  __device__ __forceinline__ int within(std::int64_t end) const {
    const std::int64_t left = end - first();
    return left < 0 ? 0 : left < chunk_ ? static_cast<int>(left) : chunk_;
  }
  __device__ __forceinline__ bool is_whole(int end) const { return end == chunk_; }
  // Whether lanes of a warp are all of one row, and where such a warp's packs end.
  __device__ __forceinline__ bool is_of_warps() const { return threads_ >= kWarpThreads; }
  __device__ __forceinline__ int warp_end(int pack) const {
    return col(pack) + (kWarpThreads - (thread_ & (kWarpThreads - 1))) * kCols;
  }

 private:
  int threads_;
  int chunk_;
  int rank_;
  int thread_;
};

// Columns of a thread's packs, one after another: all of them made before would be as many
// registers.
struct ColPlace {
  int at;
  int step;

  template <int kCols, int kPacks>
  __device__ __forceinline__ explicit ColPlace(const HeldCols<kCols, kPacks> &cols)
      : at(anew(cols.col(0))), step(anew(cols.col(1) - cols.col(0))) {}
  __device__ __forceinline__ void advance() { at += step; }
};

// What threads have found together.
struct RowSums {
  double others;  // in units, against the terms' reference
  float ones;     // elements that equal the maximum, where they are counted apart
};

// Over groups of `lanes` neighbouring lanes, a power of two that the whole warp agrees on.
template <bool kHasOnes>
__device__ __forceinline__ RowSums sum_of_lanes(RowSums sums, int lanes) {
#pragma unroll
  for (int step = kWarpThreads / 2; step > 0; step /= 2) {
    if (step < lanes) {
      sums.others += __shfl_xor_sync(kFullWarp, sums.others, step);
      if (kHasOnes) sums.ones += __shfl_xor_sync(kFullWarp, sums.ones, step);
    }
  }
  return sums;
}
__device__ __forceinline__ double sum_of_lanes(double sum, int lanes) {
  return sum_of_lanes<false>({sum, 0.0f}, lanes).others;
}

#if SOFTMAX_BULK_COPY
// Into the shared memory of a block of the cluster, whose barrier counts the bytes.
template <typename Part>
__device__ __forceinline__ void send_part(const Part &part, Part *to, std::uint64_t *barrier) {
  static_assert(sizeof(Part) % 16 == 0 && alignof(Part) == 16, "parts travel in 16 bytes");
  std::uint64_t words[sizeof(Part) / 8];
  memcpy(words, &part, sizeof part);
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(Part) / 8); i += 2) {
    const std::uint64_t pair[2] = {words[i], words[i + 1]};
    cuda::ptx::st_async(reinterpret_cast<std::uint64_t *>(to) + i, pair, barrier);
  }
}
#endif

// The warps of a block meet in its shared memory. The blocks of a cluster then meet in that of
// each: a block's first warp writes their common part into the shared memory of all, with the bytes
// that the receiver's barrier counts: no fence, which would wait for whatever else is being stored.
// A block that has all parts has nothing more to come, and may end.
//
// `room` is shared memory for the parts of a row and their barrier (row_room.h).
template <typename Part>
class RowExchange {
 public:
  __device__ __forceinline__ RowExchange(const GeneralArgs &args, unsigned char *room, int rank)
      : args_(args), room_(room), rank_(rank) {}

  // How often those of a row meet: 0 where it is a warp's.
  __device__ __forceinline__ int meetings() const {
    return args_.row_blocks > 1 ? 2 : args_.row_threads > kWarpThreads ? 1 : 0;
  }
  // Of a meeting, how many parts there are, and each of them: one a lane of any warp.
  __device__ __forceinline__ int count(int meeting) const {
    return meeting == 0 ? warps() : args_.row_blocks;
  }
  __device__ __forceinline__ const Part &part(int meeting, int i) const {
    return parts(meeting)[i];
  }

  // By all threads, before what takes long.
  __device__ __forceinline__ void open() const {
#if SOFTMAX_BULK_COPY
    if (args_.row_blocks == 1) return;
    if (threadIdx.x == 0) {
      cuda::ptx::mbarrier_init(barrier(), 1);
      cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
    }
    cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_relaxed);
#endif
  }
  // By all threads, every lane of a warp, or of the block, with the same part. Returns when all
  // parts of the meeting are there.
  __device__ __forceinline__ void meet(int meeting, const Part &own) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarpThreads;
    if (meeting == 0) {
      if (lane == 0) parts(0)[threadIdx.x / kWarpThreads] = own;
      __syncthreads();
      return;
    }
#if SOFTMAX_BULK_COPY
    namespace ptx = cuda::ptx;
    ptx::barrier_cluster_wait(ptx::sem_acquire);
    if (threadIdx.x == 0) {
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, barrier(),
                                     static_cast<std::uint32_t>(args_.row_blocks * sizeof(Part)));
    }
    if (static_cast<int>(threadIdx.x) < args_.row_blocks) {
      const auto cluster = cooperative_groups::this_cluster();
      send_part(own, cluster.map_shared_rank(&parts(1)[rank_], lane),
                cluster.map_shared_rank(barrier(), lane));
    }
    wait_for(barrier(), 0);
#endif
  }

 private:
  __device__ __forceinline__ int warps() const { return args_.row_threads / kWarpThreads; }
  __device__ __forceinline__ std::uint64_t *barrier() const {
    return reinterpret_cast<std::uint64_t *>(room_);
  }
  __device__ __forceinline__ Part *parts(int meeting) const {
    return reinterpret_cast<Part *>(room_ + kExchangeBarrierBytes) + (meeting == 0 ? 0 : warps());
  }

  const GeneralArgs &args_;
  unsigned char *room_;
  int rank_;
};

}  // namespace softmax
