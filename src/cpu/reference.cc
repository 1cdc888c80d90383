// REFERENCE for the general call: one row at a time, one element at a time, straight from the
// header's formulas, in float64 (long double for float64), with the C library's functions.
#include <cmath>
#include <type_traits>

#include "core/numerics.h"
#include "cpu/drivers.h"
#include "cpu/general.h"

namespace softmax {
namespace {

constexpr double kInfinity = HUGE_VAL;

double nan_value() { return kInfinity - kInfinity; }

double element(const void *data, std::int32_t dtype, std::int64_t at) {
  double value = 0;
  with_type(dtype,
            [&](auto type) { value = widen(static_cast<const decltype(type) *>(data)[at]); });
  return value;
}

template <typename Wide>
class ReferenceRow {
 public:
  ReferenceRow(const Call &call, std::int64_t row)
      : call_(call), g_(*call.general), b_(*call.buffers), row_(row), length_(call.length(row)) {}

  void run_forward() {
    find_top();
    if (is_limit() && g_.given_stats) take_given_limit();
    if (is_limit()) return write_limit();
    g_.given_stats ? take_given() : take_sums();
    for (std::int64_t j = 0; writes_y() && j < cols(); ++j) put_y(j, output(j));
  }

  void run_backward() {
    find_top();
    const bool from_x = g_.given_stats;
    if (from_x) is_limit() ? take_given_limit() : take_given();
    Wide dot = 0;
    CompensatedSum<Wide> sum;
    bool all_empty = true;
    for (std::int64_t j = 0; j < length_; ++j) {
      if (is_masked(j)) continue;
      all_empty = all_empty && !from_x && call_.is_log() && y(j) == -kInfinity;
      sum.add(call_.is_log() ? Wide{dy(j)} : probability(j) * Wide{dy(j)});
    }
    dot = sum.hi + sum.lo;
    const bool is_zero = (state_ == kEmpty || (all_empty && call_.is_log() && !from_x)) &&
                         call_.problem->empty_is_zero();
    for (std::int64_t j = 0; j < cols(); ++j) {
      put_dx(j, j >= length_ || is_masked(j) || is_zero ? Wide(0) : gradient(j, dot));
    }
  }

 private:
  enum State { kFinite, kEmpty, kNan };

  std::int64_t cols() const { return call_.layout().cols; }
  bool writes_y() const { return call_.problem->op != SOFTMAX_OP_STATS; }
  bool is_limit() const { return call_.is_limit_row(row_); }
  std::int64_t at(int tensor, std::int64_t j) const {
    return call_.layout().offset(tensor, row_) + j * call_.layout().axis_stride[tensor];
  }
  double dy(std::int64_t j) const { return element(b_.dy, g_.dy_dtype, at(kTensorDy, j)); }
  double y(std::int64_t j) const {
    return element(b_.y, call_.problem->y_dtype, at(kTensorY, j)) / y_scale();
  }
  double y_scale() const { return dtype_size(call_.problem->y_dtype) == 1 ? g_.y_scale : 1.0; }

  // ---- v, in float64 ----

  double scaled(std::int64_t j) const {
    double v = element(b_.x, call_.problem->x_dtype, at(kTensorX, j)) * g_.scale;
    if (b_.row_scale != nullptr && !is_limit()) v *= double{b_.row_scale[row_]};
    return v;
  }
  double capped(std::int64_t j) const {
    const double v = scaled(j);
    return g_.softcap > 0 ? g_.softcap * std::tanh(v / g_.softcap) : v;
  }
  double value(std::int64_t j) const {
    if (j >= length_) return -kInfinity;
    if (g_.mask_kind == SOFTMAX_MASK_BOOL_KEEP && is_masked(j)) return -kInfinity;
    const double v = capped(j);
    return g_.mask_kind == SOFTMAX_MASK_ADDITIVE ? v + additive(j) : v;
  }
  double additive(std::int64_t j) const {
    return static_cast<const float *>(b_.mask)[at(kTensorMask, j)];
  }
  bool is_masked(std::int64_t j) const {
    if (g_.mask_kind == SOFTMAX_MASK_ADDITIVE) return additive(j) == -kInfinity;
    if (g_.mask_kind != SOFTMAX_MASK_BOOL_KEEP) return false;
    return static_cast<const std::uint8_t *>(b_.mask)[at(kTensorMask, j)] == 0;
  }
  double sink() const {
    return b_.sink == nullptr ? -kInfinity : b_.sink[call_.layout().offset(kTensorSink, row_)];
  }

  // ---- forward ----

  // The first maximum: a column, or -1 for the sink or nothing.
  void find_top() {
    if (g_.is_backward() && !g_.given_stats) return;
    for (std::int64_t j = 0; j < length_; ++j) {
      const double v = value(j);
      if (v != v) state_ = kNan;
      if (v > double(max_)) {
        max_ = v;
        top_ = j;
      }
    }
    if (sink() != sink()) state_ = kNan;
    if (sink() > double(max_)) {
      max_ = sink();
      top_ = -1;
    }
    if (double(max_) == kInfinity) state_ = kNan;
    if (state_ == kFinite && double(max_) == -kInfinity) state_ = kEmpty;
  }

  void take_sums() {
    CompensatedSum<Wide> rest;
    for (std::int64_t j = 0; state_ == kFinite && j < length_; ++j) {
      if (j != top_) rest.add(std::exp(Wide{value(j)} - max_));
    }
    if (top_ >= 0 && sink() > -kInfinity) rest.add(std::exp(Wide{sink()} - max_));
    const Wide sum_less_1 = rest.hi + rest.lo;
    log_sum_ = std::log1p(sum_less_1);
    sum_ = 1 + sum_less_1;
    const auto stored = static_cast<float>(max_);
    if (state_ == kNan) return put_stats(nan_value(), nan_value(), nan_value());
    if (state_ == kEmpty || stored == -HUGE_VALF) return put_stats(-kInfinity, 0, -kInfinity);
    if (stored == HUGE_VALF) return put_stats(kInfinity, 0, kInfinity);
    put_stats(stored, sum_ * std::exp(max_ - Wide{stored}), max_ + log_sum_);
  }

