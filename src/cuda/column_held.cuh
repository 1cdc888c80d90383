// Algorithm 15, COLUMN, of rows that registers can hold: rows that lie across memory, neighbouring
// rows being neighbours there: a tile of them in the registers of a block, or of a cluster's
// blocks, each of which has a part of the axis. Every input is read once, every output written
// once.
//
// A thread takes its sums against its own maximum, which is known as soon as its own loads are
// there. The threads of a row then meet once: what terms are against are powers of two, so that
// sums are brought to the row's maximum without rounding. Where a thread has whole rows it meets
// nobody. A row that this arithmetic is not for is left and computed in float64 afterwards:
// wide_row.cuh.
#pragma once

#include <cooperative_groups.h>

#include "cuda/general/column_numbers.cuh"
#include "cuda/general/held_column.cuh"
#include "cuda/prim/bulk.cuh"

namespace softmax {

static_assert(sizeof(RowNumbers) <= kHeldStatsBytes);

// What is given of each row.
struct alignas(16) HeldOwn {
  RowScaling scaling;
  double sink;
};
static_assert(sizeof(HeldOwn) == kHeldOwnBytes);

// kIsAlone: a thread has whole rows.
template <typename X, int kLanes, int kQuads, bool kIsApart, bool kIsAlone>
class HeldColumnCall {
  using Held = HeldColumn<X, kLanes, kQuads>;

 public:
  __device__ __forceinline__ HeldColumnCall(const GeneralArgs &args, unsigned char *memory,
                                            std::uint64_t *barrier)
      : args_(args),
        held_(args, reinterpret_cast<HeldGroup *>(memory + args.held_room.groups)),
        memory_(memory),
        barrier_(barrier) {}

  __device__ __forceinline__ void run() {
    open();
    if (has_own()) load_own();
    held_.load();
#pragma unroll
    for (int pair = 0; pair < Held::kPairs; ++pair) take_sums(pair);
    if constexpr (!kIsAlone) meet();
    unsigned is_left = 0;
#pragma unroll
    for (int i = 0; i < kLanes; ++i) is_left |= unsigned{left()[place().tile_row(i)]} << i;
    if (!kIsApart || !args_.is_stats) {
#pragma unroll
      for (int pair = 0; pair < Held::kPairs; ++pair) finish_pair(pair);
      held_.store(is_left);
    }
    has_left_ = __syncthreads_or(is_left != 0) != 0 && place().rank() == 0;
    if (kIsApart && args_.writes_stats() && place().rank() == 0) write_stats();
  }

  // Rows that are left, by all threads.
  __device__ __forceinline__ void run_left(TeamScratch *scratch) const {
    if (!has_left_) return;
    const Team team = Team::of_block(scratch);
#pragma unroll 1
    for (int r = 0; r < args_.tile.rows(); ++r) {
      const std::int64_t row = place().row_of(r);
      if (left()[r] != 0 && row >= 0) run_wide_row(args_, row, team);
    }
  }

 private:
  __device__ __forceinline__ HeldColumnPlace place() const { return HeldColumnPlace(args_); }
  // Beside the sum apart from what equals the maximum, softmax's.
  __device__ __forceinline__ bool needs_plain() const {
    return !kIsApart || (!args_.is_log && !args_.is_stats);
  }
  __device__ __forceinline__ int sums() const { return int{kIsApart} + int{needs_plain()}; }
  template <typename T>
  __device__ __forceinline__ T *at(int offset) const {
    return reinterpret_cast<T *>(memory_ + offset);
  }
  __device__ __forceinline__ HeldNumbers *row_numbers() const {
    return at<HeldNumbers>(args_.held_room.numbers);
  }
  __device__ __forceinline__ RowNumbers *row_stats() const {
    return at<RowNumbers>(args_.held_room.stats);
  }
  __device__ __forceinline__ HeldOwn *own() const { return at<HeldOwn>(args_.held_room.own); }
  __device__ __forceinline__ unsigned char *left() const { return memory_ + args_.held_room.left; }

  // Elements of 16 bits come here for results of 16 bits, or fewer.
  __device__ __forceinline__ bool is_coarse() const {
    return !Held::kKeepsTerms || args_.y_dtype != SOFTMAX_DTYPE_F32;
  }

  // ---- rows' scales and sinks ----

