// A row of the general call in float64, from the header's formulas: every type, layout, mask, scale
// and statistic, forward and backward. It is what takes whatever no faster way takes, and single
// rows that a faster way does not: those at temperature 0, say.
//
// A team's threads have the columns thread, thread + threads, ...: the order of additions depends
// on the number of columns and threads, not on where elements lie.
#pragma once

#include "cuda/general/args.h"
#include "cuda/general/element.cuh"
#include "cuda/general/team.cuh"

namespace softmax {

// Each of them once in a kernel, not at every place that asks for it: single rows come here.
static __device__ __noinline__ double wide_exp(double x) { return exp(x); }
static __device__ __noinline__ double capped_at(double v, double cap) {
  return cap * tanh(v / cap);
}
// 1 - tanh^2 as 1 / cosh^2: relatively right where tanh is near 1.
static __device__ __noinline__ double slope_of_cap(double v, double cap) {
  const double c = cosh(v / cap);
  return 1.0 / (c * c);
}
static __device__ __noinline__ double load_any(const void *data, std::int32_t dtype,
                                               std::int64_t at) {
  return load_wide(data, dtype, at);
}
static __device__ __noinline__ void store_any(void *data, std::int32_t dtype, std::int64_t at,
                                              double value) {
  store_wide(data, dtype, at, value);
}

class WideRow {
 public:
  __device__ __forceinline__ WideRow(const GeneralArgs &args, std::int64_t row, const Team &team)
      : args_(args),
        team_(team),
        row_(row),
        cols_(args.layout().cols),
        length_(row_length(args, row)),
        scale_(args.general.scale),
        is_limit_(args.is_limit_row(row)) {
    if (args.buffers.row_scale != nullptr) row_scale_ = args.buffers.row_scale[row];
#pragma unroll 1
    for (int t = 0; t < kTensorSink; ++t) begin_[t] = row_begin(args, t, row);
    if (args.buffers.sink != nullptr) {
      sink_ = args.buffers.sink[row_begin(args, kTensorSink, row)];
    }
  }

  __device__ __forceinline__ void forward() {
    if (is_limit_) return write_limit();
    if (args_.general.given_stats) return write_given();
    OnlineSum<double> online;
    for_columns(length_, [&](std::int64_t col) { online.add(value(col)); });
    if (team_.thread() == 0 && args_.buffers.sink != nullptr) online.add(sink_);
    const Pair<double> own = online.pair();
    const double max = team_.max(own.max);
    const CompensatedSum<double> sum = team_.sum(own.sum_against(max));
    if (args_.writes_stats()) put_sums(max, sum);
    if (args_.is_stats) return;
    const RowFactors<double> factors = finish(max, sum, args_.empty_is_zero, args_.is_log);
    for_columns(cols_, [&](std::int64_t col) {
      put_y(col, output_value(value(col), factors, args_.is_log));
    });
  }

  __device__ __forceinline__ void backward() {
    const bool from_x = args_.general.given_stats;
    State state = State::kFinite;
    Limit limit;
    if (from_x && is_limit_) {
      limit = find_limit();
      state = limit.state;
    } else if (from_x) {
      state = given_state();
    }
    CompensatedSum<double> own;
    bool has_some = false;
    for_columns(length_, [&](std::int64_t col) {
      if (is_masked(col)) return;
      if (!from_x && args_.is_log) has_some = has_some || y(col) != -infinity();
      own.add(args_.is_log ? dy(col) : probability(col, state, limit) * dy(col));
    });
    const CompensatedSum<double> dot = team_.sum(own);
    if (!from_x && args_.is_log && !team_.any(has_some)) state = State::kEmpty;
    const bool is_zero = state == State::kEmpty && args_.empty_is_zero;
    for_columns(cols_, [&](std::int64_t col) {
      const bool is_nothing = is_zero || col >= length_ || is_masked(col);
      put(args_.buffers.dx, args_.x_dtype, kTensorX, col,
          is_nothing ? 0.0 : gradient(col, dot, state, limit));
    });
  }

 private:
  enum class State { kFinite, kEmpty, kNan };
  // At temperature 0: the column that is 1, or -1.
  struct Limit {
    State state = State::kFinite;
    double max = 0;
    std::int64_t at = -1;
  };

  static __device__ __forceinline__ double infinity() { return Limits<double>::infinity(); }
  static __device__ __forceinline__ double not_a_number() { return infinity() - infinity(); }
  static __device__ __forceinline__ bool is_finite(double v) {
    return v >= Limits<double>::lowest() && v <= -Limits<double>::lowest();
  }

