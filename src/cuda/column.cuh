// Algorithm 15, COLUMN: rows that lie across memory, neighbouring rows being neighbours there: a
// tile of them in the shared memory of a block, or of a cluster's blocks, each of which has a part
// of the axis. Every input is read once, every output written once.
//
// A thread's quads (core/column_tile.h) come by asynchronous copy into places that nobody else
// looks at: shared memory serves as more registers. What the threads of a row find in common goes
// by way of lanes, warps and blocks to one thread, which works out the row's numbers for all. A row
// that this arithmetic is not for is left and computed in float64 afterwards: wide_row.cuh.
#pragma once

#include "core/column_tile.h"
#include "cuda/general/column_quads.cuh"
#include "cuda/general/column_row.cuh"
#include "cuda/general/column_team.cuh"
#include "cuda/prim/part_merge.cuh"

namespace softmax {

// What a row's outputs are made of.
struct alignas(16) ColumnNumbers {
  float terms[4];  // see ScaledTerms; with given statistics, log-softmax: scale and log(sum)
  float max;       // as the terms take it: a finite number
  // Softmax: the factor of a term, and what comes before it. Log-softmax: the scale, log(sum).
  // Until these are known the last is the row's maximum.
  float number[3];
};
static_assert(sizeof(ColumnNumbers) == kColumnNumbersBytes);

template <typename X>
class ColumnCall {
  using H = typename ColumnHeld<X>::Type;

 public:
  __device__ __forceinline__ ColumnCall(const GeneralArgs &args, const ColumnPlace &place,
                                        ColumnTeam &team, unsigned char *room, int *any_left)
      : args_(args),
        place_(place),
        team_(team),
        room_(room),
        any_left_(any_left),
        quads_(args, place, room),
        scaling_(RowScaling::of(args.general.scale)) {}

  __device__ __forceinline__ void run() {
    if (threadIdx.x == 0) *any_left_ = 0;
    quads_.load();
    find_max();
    const bool is_softmax = !args_.is_log && !args_.is_stats;
    if (!args_.general.given_stats) {
      if (args_.is_log || args_.writes_stats()) find_sums_apart();
      if (is_softmax) find_sums();
    }
    if (!args_.is_stats) store();
  }

  __device__ __forceinline__ void run_left(TeamScratch *scratch) const {
    if (*any_left_ == 0 || place_.rank != 0) return;
    const Team team = Team::of_block(scratch);
#pragma unroll 1
    for (int r = 0; r < args_.tile.rows(); ++r) {
      const std::int64_t row = place_.row_of(r);
      if (left()[r] != 0 && row >= 0) run_wide_row(args_, row, team);
    }
  }

 private:
  // Quads: as many terms of a row are added in float32.
  static constexpr int kTogether = ColumnQuads<X>::kTogether;

  __device__ __forceinline__ ColumnNumbers *numbers() const {
    return reinterpret_cast<ColumnNumbers *>(room_ + args_.room.numbers);
  }
  __device__ __forceinline__ unsigned char *left() const { return room_ + args_.room.left; }

  // ---- rows' numbers ----

  __device__ __forceinline__ RowScaling scaling_of(std::int64_t row) const {
    return args_.buffers.row_scale == nullptr ? scaling_ : RowScaling::of(place_.scale_of(row));
  }
  // Where nothing is asked of a row but its numbers, nobody has to know which it is.
  __device__ __forceinline__ std::int64_t needed_row(int r) const {
    const GeneralBuffers &b = args_.buffers;
    const bool is_needed = b.row_scale != nullptr || b.sink != nullptr ||
                           args_.general.given_stats || args_.writes_stats();
    return is_needed ? place_.row_of(r) : -1;
  }

  // ---- maxima ----

  __device__ __forceinline__ void find_max() {
    quads_.wait();
    ColumnMax max[kQuad];
    quads_.take_max(max);
    team_.reduce(max, [&](int r, const ColumnMax &all) { finish_max(r, all.max); });
  }

  __device__ __forceinline__ void finish_max(int r, float max) {
    const std::int64_t row = needed_row(r);
    const RowScaling scaling = scaling_of(row);
    const float finite = is_finite_number(max) ? max : 0.0f;
    const ScaledTerms terms(finite, scaling);
    ColumnNumbers n;
    terms.give(n.terms);
    n.max = finite;
    n.number[0] = scaling.hi;
    n.number[1] = scaling.lo;
    n.number[2] = max;
    bool is_left = !scaling.is_usual || !terms.is_near();
    if (args_.general.given_stats && row >= 0 && !is_left) {
      is_left = !finish_given(row, terms, max, scaling, &n);
    }
    numbers()[r] = n;
    left()[r] = is_left;
    if (is_left) *any_left_ = 1;
  }