  __device__ __forceinline__ bool has_own() const {
    return args_.buffers.row_scale != nullptr || args_.buffers.sink != nullptr;
  }
  // Before elements are on their way: while registers hold them nothing is called, or it would be
  // they that make room.
  __device__ __forceinline__ void load_own() const {
    const float *const row_scale = args_.buffers.row_scale;
#pragma unroll 1
    for (int r = static_cast<int>(threadIdx.x); r < args_.tile.rows(); r += blockDim.x) {
      const std::int64_t row = place().row_of(r);
      double scale = args_.general.scale;
      if (row_scale != nullptr && row >= 0) scale *= double(row_scale[row]);
      own()[r] = {RowScaling::of(scale), sink_of_row(args_, row)};
    }
    __syncthreads();
  }
  __device__ __forceinline__ RowScaling row_scaling(int r) const {
    return args_.buffers.row_scale == nullptr ? args_.scaling : own()[r].scaling;
  }
  __device__ __forceinline__ RowScaling lane_scaling(int lane) const {
    return row_scaling(place().tile_row(lane));
  }

  // ---- a thread's own part ----

  __device__ __forceinline__ void take_sums(int pair) {
    const RowScaling s[2] = {lane_scaling(2 * pair), lane_scaling(2 * pair + 1)};
    if (s[0].sign < 0.0f || s[1].sign < 0.0f) {
      held_.negate(pair, s[0].sign < 0.0f, s[1].sign < 0.0f);
    }
    float max[2];
    held_.take_max(pair, max);
    ColumnPart apart[2] = {}, plain[2] = {};
    if constexpr (kIsApart) {
      double sum[2];
      const ScaledTerms terms[2] = {terms_of(max[0], s[0]), terms_of(max[1], s[1])};
      float ones[2] = {};
      held_.template add<false>(pair, sum, [&](int i, float x) {
        const bool is_one = x == max[i];
        const float made = terms[i](x);
        ones[i] += is_one ? 1.0f : 0.0f;
        return is_one ? 0.0f : made;
      });
#pragma unroll
      for (int i = 0; i < 2; ++i) apart[i] = {sum[i], max[i], ones[i]};
    }
    if (needs_plain()) {
      double sum[2];
      if (is_coarse()) {
        const CoarseColumn coarse[2] = {CoarseColumn::of(max[0], s[0]),
                                        CoarseColumn::of(max[1], s[1])};
        float some[2];  // of no more terms than float32 adds up well enough for 16 bits
        held_.template add<false>(pair, some, [&](int i, float x) { return coarse[i](x); });
        sum[0] = some[0];
        sum[1] = some[1];
      } else if constexpr (Held::kKeepsTerms) {
        const ScaledTerms terms[2] = {terms_of(max[0], s[0]), terms_of(max[1], s[1])};
        held_.template add<true>(pair, sum, [&](int i, float x) { return terms[i](x); });
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        exponent_[2 * pair + i] = exponent_of(max[i], ScaledTerms(finite_or_zero(max[i]), s[i]));
        plain[i] = {sum[i], max[i], exponent_[2 * pair + i]};
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if constexpr (kIsAlone) {
        finish(place().tile_row(2 * pair + i), s[i], apart[i], plain[i]);
      } else {
        if (kIsApart) put_part(2 * pair + i, 0, apart[i]);
        if (needs_plain()) put_part(2 * pair + i, kIsApart, plain[i]);
      }
    }
  }
  // `which` of the row's sums.
  __device__ __forceinline__ void put_part(int lane, int which, const ColumnPart &part) const {
    const HeldColumnPlace place = this->place();
    const HeldColumnRoom &room = args_.held_room;
    const int to = which * room.sum + place.tile_row(lane) * room.pitch + place.axis_thread();
    uint4 words;
    memcpy(&words, &part, sizeof part);
    at<uint4>(room.parts)[to] = words;
  }

  // ---- the parts of a row ----

  __device__ __forceinline__ void open() const {
#if SOFTMAX_BULK_COPY
    if (args_.column.blocks == 1) return;
    namespace ptx = cuda::ptx;
    if (threadIdx.x == 0) {
      const int parts = sums() * args_.held_room.sent_sum;
      ptx::mbarrier_init(barrier_, 1);
      ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, barrier_,
                                     static_cast<std::uint32_t>(parts * sizeof(ColumnPart)));
    }
    ptx::barrier_cluster_arrive(ptx::sem_relaxed);
#endif
  }

