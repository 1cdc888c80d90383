// The reference of the general call. See general.h.
#include <cmath>
#include <limits>

#include "support/general.h"
#include "support/inputs.h"

namespace softmax_test {
namespace {

using Wide = long double;
constexpr Wide kInf = std::numeric_limits<Wide>::infinity();
constexpr Wide kNaN = std::numeric_limits<Wide>::quiet_NaN();

// The index along the dimension before the axis, of row r.
std::int64_t index_before(const GeneralCase &c, std::int64_t r) {
  const int axis = c.axis_index();
  for (int i = static_cast<int>(c.shape.size()) - 1; i > axis; --i) r /= c.shape[i];
  return axis == 0 ? 0 : r % c.shape[axis - 1];
}

class Row {
 public:
  Row(const GeneralCase &c, const GeneralValues &values, std::int64_t row)
      : c_(c), values_(values), row_(row), n_(c.cols()) {
    is_limit_ = c.has_row_scale && values.row_scale[row] == 0;
    kept_.reserve(static_cast<std::size_t>(n_));
    v_.reserve(static_cast<std::size_t>(n_));
    for (std::int64_t j = 0; j < n_; ++j) {
      kept_.push_back(is_kept(j));
      v_.push_back(value(j));
    }
  }

  void forward(GeneralReference *out) {
    find();
    if (c_.given_stats) take_given();
    for (std::int64_t j = 0; j < n_ && !out->y.empty(); ++j) out->y[index(j)] = output(j);
    Wide m = max_, sum = sum_, lse = max_ + log_sum_;
    if (is_limit_) sum = 1, lse = max_;
    if (nan_) m = sum = lse = kNaN;
    if (!nan_ && empty_) m = lse = -kInf, sum = 0;
    const auto row = static_cast<std::size_t>(row_);
    out->row_max[row] = m;
    out->row_sum[row] = sum;
    out->lse[row] = lse;
    out->is_limit[row] = is_limit_;
  }

  void backward(GeneralReference *out) {
    const bool zero = c_.empty_row == SOFTMAX_EMPTY_ROW_ZERO;
    if (c_.given_stats) {
      find();
      take_given();
    }
    Wide dot = 0, magnitude = 0;
    bool all_empty = !c_.given_stats && c_.is_log();
    for (std::int64_t j = 0; j < n_; ++j) {
      if (!kept_[j]) continue;
      all_empty = all_empty && at(values_.y, j) == -kInf;
      const Wide term = (c_.is_log() ? 1 : p(j)) * at(values_.dy, j);
      dot += term;
      magnitude += std::fabs(term);
    }
    const bool empty = zero && (all_empty || (c_.given_stats && empty_ && !nan_));
    for (std::int64_t j = 0; j < n_; ++j) {
      const bool is_zero = !kept_[j] || empty;
      const Wide s = is_zero ? 0 : slope(j);
      const Wide dy = at(values_.dy, j);
      const Wide dx = c_.is_log() ? s * (dy - p(j) * dot) : s * p(j) * (dy - dot);
      const Wide slack = c_.is_log() ? std::fabs(dy) + std::fabs(p(j)) * magnitude
                                     : std::fabs(p(j)) * (std::fabs(dy) + magnitude);
      out->y[index(j)] = is_zero ? 0 : dx;
      out->slack[index(j)] = is_zero ? 0 : std::ldexp(std::fabs(s) * slack, -46);
    }
  }

 private:
  std::size_t index(std::int64_t j) const { return static_cast<std::size_t>(row_ * n_ + j); }
  double at(const std::vector<double> &tensor, std::int64_t j) const { return tensor[index(j)]; }

  bool is_kept(std::int64_t j) const {
    const auto i = static_cast<std::size_t>(row_ * n_ + j);
    switch (c_.mask_kind) {
      case SOFTMAX_MASK_BOOL_KEEP: return values_.keep[i] != 0;
      case SOFTMAX_MASK_ADDITIVE: return values_.additive[i] != -HUGE_VAL;
      case SOFTMAX_MASK_CAUSAL: return j <= index_before(c_, row_) + c_.causal_offset;
      case SOFTMAX_MASK_ROW_LENGTH: return j < values_.length[row_];
      default: return true;
    }
  }

  template <typename W>
  W scaled(std::int64_t j) const {
    W v = W(at(values_.x, j)) * W(c_.scale);
    if (c_.has_row_scale && !is_limit_) v *= W(values_.row_scale[row_]);
    return v;
  }
  template <typename W>
  W formed(std::int64_t j) const {
    W v = scaled<W>(j);
    if (c_.softcap > 0) v = W(c_.softcap) * std::tanh(v / W(c_.softcap));
    if (c_.mask_kind == SOFTMAX_MASK_ADDITIVE) v += W(at(values_.additive, j));
    return v;
  }
  Wide value(std::int64_t j) const {
    if (!kept_[j] && c_.mask_kind != SOFTMAX_MASK_ADDITIVE) return -kInf;
    if (values_.x.empty()) return 0;
    const bool wide = c_.x_dtype == SOFTMAX_DTYPE_F64 || c_.y_dtype == SOFTMAX_DTYPE_F64;
    return wide ? Wide(formed<double>(j)) : formed<Wide>(j);
  }