  // False: what is not finite, or far from what is given, goes the long way.
  __device__ __forceinline__ bool finish_given(std::int64_t row, const ScaledTerms &terms,
                                               float max, const RowScaling &scaling,
                                               ColumnNumbers *n) const {
    const double given_max = args_.buffers.row_max[row];
    const double given_sum = args_.buffers.row_sum[row];
    const double way = double(max) * scaling.size - given_max;
    if (!(way > -60.0 && way < 60.0 && given_sum > 0x1p-60 && given_sum < 0x1p60)) return false;
    const double log_sum = log(given_sum);
    if (args_.buffers.lse != nullptr && place_.rank == 0) {
      args_.buffers.lse[row] = float(given_max + log_sum);
    }
    if (args_.is_log) {
      memcpy(n->terms, &scaling.size, sizeof(double));
      memcpy(n->terms + 2, &log_sum, sizeof(double));
      n->max = static_cast<float>(given_max);
    } else {
      put_factor(exp(terms.reference() - given_max) / given_sum * 0x1p-64, n->number);
    }
    return true;
  }

  // ---- sums ----

  struct LaneNumbers {
    ColumnNumbers of[kQuad];
  };
  __device__ __forceinline__ LaneNumbers lane_numbers() const {
    LaneNumbers lanes;
#pragma unroll
    for (int i = 0; i < kQuad; ++i) {
      const ColumnNumbers *const from = &numbers()[place_.tile_row(i)];
      lanes.of[i] = *from;
    }
    return lanes;
  }

  // What equals the maximum is counted.
  __device__ __forceinline__ void find_sums_apart() {
    const LaneNumbers lane = lane_numbers();
    ColumnSums sums[kQuad];
#pragma unroll
    for (int i = 0; i < kQuad; ++i) sums[i] = ColumnSums::none();
#pragma unroll 1
    for (int first = 0; first < args_.column.quads; first += kTogether) {
      float value[kTogether][kQuad];
      quads_.get(first, value);
#pragma unroll
      for (int i = 0; i < kQuad; ++i) {
        const ScaledTerms make(lane.of[i].terms);
        float term[kTogether];
#pragma unroll
        for (int k = 0; k < kTogether; ++k) {
          const bool is_one = value[k][i] == lane.of[i].max;
          const float made = make(value[k][i]);
          term[k] = is_one ? 0.0f : made;
          sums[i].ones += is_one ? 1.0f : 0.0f;
        }
        sums[i].others += sum_of<ScaledTerms>(term);
      }
    }
    team_.reduce(sums, [&](int r, const ColumnSums &all) { finish_sums_apart(r, all); });
  }

  __device__ __forceinline__ void finish_sums_apart(int r, const RowSums &sums) {
    ColumnNumbers &n = numbers()[r];
    const std::int64_t row = needed_row(r);
    const RowScaling scaling = scaling_of(row);
    const double sink = sink_of_row(args_, row);
    const float max = n.number[2];
    const double top = double(max) * scaling.size;
    const double reference = ScaledTerms(n.terms).reference();
    if (left()[r] == 0 && row >= 0 && args_.writes_stats() && place_.rank == 0) {
      write_row_stats(args_, row, RowNumbers{max, sums.ones, sums.others, reference});
    }
    if (!args_.is_log) return;
    n.number[2] = column_log_sum(args_, max, top, sink, reference, sums);
  }

  __device__ __forceinline__ bool is_coarse() const { return args_.y_dtype != SOFTMAX_DTYPE_F32; }
  // Terms take the place of elements where they are as wide.
  static constexpr bool kKeepsTerms = sizeof(H) == 4;