  void take_given() {
    max_ = b_.row_max[row_];
    sum_ = b_.row_sum[row_];
    log_sum_ = std::log(sum_);
    state_ = std::isfinite(max_) && sum_ == sum_ ? kFinite
             : double(max_) == -kInfinity        ? kEmpty
                                                 : kNan;
    put_stats(0, 0,
              state_ == kFinite  ? max_ + log_sum_
              : state_ == kEmpty ? -kInfinity
                                 : nan_value());
  }

  Wide output(std::int64_t j) const {
    const bool is_log = call_.is_log();
    if (state_ == kNan || (state_ == kEmpty && !call_.problem->empty_is_zero())) return nan_value();
    if (state_ == kEmpty) return is_log ? -kInfinity : 0;
    const Wide difference = Wide{value(j)} - max_;
    return is_log ? difference - log_sum_ : std::exp(difference) / sum_;
  }

  // The maximum of a row in parts, or with a sink, may be elsewhere.
  void take_given_limit() {
    const double max = b_.row_max[row_];
    const double sum = b_.row_sum[row_];
    if (double{static_cast<float>(max_)} < max) top_ = -1;
    if (max == -kInfinity && state_ != kNan) state_ = kEmpty;
    if (max > -kInfinity && state_ == kEmpty) state_ = kFinite;
    if (max != max || max == kInfinity || sum != sum) state_ = kNan;
    max_ = max;
  }
  void write_limit() {
    const bool nan = state_ == kNan;
    const bool empty = state_ == kEmpty;
    const Wide max = nan ? Wide(nan_value()) : max_;
    put_stats(max, nan ? max : Wide(empty ? 0 : 1), max);
    for (std::int64_t j = 0; writes_y() && j < cols(); ++j) put_y(j, limit(j));
  }
  Wide limit(std::int64_t j) const {
    if (state_ != kFinite) return output(j);
    if (call_.is_log()) return j == top_ ? 0 : -kInfinity;
    return j == top_ ? 1 : 0;
  }

  // ---- backward ----

  Wide probability(std::int64_t j) const {
    if (!g_.given_stats) return call_.is_log() ? std::exp(Wide{y(j)}) : Wide{y(j)};
    if (is_limit()) return state_ == kFinite ? Wide(j == top_) : output(j);
    if (state_ == kNan || (state_ == kEmpty && !call_.problem->empty_is_zero())) return nan_value();
    return state_ == kEmpty ? Wide(0) : std::exp(Wide{value(j)} - max_) / sum_;
  }
  Wide gradient(std::int64_t j, Wide dot) const {
    Wide s = Wide{g_.scale} * (b_.row_scale == nullptr ? 1.0 : double{b_.row_scale[row_]});
    if (g_.softcap > 0) {
      const Wide c = std::cosh(Wide{scaled(j)} / Wide{g_.softcap});
      s *= 1 / (c * c);  // 1 - tanh^2, relatively right where that is nearly 0
    }
    const Wide p = probability(j);
    return call_.is_log() ? s * (Wide{dy(j)} - p * dot) : s * p * (Wide{dy(j)} - dot);
  }

  // ---- outputs ----

  void put(void *data, std::int32_t dtype, std::int64_t at, Wide value) const {
    with_type(dtype, [&](auto type) {
      using Y = decltype(type);
      static_cast<Y *>(data)[at] = narrow<Y>(static_cast<double>(value));
    });
  }
  void put_y(std::int64_t j, Wide value) const {
    put(b_.y, call_.problem->y_dtype, at(kTensorY, j), y_scale() == 1 ? value : value * y_scale());
  }
  void put_dx(std::int64_t j, Wide value) const {
    put(b_.dx, call_.problem->x_dtype, at(kTensorX, j), value);
  }
  void put_stats(Wide max, Wide sum, Wide lse) const {
    if (g_.is_backward()) return;
    if (!g_.given_stats && b_.row_max != nullptr) b_.row_max[row_] = static_cast<float>(max);
    if (!g_.given_stats && b_.row_sum != nullptr) b_.row_sum[row_] = static_cast<float>(sum);
    if (b_.lse != nullptr) b_.lse[row_] = static_cast<float>(lse);
  }

  const Call &call_;
  const General &g_;
  const GeneralBuffers &b_;
  std::int64_t row_;
  std::int64_t length_;
  State state_ = kFinite;
  std::int64_t top_ = -1;
  Wide max_ = -kInfinity;
  Wide sum_ = 0;
  Wide log_sum_ = 0;
};

template <typename Wide>
void run_rows(const Call &call) {
  const std::int64_t rows = call.problem->rows;
  const bool backward = call.general->is_backward();
#pragma omp parallel for schedule(guided) num_threads(threads_for(*call.problem))
  for (std::int64_t row = 0; row < rows; ++row) {
    ReferenceRow<Wide> reference(call, row);
    backward ? reference.run_backward() : reference.run_forward();
  }
}

}  // namespace

void run_reference_general(const Call &call) {
  const Problem &problem = *call.problem;
  const bool wide = problem.x_dtype == SOFTMAX_DTYPE_F64 || problem.y_dtype == SOFTMAX_DTYPE_F64 ||
                    (call.general->is_backward() && call.general->dy_dtype == SOFTMAX_DTYPE_F64);
  wide ? run_rows<long double>(call) : run_rows<double>(call);
}

}  // namespace softmax
