// Algorithm 14, GRID: a row in the registers of many blocks, for few rows of huge N.
//
// As CLUSTER, but the blocks that share a row are as many as the row needs, up to all that the card
// holds at once, and exchange their (max, sum) through global memory. They wait for each other, so
// all of them must be resident: a cooperative launch.
//
// Workspace: one counter a team of blocks, 0 before the launch, and two rows' parts a team. The
// counter only ever rises during a launch: a block that is one row ahead needs no second one.
#pragma once

#include <cuda/atomic>

#include "cuda/prim/spread.cuh"

namespace softmax {

// A line each, so that teams do not wait on each other's counters.
struct alignas(128) TeamCounter {
  unsigned long long arrivals;
};

#if SOFTMAX_BULK_COPY

template <typename T>
class GridExchange {
 public:
  static constexpr bool kOfBlocks = true;

  __device__ __forceinline__ GridExchange(TeamCounter *counter, RowPart<T> *parts, int count,
                                          int blocks)
      : counter_(counter), parts_(parts), count_(count), blocks_(blocks) {}

  // By a whole warp, every lane with the same part.
  __device__ __forceinline__ void post(int slab, const RowPart<T> &part) const {
    if (threadIdx.x % kWarpThreads == 0) row_parts()[slab] = part;
  }

  // Until all parts of the row are there; every thread of the block comes here.
  __device__ __forceinline__ void wait() const {
    __syncthreads();  // thread 0's release covers what the block has written
    if (threadIdx.x == 0) {
      cuda::atomic_ref<unsigned long long, cuda::thread_scope_device> arrivals(counter_->arrivals);
      arrivals.fetch_add(1, cuda::memory_order_release);
      const unsigned long long all = (row_ + 1) * blocks_;
      while (arrivals.load(cuda::memory_order_acquire) < all) {
      }
    }
    __syncthreads();
  }
  // Past L1, which may hold what lay there two rows ago.
  __device__ __forceinline__ RowPart<T> part(int slab) const {
    static_assert(sizeof(RowPart<T>) % sizeof(uint4) == 0, "read in 16-byte words");
    constexpr int kWords = sizeof(RowPart<T>) / sizeof(uint4);
    const uint4 *const from = reinterpret_cast<const uint4 *>(row_parts() + slab);
    uint4 words[kWords];
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] = __ldcg(from + i);
    RowPart<T> part;
    memcpy(&part, words, sizeof part);
    return part;
  }
  __device__ __forceinline__ void next_row() { ++row_; }

 private:
  __device__ __forceinline__ RowPart<T> *row_parts() const { return parts_ + (row_ & 1) * count_; }

  TeamCounter *counter_;
  RowPart<T> *parts_;
  int count_;
  unsigned long long blocks_;
  unsigned long long row_ = 0;
};

#endif  // SOFTMAX_BULK_COPY

template <typename X, typename Y, int kPacks, RowAccess access>
__global__ void __launch_bounds__(kSpreadMostThreads, kSpreadBlocksPerSm<X, Y, kPacks>)
    grid_kernel(RowArgs args) {
#if SOFTMAX_BULK_COPY
  using Acc = AccOf<X>;
  using Exchange = GridExchange<Acc>;
  __shared__ PartSlots<Acc, kWarpThreads> slots;
  const int team = static_cast<int>(blockIdx.x) / args.row_blocks;
  const int teams = static_cast<int>(gridDim.x) / args.row_blocks;
  TeamCounter *const counters = static_cast<TeamCounter *>(args.workspace);
  RowPart<Acc> *const parts = reinterpret_cast<RowPart<Acc> *>(counters + teams);
  Exchange exchange(counters + team, parts + std::int64_t{2} * team * args.slabs, args.slabs,
                    args.row_blocks);
  SpreadRows<X, Y, kPacks, access, Exchange> rows(
      args, slots, exchange, static_cast<int>(blockIdx.x) % args.row_blocks, team, teams);
  rows.begin();
  rows.run();
#endif
}

}  // namespace softmax