  __device__ __forceinline__ void find_sums() {
    const LaneNumbers lane = lane_numbers();
    if (is_coarse()) {
      add_terms<ScaledCoarseTerms>([&](int i, float x) {
        return ScaledCoarseTerms(lane.of[i].max, lane.of[i].terms[0])(x);
      });
    } else {
      add_terms<ScaledTerms>([&](int i, float x) { return ScaledTerms(lane.of[i].terms)(x); });
    }
    ColumnSums sums[kQuad];
#pragma unroll
    for (int i = 0; i < kQuad; ++i) sums[i] = {{sum_[i], 0.0f}};
    team_.reduce(sums, [&](int r, const ColumnSums &all) { finish_sums(r, all.others); });
  }
  template <typename Terms, typename Make>
  __device__ __forceinline__ void add_terms(Make make) {
    double sum[kQuad] = {};
#pragma unroll 1
    for (int first = 0; first < args_.column.quads; first += kTogether) {
      float value[kTogether][kQuad];
      quads_.get(first, value);
#pragma unroll
      for (int i = 0; i < kQuad; ++i) {
        float term[kTogether];
#pragma unroll
        for (int k = 0; k < kTogether; ++k) {
          term[k] = make(i, value[k][i]);
          value[k][i] = term[k];
        }
        sum[i] += sum_of<Terms>(term);
      }
      if constexpr (kKeepsTerms) quads_.put(first, value);
    }
#pragma unroll
    for (int i = 0; i < kQuad; ++i) sum_[i] = sum[i];
  }

  __device__ __forceinline__ void finish_sums(int r, double total) {
    ColumnNumbers &n = numbers()[r];
    const std::int64_t row = needed_row(r);
    const double sink = sink_of_row(args_, row);
    const float max = n.number[2];
    const double reference =
        is_coarse() ? double(max) * scaling_of(row).size : ScaledTerms(n.terms).reference();
    put_sum_factor(args_, max, sink, reference, total, n.number);
  }

  // ---- outputs ----

  // A loop for each way of making outputs, which then has registers for what it needs.
  __device__ __forceinline__ void store() {
    const bool is_given = args_.general.given_stats;
    if (args_.is_log && is_given) return store_given_log();
    if (args_.is_log) {
      const LaneNumbers lane = lane_numbers();
      return store_with<2>([&](int i, float x) {
        RowScaling scaling = {};
        scaling.hi = lane.of[i].number[0];
        scaling.lo = lane.of[i].number[1];
        return scaled_log_value(x, lane.of[i].max, scaling, lane.of[i].number[2]);
      });
    }
    if constexpr (kKeepsTerms) {
      if (!is_given) return store_terms();
    } else {
      if (!is_given && is_coarse()) return store_coarse();
    }
    const LaneNumbers lane = lane_numbers();
    store_with<2>([&](int i, float x) {
      return scaled_term(ScaledTerms(lane.of[i].terms)(x), lane.of[i].number);
    });
  }

  static __device__ __forceinline__ float scaled_term(float term, const float (&number)[3]) {
    term *= number[2];
    return fmaf(term, number[0], term * number[1]);
  }
  __device__ __forceinline__ void store_given_log() {
    store_with<2>([&](int i, float x) {
      // Where few come there are no registers for it.
      const volatile ColumnNumbers *const n = &numbers()[place_.tile_row(i)];
      const volatile double *const wide = reinterpret_cast<const volatile double *>(n->terms);
      return static_cast<float>((double(x) * wide[0] - double(n->max)) - wide[1]);
    });
  }
  __device__ __forceinline__ void store_terms() {
    float number[kQuad][3];
#pragma unroll
    for (int i = 0; i < kQuad; ++i) {
      const ColumnNumbers &n = numbers()[place_.tile_row(i)];
#pragma unroll
      for (int k = 0; k < 3; ++k) number[i][k] = n.number[k];
    }
    store_with<4>([&](int i, float term) { return scaled_term(term, number[i]); });
  }
  // Terms for the second time; what they are multiplied with before is in their exponent.
  __device__ __forceinline__ void store_coarse() {
    float max[kQuad], log2[kQuad], factor[kQuad], offset[kQuad];
#pragma unroll
    for (int i = 0; i < kQuad; ++i) {
      const ColumnNumbers &n = numbers()[place_.tile_row(i)];
      max[i] = n.max;
      log2[i] = n.terms[0];
      factor[i] = n.number[0];
      offset[i] = n.number[2] == 1.0f ? 64.0f : 0.0f;
    }
    store_with<4>([&](int i, float x) {
      return coarse_power_of_two(fmaf(x - max[i], log2[i], offset[i])) * factor[i];
    });
  }