  // The numbers of the block's rows are there when this returns.
  __device__ __forceinline__ void meet() const {
    HeldParts parts = {at<ColumnPart>(args_.held_room.parts), args_.held_room.pitch,
                       args_.held_room.sum, args_.column.threads,
                       held_column_mergers(args_.column.threads)};
#if SOFTMAX_BULK_COPY
    if (args_.column.blocks > 1) cuda::ptx::barrier_cluster_wait(cuda::ptx::sem_acquire);
#endif
    __syncthreads();
#if SOFTMAX_BULK_COPY
    if (args_.column.blocks > 1) {
      send_to_blocks(parts);
      const int blocks = args_.column.blocks;
      parts = {at<ColumnPart>(args_.held_room.sent), blocks, args_.held_room.sent_sum, blocks,
               held_column_mergers(blocks)};
      // By those alone who merge: a warp that asks takes instructions from the others.
      const int first_lane = static_cast<int>(threadIdx.x) & -kWarpThreads;
      if (first_lane < args_.tile.rows() * parts.lanes) wait_for(barrier_, 0);
    }
#endif
    for_rows(parts.lanes, [&](int r, const RowScaling &scaling, int lane, bool is_there) {
      ColumnPart apart = {}, plain = {};
#pragma unroll 1
      for (int which = 0; which < sums(); ++which) {
        const bool is_apart = kIsApart && which == 0;
        const ColumnPart merged = parts.merged(r, which, lane, scaling, is_apart);
        if (is_apart) apart = merged;
        if (!is_apart) plain = merged;
      }
      if (lane == 0 && is_there) finish(r, scaling, apart, plain);
    });
    __syncthreads();
  }

  // use(row of the block, its scaling, lane, true) by as many lanes of a warp for each row; where
  // rows are fewer than a warp has lanes for, the others go along with the last, for they shuffle,
  // and are told false: whatever they sent would be counted twice by who waits for so many bytes.
  template <typename Use>
  __device__ __forceinline__ void for_rows(int lanes, Use use) const {
    const int all = args_.tile.rows() * lanes;
    const int shift = __ffs(lanes) - 1;
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); (i & -kWarpThreads) < all; i += blockDim.x) {
      const int r = min(i >> shift, args_.tile.rows() - 1);
      use(r, row_scaling(r), i & (lanes - 1), i < all);
    }
  }

#if SOFTMAX_BULK_COPY
  // Each with the bytes that the receiver's barrier counts: no fence, which would wait for whatever
  // else is being stored. A block that has all parts has nothing more to come, and may end.
  __device__ __forceinline__ void send_to_blocks(const HeldParts &parts) const {
    const auto cluster = cooperative_groups::this_cluster();
    for_rows(parts.lanes, [&](int r, const RowScaling &scaling, int lane, bool is_there) {
#pragma unroll 1
      for (int which = 0; which < sums(); ++which) {
        const ColumnPart part = parts.merged(r, which, lane, scaling, kIsApart && which == 0);
        if (!is_there) continue;
        std::uint64_t words[2];
        memcpy(words, &part, sizeof part);
        ColumnPart *const to = at<ColumnPart>(args_.held_room.sent) +
                               which * args_.held_room.sent_sum + r * args_.column.blocks +
                               place().rank();
#pragma unroll 1
        for (int block = lane; block < args_.column.blocks; block += parts.lanes) {
          cuda::ptx::st_async(reinterpret_cast<std::uint64_t *>(cluster.map_shared_rank(to, block)),
                              words, cluster.map_shared_rank(barrier_, block));
        }
      }
    });
  }