  // The maximum, where it is, and the sum.
  void find() {
    max_ = -kInf;
    for (std::int64_t j = 0; j < n_; ++j) {
      nan_ = nan_ || std::isnan(v_[j]);
      if (v_[j] > max_) max_ = v_[j], top_ = j;
    }
    const Wide sink = c_.has_sink && !c_.given_stats ? Wide(values_.sink[row_]) : -kInf;
    nan_ = nan_ || std::isnan(sink);
    if (sink > max_) max_ = sink, top_ = -1;
    nan_ = nan_ || max_ == kInf;
    empty_ = !nan_ && max_ == -kInf;
    if (nan_ || empty_) return;
    Wide rest = 0;
    for (std::int64_t j = 0; j < n_; ++j) {
      if (j != top_) rest += std::exp(v_[j] - max_);
    }
    if (top_ >= 0 && sink > -kInf) rest += std::exp(sink - max_);
    sum_ = 1 + rest;
    log_sum_ = std::log1p(rest);
  }

  void take_given() {
    // At temperature 0 the maximum of the whole row may be elsewhere. v is a float64.
    if (is_limit_ && static_cast<float>(static_cast<double>(max_)) < values_.row_max[row_])
      top_ = -1;
    max_ = values_.row_max[row_];
    sum_ = values_.row_sum[row_];
    log_sum_ = std::log(sum_);
    nan_ = (is_limit_ && nan_) || std::isnan(max_) || max_ == kInf || std::isnan(sum_);
    empty_ = !nan_ && max_ == -kInf;
  }

  Wide output(std::int64_t j) const {
    const bool log = c_.is_log();
    if (nan_) return kNaN;
    if (empty_) return c_.empty_row != SOFTMAX_EMPTY_ROW_ZERO ? kNaN : log ? -kInf : 0;
    if (is_limit_) return log ? (j == top_ ? 0 : -kInf) : j == top_;
    return log ? (v_[j] - max_) - log_sum_ : std::exp(v_[j] - max_) / sum_;
  }

  Wide p(std::int64_t j) const {
    if (!c_.given_stats) {
      const Wide y = at(values_.y, j);
      return c_.is_log() ? std::exp(y) : y;
    }
    if (nan_ || (empty_ && c_.empty_row != SOFTMAX_EMPTY_ROW_ZERO)) return kNaN;
    if (empty_) return 0;
    return is_limit_ ? Wide(j == top_) : std::exp(v_[j] - max_) / sum_;
  }

  Wide slope(std::int64_t j) const {
    Wide s = c_.scale;
    if (c_.has_row_scale) s *= values_.row_scale[row_];
    if (c_.softcap > 0) {
      const Wide c = std::cosh(scaled<Wide>(j) / Wide(c_.softcap));
      s *= 1 / (c * c);
    }
    return s;
  }

  const GeneralCase &c_;
  const GeneralValues &values_;
  std::int64_t row_;
  std::int64_t n_;
  bool is_limit_ = false;
  bool nan_ = false;
  bool empty_ = false;
  std::vector<bool> kept_;
  std::vector<Wide> v_;
  Wide max_ = -kInf;
  Wide sum_ = 0;
  Wide log_sum_ = 0;
  std::int64_t top_ = -1;
};

}  // namespace

long double GeneralReference::row_sum_against(std::size_t row, float stored) const {
  if (is_limit[row] || !(std::fabs(row_max[row]) < kInf)) return row_sum[row];
  return std::isinf(stored) ? 0 : row_sum[row] * std::exp(row_max[row] - stored);
}

GeneralReference make_general_reference(const GeneralCase &c, const GeneralValues &values) {
  GeneralReference reference;
  const std::int64_t rows = c.rows();
  const auto count = static_cast<std::size_t>(rows * c.cols());
  if (c.is_backward()) {
    reference.y.resize(count);
    reference.slack.resize(count);
  } else {
    if (c.op != SOFTMAX_OP_STATS) reference.y.resize(count);
    reference.row_max.resize(static_cast<std::size_t>(rows));
    reference.row_sum = reference.lse = reference.row_max;
    reference.is_limit.resize(static_cast<std::size_t>(rows));
  }
#pragma omp parallel for schedule(guided) if (count > 16384)
  for (std::int64_t r = 0; r < rows; r += c.every) {
    Row row(c, values, r);
    c.is_backward() ? row.backward(&reference) : row.forward(&reference);
  }
  return reference;
}

}  // namespace softmax_test
