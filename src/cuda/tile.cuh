// Algorithm 12, TILE: read once; runs of whole rows as flat byte ranges, by bulk copy through shared
// memory; any N, any alignment (compute capability 9.0 and above).
//
// A run of rows is one contiguous range, however its rows are aligned. Groups of lanes take the rows
// of a tile where they lie; outputs take their inputs' place and leave in bulk too.
#pragma once

#include "cuda/prim/bulk.cuh"
#include "cuda/prim/part_reduce.cuh"

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
    in_slot_ = sizeof(X) == sizeof(Y) &&
               bulk_shift(address_of(args.x)) == bulk_shift(address_of(args.y));
    const bool even = args.cols % 2 == 0;
    x_pairs_ = even && is_pair_aligned(static_cast<const X *>(args.x));
    y_pairs_ = even && is_pair_aligned(static_cast<const Y *>(args.y));
  }

  __device__ __forceinline__ void run() {
    if (threadIdx.x == 0) {
      for (int i = 0; i < ring_.count(); ++i) load_next();
    }
    Turn turn;
    for (std::int64_t tile = blockIdx.x; tile < tiles_; tile += gridDim.x) {
      X *const x = ring_.wait(turn, range<X>(args_.x, tile));
      turn.advance(ring_.count());
      const ByteRange y_range = range<Y>(args_.y, tile);
      if (in_slot_) {
        Y *const y = reinterpret_cast<Y *>(x);
        rows(x, y, tile_rows(tile), x_pairs_);
        fence_slot_writes();
        __syncthreads();
        if (threadIdx.x < kWarpThreads) store_range(y, y_range);
        if (threadIdx.x == 0) wait_for_stores<0>();
      } else {
        rows(x, reinterpret_cast<Y *>(y_range.begin), tile_rows(tile), y_pairs_);
        fence_slot_writes();
        __syncthreads();
      }
      if (threadIdx.x == 0) load_next();
    }
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
    const int step = static_cast<int>(blockDim.x) / lanes;
    // A whole warp goes round together: its lanes meet in the reductions.
    for (int first = thread / kWarpThreads * (kWarpThreads / lanes); first < count; first += step) {
      const int row = first + thread % kWarpThreads / lanes;
      const bool present = row < count;
      const int offset = present ? row * cols : 0;
      const Units in{present ? cols : 0, thread % lanes, lanes, x_pairs_};
      const Acc max = group_lanes_max(staged_max(x + offset, in), lanes);
      const TermSum<Acc> sum = group_lanes_sum(
          staged_sum<X, Y>(x + offset, in, finite_reference(max), args_.is_log, true), lanes,
          args_.is_log);
      const RowFactors<Acc> factors =
          finish(max, sum.combined(), args_.empty_is_zero, args_.is_log);
      const Units out{in.cols, in.first, in.stride, out_pairs};
      staged_output<X, Y>(x + offset, y + offset, in, out, max, factors, args_.is_log,
                          kKeepsExp<X, Y> && !args_.is_log);
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
  if (threadIdx.x == 0) {
    ring.initialise();
    cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
  }
  __syncthreads();
  Tiles<X, Y>(args, ring).run();
#endif
}

}  // namespace softmax