#endif

  // Of the block's row `r`, by one thread: its numbers and whether it is left.
  __device__ __forceinline__ void finish(int r, const RowScaling &scaling, const ColumnPart &apart,
                                         const ColumnPart &plain) const {
    HeldNumbers &numbers = row_numbers()[r];
    const float max = needs_plain() ? plain.max : apart.max;
    const float finite = finite_or_zero(max);
    const ScaledTerms all(finite, scaling);
    const double reference = all.reference();
    left()[r] = is_left_row(all, scaling);
    if (kIsApart && args_.writes_stats()) row_stats()[r] = {max, apart.other, apart.sum, reference};
    const double sink = args_.buffers.sink != nullptr ? own()[r].sink : -Limits<double>::infinity();
    if (kIsApart && args_.is_log) {
      const double top = double(max) * scaling.size;
      const RowSums sums = {apart.sum, apart.other};
      numbers = {
          {finite, scaling.hi, scaling.lo, column_log_sum(args_, max, top, sink, reference, sums)}};
    } else if (needs_plain()) {
      numbers = softmax_numbers(args_, max, scaling, plain.sum, sink, is_coarse());
    }
  }

  // Rows' statistics: calls, at the end.
  __device__ __forceinline__ void write_stats() const {
#pragma unroll 1
    for (int r = static_cast<int>(threadIdx.x); r < args_.tile.rows(); r += blockDim.x) {
      const std::int64_t row = place().row_of(r);
      if (left()[r] == 0 && row >= 0) write_row_stats(args_, row, row_stats()[r]);
    }
  }

  // ---- outputs ----

  // make(lane of the pair, element) of each.
  template <bool kIsCoarse, typename Make>
  __device__ __forceinline__ void finish_each(int pair, Make make) {
    if constexpr (kIsCoarse || Held::kKeepsTerms) {
      held_.template finish<kIsCoarse>(pair, [&](typename Held::Group &value) {
#pragma unroll
        for (int k = 0; k < Held::kTogether; ++k) {
#pragma unroll
          for (int i = 0; i < 2; ++i) value[k][i] = make(i, value[k][i]);
        }
      });
    }
  }

  __device__ __forceinline__ void finish_pair(int pair) {
    float n[2][4];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const HeldNumbers numbers = row_numbers()[place().tile_row(2 * pair + i)];
#pragma unroll
      for (int k = 0; k < 4; ++k) n[i][k] = numbers.number[k];
    }
    ColumnFactor factor[2] = {};
    if (!(kIsApart && args_.is_log) && !is_coarse()) {
#pragma unroll
      for (int i = 0; i < 2; ++i) factor[i] = ColumnFactor::of(n[i], exponent_[2 * pair + i]);
    }
    if (kIsApart && args_.is_log) {
      if (is_coarse()) {
        finish_each<true>(
            pair, [&](int i, float x) { return coarse_log_value(x, n[i][0], n[i][1], n[i][3]); });
      } else {
        finish_each<false>(pair, [&](int i, float x) {
          RowScaling scaling = {};
          scaling.hi = n[i][1];
          scaling.lo = n[i][2];
          return scaled_log_value(x, n[i][0], scaling, n[i][3]);
        });
      }
    } else if (is_coarse()) {
      finish_each<true>(pair, [&](int i, float x) { return coarse_result(n[i], x); });
    } else if (factor[0].has_power || factor[1].has_power) {
      finish_each<false>(pair, [&](int i, float term) { return factor[i].powered(term); });
    } else {
      finish_each<false>(pair, [&](int i, float term) { return factor[i].plain(term); });
    }
  }

  const GeneralArgs &args_;
  Held held_;
  unsigned char *const memory_;
  std::uint64_t *const barrier_;  // of parts from other blocks
  float exponent_[kLanes];        // of what the thread's terms are against
  bool has_left_ = false;
};

// Threads of a block, and blocks on a multiprocessor that the compiler keeps registers for.
template <bool kIsAlone>
constexpr int kHeldColumnThreads = kIsAlone ? kHeldFewThreads : kHeldMostThreads;
template <typename X, bool kIsAlone>
constexpr int kHeldColumnBlocks = kIsAlone ? (sizeof(X) == 4 ? 4 : 7) : 1;

// A block is tile.width groups of rows by threads along the axis.
template <typename X, int kLanes, int kQuads, bool kIsApart, bool kIsAlone>
__global__ void __launch_bounds__(kHeldColumnThreads<kIsAlone>, kHeldColumnBlocks<X, kIsAlone>)
    held_column_kernel(const __grid_constant__ GeneralArgs args) {
  if constexpr (std::is_same_v<X, F8Byte> && !kConvertsF8) return;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ TeamScratch wide_scratch;
  __shared__ std::uint64_t barrier;
  HeldColumnCall<X, kLanes, kQuads, kIsApart, kIsAlone> call(args, memory, &barrier);
  call.run();
  call.run_left(&wide_scratch);
}

}  // namespace softmax
