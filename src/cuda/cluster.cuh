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
  __device__ __forceinline__ ClusterExchange(PartSum<T> *parts, std::uint64_t *barriers, int slabs,
                                             int blocks)
      : parts_(parts), barriers_(barriers), slabs_(slabs), blocks_(blocks) {}

  // By thread 0, before a barrier of the whole cluster.
  __device__ __forceinline__ void initialise() const {
    for (int i = 0; i < 2; ++i) cuda::ptx::mbarrier_init(&barriers_[i], 1);
  }

  // By the first warp, every lane with the same sum.
  __device__ __forceinline__ void post(int slab, const PartSum<T> &part) const {
    const int lane = threadIdx.x;
    PartSum<T> *const mine = &parts_[parity() * slabs_ + slab];
    if (blocks_ == 1) {
      if (lane == 0) *mine = part;
    } else if (lane < blocks_) {
      const auto cluster = cooperative_groups::this_cluster();
      send(cluster.map_shared_rank(mine, lane),
           cluster.map_shared_rank(&barriers_[parity()], lane), part);
    }
  }

  template <typename Acc>
  __device__ __forceinline__ RowFactors<Acc> merge(const BlockReduction<Acc> &reduction,
                                                   bool is_log, bool empty_is_zero) const {
    if (blocks_ == 1) {
      __syncthreads();
    } else {
      std::uint64_t *const barrier = &barriers_[parity()];
      if (threadIdx.x == 0) {
        namespace ptx = cuda::ptx;
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, barrier,
                                       static_cast<std::uint32_t>(slabs_ * sizeof(PartSum<T>)));
      }
      wait_for(barrier, (row_ >> 1) & 1);
    }
    const PartSum<T> *const parts = &parts_[parity() * slabs_];
    return merge_parts<Acc>(
        slabs_, [parts](int i) { return parts[i]; }, reduction, is_log, empty_is_zero);
  }

  __device__ __forceinline__ T part_max(int slab) const {
    return parts_[parity() * slabs_ + slab].max;
  }
  __device__ __forceinline__ void next_row() { ++row_; }

 private:
  __device__ __forceinline__ int parity() const { return row_ & 1; }

  static __device__ __forceinline__ void send(PartSum<T> *to, std::uint64_t *barrier,
                                              const PartSum<T> &part) {
    if constexpr (sizeof(T) == 4) {
      const std::uint32_t words[4] = {bits_of(part.max), bits_of(part.ones), bits_of(part.hi),
                                      bits_of(part.lo)};
      cuda::ptx::st_async(reinterpret_cast<std::uint32_t *>(to), words, barrier);
    } else {
      const std::uint64_t first[2] = {bits_of(part.max), bits_of(part.ones)};
      const std::uint64_t second[2] = {bits_of(part.hi), bits_of(part.lo)};
      std::uint64_t *const words = reinterpret_cast<std::uint64_t *>(to);
      cuda::ptx::st_async(words, first, barrier);
      cuda::ptx::st_async(words + 2, second, barrier);
    }
  }

  PartSum<T> *parts_;
  std::uint64_t *barriers_;
  int slabs_;
  int blocks_;
  unsigned row_ = 0;
};

#endif  // SOFTMAX_BULK_COPY

// 64 registers a thread, so that 1024 threads find room; double needs more.
template <typename X>
constexpr int kSlabBlocksPerSm = sizeof(X) == 8 ? 1 : 2;

template <typename X, typename Y>
__global__ void __launch_bounds__(kMaxSlabThreads, kSlabBlocksPerSm<X>) cluster_kernel(RowArgs args) {
#if SOFTMAX_BULK_COPY
  using Acc = AccOf<X>;
  extern __shared__ __align__(128) unsigned char smem[];
  __shared__ PartScratch<Acc> scratch;
  std::uint64_t *const barriers =
      reinterpret_cast<std::uint64_t *>(smem + args.slots * args.slot_bytes);
  PartSum<Acc> *const parts = reinterpret_cast<PartSum<Acc> *>(
      smem + args.slots * args.slot_bytes + (8 * (args.slots + 2) + 31) / 32 * 32);

  const std::uint64_t begin = address_of(args.x);
  const Ring<X> ring(smem, barriers, args.slots, args.slot_bytes,
                     {begin, begin + args.rows * args.cols * sizeof(X)});
  const BlockReduction<Acc> reduction{scratch};
  ClusterExchange<Acc> exchange(parts, barriers + args.slots, args.slabs, args.row_blocks);
  if (threadIdx.x == 0) {
    ring.initialise();
    exchange.initialise();
    cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
  }
  if (args.row_blocks > 1) {
    cooperative_groups::this_cluster().sync();
  } else {
    __syncthreads();
  }
  const int rank = static_cast<int>(blockIdx.x) % args.row_blocks;
  SlabRows<X, Y, ClusterExchange<Acc>>(args, ring, reduction, exchange, rank,
                                       blockIdx.x / args.row_blocks, gridDim.x / args.row_blocks)
      .run();
#endif
}

}  // namespace softmax
