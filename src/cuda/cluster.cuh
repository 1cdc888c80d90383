// Algorithm 13, CLUSTER: read once; a row spread over the blocks of a thread-block cluster.
//
// The blocks write their slabs' sums into each other's shared memory, each with the bytes that the
// receiver's barrier counts: one exchange a row, and no block waits for another otherwise. With one
// block in a cluster it is the kernel for rows that a block has to itself.
#pragma once

#include <cooperative_groups.h>

#include "cuda/prim/slab.cuh"

namespace softmax {

#if SOFTMAX_BULK_COPY

// parts[2][slabs]: a block may be one row ahead of the others, but not two, because it waits for
// all sums of every row.
template <typename T>
class ClusterExchange {
 public:
  __device__ __forceinline__ ClusterExchange(RowPart<T> *parts, std::uint64_t *barriers, int slabs,
                                             int blocks)
      : parts_(parts), barriers_(barriers), slabs_(slabs), blocks_(blocks) {}

  // By thread 0, before a barrier of the whole cluster.
  __device__ __forceinline__ void initialise() const {
    for (int i = 0; i < 2; ++i) cuda::ptx::mbarrier_init(&barriers_[i], 1);
  }

  // By the first warp, every lane with the same sum.
  __device__ __forceinline__ void post(int slab, const RowPart<T> &part) const {
    const int lane = threadIdx.x;
    RowPart<T> *const mine = &parts_[parity() * slabs_ + slab];
    if (blocks_ == 1) {
      if (lane == 0) *mine = part;
    } else if (lane < blocks_) {
      const auto cluster = cooperative_groups::this_cluster();
      send(cluster.map_shared_rank(mine, lane),
           cluster.map_shared_rank(&barriers_[parity()], lane), part);
    }
  }

  // By the first warp: until all parts of the row are there.
  __device__ __forceinline__ void wait() const {
    if (blocks_ == 1) {
      __syncwarp();
      return;
    }
    std::uint64_t *const barrier = &barriers_[parity()];
    if (threadIdx.x == 0) {
      namespace ptx = cuda::ptx;
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, barrier,
                                     static_cast<std::uint32_t>(slabs_ * sizeof(RowPart<T>)));
    }
    wait_for(barrier, (row_ >> 1) & 1);
  }
  __device__ __forceinline__ RowPart<T> part(int slab) const {
    return parts_[parity() * slabs_ + slab];
  }

  __device__ __forceinline__ void next_row() { ++row_; }

 private:
  __device__ __forceinline__ int parity() const { return row_ & 1; }

  static __device__ __forceinline__ void send(RowPart<T> *to, std::uint64_t *barrier,
                                              const RowPart<T> &part) {
    constexpr int kWords = sizeof(RowPart<T>) / sizeof(std::uint64_t);
    std::uint64_t words[kWords];
    memcpy(words, &part, sizeof part);
#pragma unroll
    for (int i = 0; i < kWords; i += 2) {
      const std::uint64_t pair[2] = {words[i], words[i + 1]};
      cuda::ptx::st_async(reinterpret_cast<std::uint64_t *>(to) + i, pair, barrier);
    }
  }

  RowPart<T> *parts_;
  std::uint64_t *barriers_;
  int slabs_;
  int blocks_;
  unsigned row_ = 0;
};

#endif  // SOFTMAX_BULK_COPY

template <typename X, typename Y>
__global__ void __launch_bounds__(kMostSlabThreads<X, Y>) cluster_kernel(RowArgs args) {
#if SOFTMAX_BULK_COPY
  using Acc = AccOf<X>;
  using Exchange = ClusterExchange<Acc>;
  extern __shared__ __align__(128) unsigned char smem[];
  __shared__ SlabScratch<Acc> scratch;
  std::uint64_t *const barriers =
      reinterpret_cast<std::uint64_t *>(smem + args.slots * args.slot_bytes);
  RowPart<Acc> *const parts = reinterpret_cast<RowPart<Acc> *>(
      smem + args.slots * args.slot_bytes + (8 * (args.slots + 2) + 31) / 32 * 32);

  const std::uint64_t begin = address_of(args.x);
  const Ring<X> ring(smem, barriers, args.slots, args.slot_bytes,
                     {begin, begin + args.rows * args.cols * sizeof(X)});
  Exchange exchange(parts, barriers + args.slots, args.slabs, args.row_blocks);
  SlabRows<X, Y, Exchange> rows(args, ring, scratch, exchange,
                                static_cast<int>(blockIdx.x % args.row_blocks),
                                blockIdx.x / args.row_blocks, gridDim.x / args.row_blocks);
  if (threadIdx.x == 0) {
    ring.initialise();
    exchange.initialise();
    cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
    rows.fill();
  }
  if (args.row_blocks > 1) {
    cooperative_groups::this_cluster().sync();
  } else {
    __syncthreads();
  }
  rows.run();
#endif
}

}  // namespace softmax
