// Algorithm 13, CLUSTER: a row in the registers of the blocks of a thread-block cluster: one read,
// one write (compute capability 9.0 and above).
//
// The warps write their runs' (max, sum) into the shared memory of every block, each with the bytes
// that the receiver's barrier counts: one exchange a row, and nobody waits for anybody otherwise.
#pragma once

#include <cooperative_groups.h>

#include "core/slabs.h"
#include "cuda/prim/overlap.cuh"
#include "cuda/prim/spread.cuh"

namespace softmax {

#if SOFTMAX_BULK_COPY

// parts[2][count]: a warp may be one row ahead of the others, but not two, because it waits for all
// parts of every row.
template <typename T>
class ClusterExchange {
 public:
  static constexpr bool kOfBlocks = false;

  __device__ __forceinline__ ClusterExchange(RowPart<T> *parts, std::uint64_t *barriers, int count,
                                             int blocks)
      : parts_(parts), barriers_(barriers), count_(count), blocks_(blocks) {
    if (blocks == 1) return;
    const auto cluster = cooperative_groups::this_cluster();
    const int lane = threadIdx.x % kWarpThreads;
    const int receiver = lane < blocks ? lane : 0;
    their_parts_ = cluster.map_shared_rank(parts, receiver);
    their_barriers_ = cluster.map_shared_rank(barriers, receiver);
  }

  // By thread 0, before a barrier of the whole cluster.
  __device__ __forceinline__ void initialise() const {
    for (int i = 0; i < 2; ++i) cuda::ptx::mbarrier_init(&barriers_[i], 1);
    cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
  }
  // Every thread, once, and then again before the first post: loads may lie between. A block alone
  // is not launched as a cluster.
  __device__ __forceinline__ void arrive() const {
    if (blocks_ > 1) cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_release);
  }
  __device__ __forceinline__ void meet() const {
    if (blocks_ > 1) cuda::ptx::barrier_cluster_wait(cuda::ptx::sem_acquire);
  }

  // By a whole warp, every lane with the same part.
  __device__ __forceinline__ void post(int run, const RowPart<T> &part) const {
    const int lane = threadIdx.x % kWarpThreads;
    if (lane >= blocks_) return;
    if (blocks_ == 1) {
      parts_[parity() * count_ + run] = part;
      return;
    }
    RowPart<T> *const to = their_parts_ + parity() * count_ + run;
    std::uint64_t *const barrier = their_barriers_ + parity();
    constexpr int kWords = sizeof(RowPart<T>) / sizeof(std::uint64_t);
    std::uint64_t words[kWords];
    memcpy(words, &part, sizeof part);
#pragma unroll
    for (int i = 0; i < kWords; i += 2) {
      const std::uint64_t pair[2] = {words[i], words[i + 1]};
      cuda::ptx::st_async(reinterpret_cast<std::uint64_t *>(to) + i, pair, barrier);
    }
  }

  // Until all parts of the row are there.
  __device__ __forceinline__ void wait() const {
    if (blocks_ == 1) {
      __syncthreads();
      return;
    }
    std::uint64_t *const barrier = &barriers_[parity()];
    if (threadIdx.x == 0) {
      namespace ptx = cuda::ptx;
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, barrier,
                                     static_cast<std::uint32_t>(count_ * sizeof(RowPart<T>)));
    }
    wait_for(barrier, (row_ >> 1) & 1);
  }
  __device__ __forceinline__ RowPart<T> part(int run) const {
    return parts_[parity() * count_ + run];
  }
  __device__ __forceinline__ void next_row() { ++row_; }

 private:
  __device__ __forceinline__ int parity() const { return row_ & 1; }

  RowPart<T> *parts_;
  std::uint64_t *barriers_;
  RowPart<T> *their_parts_ = nullptr;  // of the block that this lane posts to
  std::uint64_t *their_barriers_ = nullptr;
  int count_;
  int blocks_;
  unsigned row_ = 0;
};

#endif  // SOFTMAX_BULK_COPY

template <typename X, typename Y, int kPacks, RowAccess access>
__global__ void __launch_bounds__(kSpreadMostThreads, kSpreadBlocksPerSm<X, Y, kPacks>)
    cluster_kernel(RowArgs args) {
#if SOFTMAX_BULK_COPY
  using Acc = AccOf<X>;
  using Exchange = ClusterExchange<Acc>;
  __shared__ PartSlots<Acc, kWarpThreads> slots;
  __shared__ PartSlots<Acc, 2 * kMostClusterRuns> parts;
  __shared__ std::uint64_t barriers[2];
  Exchange exchange(&parts[0], barriers, args.slabs * static_cast<int>(blockDim.x) / kWarpThreads,
                    args.row_blocks);
  const int rank = static_cast<int>(blockIdx.x % args.row_blocks);
  SpreadRows<X, Y, kPacks, access, Exchange> rows(
      args, slots, exchange, rank, blockIdx.x / args.row_blocks, gridDim.x / args.row_blocks);
  if (threadIdx.x == 0) exchange.initialise();
  exchange.arrive();
  wait_for_kernel_before(args);
  rows.begin();
  exchange.meet();
  rows.run();
#endif
}

}  // namespace softmax
