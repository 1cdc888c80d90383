// Algorithm 12, TILE: read once; whole rows as flat byte ranges, by bulk copy through shared
// memory; any N, any alignment (compute capability 9.0 and above).
//
// Some rows are one contiguous range, however each of them is aligned. A block has them copied to
// shared memory, takes them from there into registers as WARP does rows of odd length, lanes and
// order of additions the same, puts the results where the rows were, and has those copied back.
#pragma once

#include "cuda/prim/bulk.cuh"
#include "cuda/prim/overlap.cuh"
#include "cuda/prim/part_merge.cuh"
#include "cuda/prim/warp_rows.cuh"

namespace softmax {

// As few as keep a lane's values without spilling: blocks have different numbers of threads.
template <typename X, typename Y, int kPacks>
constexpr int tile_registers() {
  if (sizeof(Y) > sizeof(X)) return 128;
  if (sizeof(X) == 8) return kPacks == 4 ? 64 : kPacks == 6 ? 72 : 80;
  if (sizeof(X) == 4) return kPacks <= 4 ? 64 : 80;
  return kPacks <= 5 ? 72 : kPacks <= 6 ? 80 : 96;
}
template <typename X, typename Y, int kPacks>
constexpr int kTileRegisters = tile_registers<X, Y, kPacks>();

#if SOFTMAX_BULK_COPY

template <typename X, typename Y, int kLanes, int kPacks>
class Tiles {
 public:
  __device__ __forceinline__ Tiles(const RowArgs &args, const Ring<X> &ring)
      : args_(args), ring_(ring) {
    first_ = std::int64_t{blockIdx.x} * ring.count() * args.tile_rows;
    const std::int64_t left = args.rows - first_;
    left_ = static_cast<int>(left < kManyRows ? left : kManyRows);
    const int lane = static_cast<int>(threadIdx.x % kWarpThreads);
    const int warp = static_cast<int>(threadIdx.x / kWarpThreads);
    rows_.lanes = kLanes;
    rows_.groups = kGroups;
    rows_.group = lane / kLanes;
    rows_.member = lane % kLanes;
    rows_.lane = lane;
    rows_.cols = static_cast<int>(args.cols);
    // A warp takes rows 2^spread_bits apart, and the next warp those beside them.
    const int bits = args.spread_bits;
    rows_.pitch = rows_.cols << bits;
    own_row_ = ((warp >> bits) * kAtOnce << bits) + (warp & ((1 << bits) - 1));
  }

  // By thread 0.
  __device__ __forceinline__ void load() const {
    for (int i = 0; i < ring_.count() && tile_rows(i) > 0; ++i) {
      ring_.load({i, 0}, range<X>(args_.x, i));
    }
  }

  __device__ __forceinline__ void run() {
    for (int i = 0; i < ring_.count(); ++i) {
      const int count = tile_rows(i);
      if (count <= 0) break;
      const ByteRange x_range = range<X>(args_.x, i);
      const ByteRange y_range = range<Y>(args_.y, i);
      const bool takes_place = args_.out_bytes == 0;
      const X *const x = reinterpret_cast<const X *>(ring_.place({i, 0}, x_range));
      Y *const y = reinterpret_cast<Y *>(takes_place ? ring_.place({i, 0}, x_range)
                                                     : ring_.slot(ring_.count()) +
                                                           line_shift(y_range.begin));
      ring_.wait({i, 0});
      // The words around all other tiles are the tensor's own.
      const bool is_first = first_ == 0 && i == 0;
      const bool is_last = left_ - (i + 1) * args_.tile_rows < static_cast<int>(kBulkBytes);
      if (is_first || is_last) ring_.fetch_ends({i, 0}, x_range);
      take(x, y, count);
      fence_slot_writes();
      __syncthreads();
      if (threadIdx.x < kWarpThreads) store_range(y, y_range);
      if (!takes_place && i + 1 < ring_.count()) {
        if (threadIdx.x == 0) wait_for_stores<0>();
        __syncthreads();
      }
    }
    if (threadIdx.x == 0) wait_for_stores<0>();
  }

 private:
  static constexpr int kRows = warp_rows_a_lane(kPacks);
  // Rows with room for fewer have fewer, from two packs on.
  static constexpr int kFullPacks = kPacks > 4 ? 4 : kPacks / 2;
  static constexpr int kGroups = kWarpThreads / kLanes;
  static constexpr int kAtOnce = kGroups * kRows;  // rows of a warp
  static constexpr int kManyRows = 1 << 30;        // more than any block has

  // Rows of the block's i-th tile, or less than 1.
  __device__ __forceinline__ int tile_rows(int i) const {
    const int left = left_ - i * args_.tile_rows;
    return left < args_.tile_rows ? left : args_.tile_rows;
  }
  template <typename T>
  __device__ __forceinline__ ByteRange range(const void *base, int i) const {
    const int row_bytes = static_cast<int>(args_.cols * sizeof(T));
    const std::uint64_t begin =
        address_of(base) + first_ * row_bytes + i * args_.tile_rows * row_bytes;
    return {begin, begin + tile_rows(i) * row_bytes};
  }

  // This warp's rows of a tile of `count`.
  __device__ __forceinline__ void take(const X *x, Y *y, int count) {
    rows_.present = kAtOnce;
    if (count < args_.tile_rows) {
      const int own = (count - own_row_ + (1 << args_.spread_bits) - 1) >> args_.spread_bits;
      if (own <= 0) return;
      rows_.present = own < kAtOnce ? own : kAtOnce;
    }
    rows_.load(x + own_row_ * rows_.cols);
    rows_.finish_whole_rows(args_);
    rows_.template store<StoreHint::kShared>(y + own_row_ * rows_.cols, args_.is_log);
  }

  const RowArgs &args_;
  const Ring<X> &ring_;
  std::int64_t first_;  // row of the block
  int left_;            // rows from there on
  int own_row_;         // the first of this warp's in a tile
  // A lone lane has the same columns either way, and those with few are not worth the code.
  static constexpr bool kMayBeWords = kLanes > 1 || kPacks >= 4;
  using Rows =
      WarpRows<X, Y, kPacks, RowAccess::kUnits, kRows, false, kFullPacks, true, kMayBeWords>;
  Rows rows_;
};

#endif  // SOFTMAX_BULK_COPY

// A block has as many tiles as there are slots, all on their way from the beginning. There is no
// loop over the grid: tiles are some KB, and so many that a grid had no room for them are more than
// any device's memory.
template <typename X, typename Y, int kLanes, int kPacks>
__global__ void __maxnreg__((kTileRegisters<X, Y, kPacks>)) tile_kernel(RowArgs args) {
#if SOFTMAX_BULK_COPY
  extern __shared__ __align__(128) unsigned char smem[];
  __shared__ std::uint64_t barriers[kMostTiles];
  const std::uint64_t begin = address_of(args.x);
  const Ring<X> ring(smem, barriers, args.slots, args.slot_bytes,
                     {begin, begin + args.rows * args.cols * sizeof(X)});
  Tiles<X, Y, kLanes, kPacks> tiles(args, ring);
  if (threadIdx.x == 0) {
    ring.initialise();
    cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
  }
  wait_for_kernel_before(args);
  if (threadIdx.x == 0) tiles.load();
  __syncthreads();
  tiles.run();
#endif
}

}  // namespace softmax
