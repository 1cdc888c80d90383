// Algorithm 14, GRID: a row spread over many blocks, for few rows of huge N.
//
// As CLUSTER, but the blocks that share a row are as many as the row needs, up to all that the card
// holds at once, and exchange their sums through global memory. They wait for each other, so all of
// them must be resident: a cooperative launch.
//
// Workspace: one counter a team of blocks, 0 before the launch, and two rows' sums a team. The
// counter only ever rises during a launch: a block that is one row ahead needs no second one.
#pragma once

#include <cuda/atomic>

#include "cuda/prim/slab.cuh"

namespace softmax {

// A line each, so that teams do not wait on each other's counters.
struct alignas(128) TeamCounter {
  unsigned long long arrivals;
};

#if SOFTMAX_BULK_COPY

template <typename T>
class GridExchange {
 public:
  __device__ __forceinline__ GridExchange(TeamCounter *counter, RowPart<T> *parts, int slabs,
                                          int blocks)
      : counter_(counter), parts_(parts), slabs_(slabs), blocks_(blocks) {}

  // By the first warp, every lane with the same sum.
  __device__ __forceinline__ void post(int slab, const RowPart<T> &part) const {
    if (threadIdx.x == 0) row_parts()[slab] = part;
  }

  // By the first warp: until all parts of the row are there.
  __device__ __forceinline__ void wait() const {
    if (threadIdx.x == 0) {
      cuda::atomic_ref<unsigned long long, cuda::thread_scope_device> arrivals(counter_->arrivals);
      arrivals.fetch_add(1, cuda::memory_order_release);
      const unsigned long long all = (row_ + 1) * blocks_;
      while (arrivals.load(cuda::memory_order_acquire) < all) {
      }
    }
    __syncwarp();
  }
  // Past L1, which may hold what lay there two rows ago.
  __device__ __forceinline__ RowPart<T> part(int slab) const { return read(row_parts() + slab); }

  __device__ __forceinline__ void next_row() { ++row_; }

 private:
  __device__ __forceinline__ RowPart<T> *row_parts() const {
    return parts_ + (row_ & 1) * slabs_;
  }
  static __device__ __forceinline__ RowPart<T> read(const RowPart<T> *from) {
    static_assert(sizeof(RowPart<T>) % sizeof(uint4) == 0, "read in 16-byte words");
    constexpr int kWords = sizeof(RowPart<T>) / sizeof(uint4);
    uint4 words[kWords];
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] = __ldcg(reinterpret_cast<const uint4 *>(from) + i);
    RowPart<T> part;
    memcpy(&part, words, sizeof part);
    return part;
  }

  TeamCounter *counter_;
  RowPart<T> *parts_;
  int slabs_;
  unsigned long long blocks_;
  unsigned long long row_ = 0;
};

#endif  // SOFTMAX_BULK_COPY

template <typename X, typename Y>
__global__ void __launch_bounds__(kMostSlabThreads<X, Y>) grid_kernel(RowArgs args) {
#if SOFTMAX_BULK_COPY
  using Acc = AccOf<X>;
  using Exchange = GridExchange<Acc>;
  extern __shared__ __align__(128) unsigned char smem[];
  __shared__ SlabScratch<Acc> scratch;
  std::uint64_t *const barriers =
      reinterpret_cast<std::uint64_t *>(smem + args.slots * args.slot_bytes);
  const std::uint64_t begin = address_of(args.x);
  const Ring<X> ring(smem, barriers, args.slots, args.slot_bytes,
                     {begin, begin + args.rows * args.cols * sizeof(X)});
  const int team = static_cast<int>(blockIdx.x) / args.row_blocks;
  const int teams = static_cast<int>(gridDim.x) / args.row_blocks;
  TeamCounter *const counters = static_cast<TeamCounter *>(args.workspace);
  RowPart<Acc> *const parts = reinterpret_cast<RowPart<Acc> *>(counters + teams);
  Exchange exchange(counters + team, parts + std::int64_t{2} * team * args.slabs, args.slabs,
                    args.row_blocks);
  SlabRows<X, Y, Exchange> rows(args, ring, scratch, exchange,
                                static_cast<int>(blockIdx.x) % args.row_blocks, team, teams);
  if (threadIdx.x == 0) {
    ring.initialise();
    cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
    rows.fill();
  }
  __syncthreads();
  rows.run();
#endif
}

}  // namespace softmax
