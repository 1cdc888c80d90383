// Algorithm 12, TILE: read once; runs of whole rows as flat byte ranges, by bulk copy through
// shared memory; any N, any alignment (compute capability 9.0 and above).
//
// A run of rows is one contiguous range, however its rows are aligned. Groups of lanes take the
// rows of a tile where they lie; outputs take their inputs' place and leave in bulk too.
#pragma once

#include "cuda/prim/bulk.cuh"
#include "cuda/prim/staged_row.cuh"

namespace softmax {

constexpr int kTileThreads = 256;

#if SOFTMAX_BULK_COPY

template <typename X, typename Y>
class Tiles {
 public:
  using Acc = AccOf<X>;

  __device__ __forceinline__ Tiles(const RowArgs &args, const Ring<X> &ring)
      : args_(args), ring_(ring), next_tile_(blockIdx.x) {
    tiles_ = (args.rows + args.tile_rows - 1) / args.tile_rows;
    in_slot_ =
        sizeof(X) == sizeof(Y) && bulk_shift(address_of(args.x)) == bulk_shift(address_of(args.y));
    const bool even = args.cols % 2 == 0;
    x_pairs_ = even && is_pair_aligned(static_cast<const X *>(args.x));
    y_pairs_ = even && is_pair_aligned(static_cast<const Y *>(args.y));
  }

  // By thread 0.
  __device__ __forceinline__ void fill() {
    for (int i = 0; i < ring_.count(); ++i) load_next();
  }

  __device__ __forceinline__ void run() {
    Turn turn;
    for (std::int64_t tile = blockIdx.x; tile < tiles_; tile += gridDim.x) {
      const ByteRange x_range = range<X>(args_.x, tile);
      X *const x = reinterpret_cast<X *>(ring_.place(turn, x_range));
      ring_.wait(turn);
      if (ring_.may_have_ends(x_range)) ring_.fetch_ends(turn, x_range);
      turn.advance(ring_.count());
      const ByteRange y_range = range<Y>(args_.y, tile);
      if (in_slot_) {
        Y *const y = reinterpret_cast<Y *>(x);
        rows(x, y, tile_rows(tile), x_pairs_);
        fence_slot_writes();
        __syncthreads();
        if (threadIdx.x < kWarpThreads) store_range(y, y_range);
        // The store before this one has been read by now, or soon.
        if (threadIdx.x == 0) wait_for_stores<1>();
      } else {
        rows(x, reinterpret_cast<Y *>(y_range.begin), tile_rows(tile), y_pairs_);
        fence_slot_writes();
        __syncthreads();
      }
      // Into the slot of the tile before this one.
      if (threadIdx.x == 0 && tile != blockIdx.x) load_next();
    }
    if (threadIdx.x == 0) wait_for_stores<0>();
  }

 private:
  __device__ __forceinline__ int tile_rows(std::int64_t tile) const {
    const std::int64_t left = args_.rows - tile * args_.tile_rows;
    return static_cast<int>(left < args_.tile_rows ? left : args_.tile_rows);
  }
  template <typename T>
  __device__ __forceinline__ ByteRange range(const void *base, std::int64_t tile) const {
    const std::uint64_t row_bytes = args_.cols * sizeof(T);
    const std::uint64_t begin = address_of(base) + tile * args_.tile_rows * row_bytes;
    return {begin, begin + tile_rows(tile) * row_bytes};
  }

  // By thread 0.
  __device__ __forceinline__ void load_next() {
    if (next_tile_ >= tiles_) return;
    ring_.load(load_turn_, range<X>(args_.x, next_tile_));
    load_turn_.advance(ring_.count());
    next_tile_ += gridDim.x;
  }

  __device__ __forceinline__ void rows(X *x, Y *y, int count, bool out_pairs) const {
    const int cols = static_cast<int>(args_.cols);
    const int lanes = args_.row_lanes;
    const int thread = static_cast<int>(threadIdx.x);
    // A warp takes rows `spread` apart, and the next warp those beside them: blocks of rows that
    // `spread` warps take.
    const int spread = args_.row_spread;
    const int block_rows = spread * (kWarpThreads / lanes);
    const int rounds = (count + block_rows - 1) / block_rows * spread;
    // A whole warp goes round together: its lanes meet in the reductions.
    for (int round = thread / kWarpThreads; round < rounds; round += kTileThreads / kWarpThreads) {
      const int row =
          round / spread * block_rows + round % spread + thread % kWarpThreads / lanes * spread;
      const bool present = row < count;
      const int offset = present ? row * cols : 0;
      const LaneUnits units{present ? cols : 0, thread % lanes, lanes, x_pairs_};
      const Acc max = lanes_max_or_nan(staged_max(x + offset, units), lanes);
      const RowPart<Acc> sum =
          lanes_part(staged_sum<X, Y>(x + offset, units, max, args_.is_log), args_.is_log, lanes);
      const RowFactors<Acc> factors = finish(sum, args_.empty_is_zero, args_.is_log);
      staged_output<X, Y>(x + offset, y + offset, units, out_pairs, max, factors, args_.is_log);
    }
  }

  const RowArgs &args_;
  const Ring<X> &ring_;
  std::int64_t tiles_;
  std::int64_t next_tile_;  // to copy
  Turn load_turn_;
  bool in_slot_;
  bool x_pairs_;
  bool y_pairs_;
};

#endif  // SOFTMAX_BULK_COPY

template <typename X, typename Y>
__global__ void __launch_bounds__(kTileThreads, sizeof(X) == 8 ? 2 : 4) tile_kernel(RowArgs args) {
#if SOFTMAX_BULK_COPY
  extern __shared__ __align__(128) unsigned char smem[];
  std::uint64_t *const barriers =
      reinterpret_cast<std::uint64_t *>(smem + args.slots * args.slot_bytes);
  const std::uint64_t begin = address_of(args.x);
  const Ring<X> ring(smem, barriers, args.slots, args.slot_bytes,
                     {begin, begin + args.rows * args.cols * sizeof(X)});
  Tiles<X, Y> tiles(args, ring);
  if (threadIdx.x == 0) {
    ring.initialise();
    cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
    tiles.fill();
  }
  __syncthreads();
  tiles.run();
#endif
}

}  // namespace softmax