  template <typename Use>
  __device__ __forceinline__ void for_columns(std::int64_t end, Use use) const {
#pragma unroll 1
    for (std::int64_t col = team_.thread(); col < end; col += team_.threads()) use(col);
  }
  __device__ __forceinline__ std::int64_t at(int tensor, std::int64_t col) const {
    return begin_[tensor] + col * args_.layout().axis_stride[tensor];
  }

  // ---- elements ----

  __device__ __noinline__ double dy(std::int64_t col) const {
    return load_any(args_.buffers.dy, args_.general.dy_dtype, at(kTensorDy, col));
  }
  __device__ __forceinline__ double y(std::int64_t col) const {
    const double stored = load_any(args_.buffers.y, args_.y_dtype, at(kTensorY, col));
    return args_.general.y_scale == 1.0 ? stored : stored / args_.general.y_scale;
  }
  __device__ __forceinline__ float added(std::int64_t col) const {
    return static_cast<const float *>(args_.buffers.mask)[at(kTensorMask, col)];
  }
  // By a mask that is no length.
  __device__ __noinline__ bool is_masked(std::int64_t col) const {
    switch (args_.general.mask_kind) {
      case SOFTMAX_MASK_ADDITIVE: return added(col) == -Limits<float>::infinity();
      case SOFTMAX_MASK_BOOL_KEEP:
        return static_cast<const std::uint8_t *>(args_.buffers.mask)[at(kTensorMask, col)] == 0;
      default: return false;
    }
  }
  __device__ __forceinline__ double scaled(std::int64_t col) const {
    double v = load_any(args_.buffers.x, args_.x_dtype, at(kTensorX, col)) * scale_;
    if (args_.buffers.row_scale != nullptr && !is_limit_) v *= row_scale_;
    return v;
  }
  // v. What lies past the row's length is not read.
  __device__ __noinline__ double value(std::int64_t col) const {
    if (col >= length_) return -infinity();
    const bool is_added = args_.general.mask_kind == SOFTMAX_MASK_ADDITIVE;
    if (!is_added && is_masked(col)) return -infinity();
    double v = scaled(col);
    const double cap = args_.general.softcap;
    if (cap > 0) v = capped_at(v, cap);
    return is_added ? v + double{added(col)} : v;
  }

  // ---- outputs ----

  __device__ __forceinline__ void put(void *data, std::int32_t dtype, int tensor, std::int64_t col,
                                      double result) const {
    store_any(data, dtype, at(tensor, col), result);
  }
  __device__ __noinline__ void put_y(std::int64_t col, double result) const {
    const double y_scale = args_.general.y_scale;
    put(args_.buffers.y, args_.y_dtype, kTensorY, col, y_scale == 1.0 ? result : result * y_scale);
  }
  // By one thread: what is no output is null.
  __device__ __noinline__ void put_stats(double max, double sum, double lse) const {
    if (team_.thread() != 0) return;
    const GeneralBuffers &b = args_.buffers;
    if (!args_.general.given_stats && b.row_max != nullptr) b.row_max[row_] = float(max);
    if (!args_.general.given_stats && b.row_sum != nullptr) b.row_sum[row_] = float(sum);
    if (b.lse != nullptr) b.lse[row_] = float(lse);
  }
  // `sum` is against max, in units.
  __device__ __forceinline__ void put_sums(double max, const CompensatedSum<double> &sum) const {
    const bool is_empty = max < Limits<double>::lowest() && sum.hi == sum.hi;
    if (is_empty) return put_stats(-infinity(), 0.0, -infinity());
    if (!is_finite(max) || sum.hi != sum.hi) {
      return put_stats(not_a_number(), not_a_number(), not_a_number());
    }
    const double stored = static_cast<float>(max);
    if (!is_finite(stored)) return put_stats(stored, 0.0, stored);
    constexpr double kFromUnit = 0x1p-64;
    const double log_sum = log1p(sum.without(sum_unit<double>()) * kFromUnit);
    put_stats(stored, (sum.hi + sum.lo) * kFromUnit * wide_exp(max - stored), max + log_sum);
  }

  // ---- rows whose statistics are given ----

  __device__ __forceinline__ State given_state() const {
    const double max = args_.buffers.row_max[row_];
    const double sum = args_.buffers.row_sum[row_];
    if (is_finite(max) && sum == sum) return State::kFinite;
    return max < Limits<double>::lowest() ? State::kEmpty : State::kNan;
  }
  // What all of an empty row or one with a NaN is.
  __device__ __forceinline__ double constant(State state) const {
    if (state == State::kNan || !args_.empty_is_zero) return not_a_number();
    return args_.is_log ? -infinity() : 0.0;
  }
  // exp(v - max) / sum for any v, with the rounding error of the difference.
  __device__ __noinline__ double given_probability(double v) const {
    const Split<double> d = two_sum(v, -double{args_.buffers.row_max[row_]});
    double term = wide_exp(d.hi);
    if (is_finite(term) && term > 0) term += term * d.lo;
    return term / double{args_.buffers.row_sum[row_]};
  }
  __device__ __forceinline__ void write_given() const {
    const State state = given_state();
    const double max = args_.buffers.row_max[row_];
    const double log_sum = log(double{args_.buffers.row_sum[row_]});
    if (args_.buffers.lse != nullptr) {
      put_stats(0, 0,
                state == State::kFinite  ? max + log_sum
                : state == State::kEmpty ? -infinity()
                                         : not_a_number());
    }
    for_columns(cols_, [&](std::int64_t col) {
      if (state != State::kFinite) return put_y(col, constant(state));
      const double v = value(col);
      if (!args_.is_log) return put_y(col, given_probability(v));
      const Split<double> d = difference(v, max);
      put_y(col, (d.hi - log_sum) + d.lo);
    });
  }