  // `make`s, of lane and element, as many quads at a time.
  template <int kCount, typename Make>
  __device__ __forceinline__ void store_with(Make make) {
    int ends[kQuad];  // of what is written, by lanes
    int least_end = place_.cols();
#pragma unroll
    for (int i = 0; i < kQuad; ++i) {
      const bool is_row = place_.row_of_lane(i) < place_.rows.count;
      ends[i] = is_row && left()[place_.tile_row(i)] == 0 ? place_.cols() : 0;
      least_end = min(least_end, ends[i]);
    }
    // Of quads that are stored as words.
    const int whole_end = args_.tile.y_is_whole ? least_end - (args_.tile.positions() - 1) : 0;
    const ColumnPlace::Steps step = place_.steps(kTensorY);
    const std::int64_t quad_step = args_.column.threads * step.axis;
    int at = place_.position(0);
    std::int64_t y = quads_.y_begin() + at * step.axis;
#pragma unroll 1
    for (int first = 0; first < args_.column.quads; first += kCount) {
      float value[kCount][kQuad];
      quads_.get(first, value);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
#pragma unroll
        for (int i = 0; i < kQuad; ++i) value[k][i] = make(i, value[k][i]);
      }
      const Range range = {args_.column.quads - first, at, whole_end};
      switch (args_.y_dtype) {
        case SOFTMAX_DTYPE_F16: put_y<__half>(range, y, step, quad_step, ends, value); break;
        case SOFTMAX_DTYPE_BF16:
          put_y<__nv_bfloat16>(range, y, step, quad_step, ends, value);
          break;
        case SOFTMAX_DTYPE_F8_E4M3:
          if constexpr (kConvertsF8) put_y<f8_e4m3_t>(range, y, step, quad_step, ends, value);
          break;
        case SOFTMAX_DTYPE_F8_E5M2:
          if constexpr (kConvertsF8) put_y<f8_e5m2_t>(range, y, step, quad_step, ends, value);
          break;
        default: put_y<float>(range, y, step, quad_step, ends, value); break;
      }
      at += kCount * args_.column.threads;
      y += kCount * quad_step;
    }
  }

  struct Range {
    int quads;      // that there are
    int at;         // the first one's position
    int whole_end;  // before this quads are words
  };

  template <typename Y, int kCount>
  __device__ __forceinline__ void put_y(const Range &range, std::int64_t y_at,
                                        const ColumnPlace::Steps &step, std::int64_t quad_step,
                                        const int (&ends)[kQuad],
                                        float (&value)[kCount][kQuad]) const {
    Y *to = static_cast<Y *>(args_.buffers.y) + y_at;
    int at = range.at;
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      if constexpr (sizeof(Y) == 1) {
#pragma unroll
        for (int i = 0; i < kQuad; ++i) {
          value[k][i] = static_cast<float>(double(value[k][i]) * args_.general.y_scale);
        }
      }
      if (at < range.whole_end && k < range.quads) {
        store_values(to, value[k]);
      } else if (k < range.quads) {
        put_pieces(to, at, step, ends, value[k]);
      }
      at += args_.column.threads;
      to += quad_step;
    }
  }
  template <typename Y>
  __device__ __forceinline__ void put_pieces(Y *to, int at, const ColumnPlace::Steps &step,
                                             const int (&ends)[kQuad],
                                             const float (&value)[kQuad]) const {
#pragma unroll
    for (int i = 0; i < kQuad; ++i) {
      if (at + place_.position_step(i) < ends[i]) {
        to[place_.lane_offset(step, i)] = narrow_value<Y>(value[i]);
      }
    }
  }

  const GeneralArgs &args_;
  const ColumnPlace &place_;
  ColumnTeam &team_;
  unsigned char *room_;
  int *any_left_;
  ColumnQuads<X> quads_;
  RowScaling scaling_;  // without row_scale
  double sum_[kQuad];
};

// A block is tile.width groups of rows by threads along the axis.
template <typename X>
__global__ void __launch_bounds__(kColumnMostThreads, 2)
    column_kernel(const __grid_constant__ GeneralArgs args) {
  if constexpr (std::is_same_v<X, F8Byte> && !kConvertsF8) return;
  extern __shared__ __align__(16) unsigned char room[];
  __shared__ TeamScratch wide_scratch;
  __shared__ int any_left;
  const ColumnPlace place(args);
  ColumnTeam team(args, place, room);
  team.arrive();
  ColumnCall<X> call(args, place, team, room, &any_left);
  call.run();
  call.run_left(&wide_scratch);
}

}  // namespace softmax