  // ---- rows at temperature 0 ----

  __device__ __noinline__ Limit find_limit() const {
    double own_max = -infinity();
    for_columns(length_, [&](std::int64_t col) { own_max = max_or_nan(own_max, value(col)); });
    double max = team_.max(own_max);
    // Columns are numbers that float64 holds exactly.
    double own_at = infinity();
    for_columns(length_, [&](std::int64_t col) {
      if (value(col) == max && double(col) < own_at) own_at = double(col);
    });
    const double first = team_.min(own_at);
    Limit limit;
    limit.at = first < infinity() && max > -infinity() ? static_cast<std::int64_t>(first) : -1;
    bool is_nan = max != max || sink_ != sink_;
    if (sink_ > max) {
      max = sink_;
      limit.at = -1;
    }
    is_nan = is_nan || max == infinity();
    if (args_.general.given_stats) {
      // The row's maximum may be in another part of it, or the sink.
      const double given = args_.buffers.row_max[row_];
      const double given_sum = args_.buffers.row_sum[row_];
      if (static_cast<float>(max) < given) limit.at = -1;
      is_nan = is_nan || given_sum != given_sum || given != given || given == infinity();
      max = given;
    }
    limit.state = is_nan                           ? State::kNan
                  : max < Limits<double>::lowest() ? State::kEmpty
                                                   : State::kFinite;
    limit.max = is_nan ? not_a_number() : max;
    return limit;
  }
  __device__ __forceinline__ void write_limit() const {
    const Limit limit = find_limit();
    put_stats(limit.max,
              limit.state == State::kNan     ? limit.max
              : limit.state == State::kEmpty ? 0.0
                                             : 1.0,
              limit.max);
    if (args_.is_stats) return;
    for_columns(cols_, [&](std::int64_t col) {
      if (limit.state != State::kFinite) return put_y(col, constant(limit.state));
      const bool is_top = col == limit.at;
      put_y(col, args_.is_log ? (is_top ? 0.0 : -infinity()) : (is_top ? 1.0 : 0.0));
    });
  }

  // ---- backward ----

  __device__ __noinline__ double probability(std::int64_t col, State state,
                                             const Limit &limit) const {
    if (!args_.general.given_stats) return args_.is_log ? wide_exp(y(col)) : y(col);
    if (state == State::kNan || (state == State::kEmpty && !args_.empty_is_zero)) {
      return not_a_number();
    }
    if (state == State::kEmpty) return 0.0;
    return is_limit_ ? (col == limit.at ? 1.0 : 0.0) : given_probability(value(col));
  }
  __device__ __forceinline__ double gradient(std::int64_t col, const CompensatedSum<double> &dot,
                                             State state, const Limit &limit) const {
    double s = scale_;
    if (args_.buffers.row_scale != nullptr) s *= row_scale_;
    const double cap = args_.general.softcap;
    if (cap > 0) s *= slope_of_cap(scaled(col), cap);
    const double p = probability(col, state, limit);
    if (args_.is_log) return s * (dy(col) - (p * dot.hi + p * dot.lo));
    const Split<double> d = two_sum(dy(col), -dot.hi);
    return s * (p * (d.hi + (d.lo - dot.lo)));
  }

  const GeneralArgs &args_;
  const Team &team_;
  std::int64_t row_;
  std::int64_t cols_;
  std::int64_t length_;
  std::int64_t begin_[kTensorSink];
  double scale_;
  double row_scale_ = 1.0;
  double sink_ = -Limits<double>::infinity();
  bool is_limit_;
};

// By all threads of the team.
static __device__ __noinline__ void run_wide_row(const GeneralArgs &args, std::int64_t row,
                                                 const Team &team) {
  WideRow(args, row, team).forward();
}
static __device__ __noinline__ void run_wide_row_backward(const GeneralArgs &args, std::int64_t row,
                                                          const Team &team) {
  WideRow(args, row, team).backward();
}

}  // namespace softmax
