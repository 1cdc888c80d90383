// What a general call has left, against the reference. See general.h.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "support/general.h"

namespace softmax_test {
namespace {

// More elements than this are worth more than one thread.
constexpr std::int64_t kMany = 32768;

// Element i of an output, against the reference.
class Judge {
 public:
  Judge(const GeneralCase &c, const GeneralReference &reference, const GeneralResult &result)
      : c_(c),
        reference_(reference),
        result_(result),
        dtype_(c.is_backward() ? c.x_dtype : c.y_dtype),
        format_(format_of(dtype_)),
        bound_(c.is_backward() ? Bound{0.51, 0.51} : promised_bound(dtype_)),
        scale_(c.is_backward() ? 1.0 : y_scale_of(c)) {}

  long double expected(std::int64_t i) const {
    return reference_.y[static_cast<std::size_t>(i)] * scale_;
  }
  double got(std::int64_t i) const { return result_.y[i]; }
  double error(std::int64_t i) const { return error_ulps(format_, got(i), expected(i)); }

  bool is_right(std::int64_t i) const {
    const long double expected = this->expected(i);
    const double got = this->got(i);
    const bool subnormal = std::fabs(expected) < std::ldexp(1.0L, format_.min_exponent);
    const double allowed = subnormal ? std::max(bound_.subnormal_steps, bound_.ulps) : bound_.ulps;
    if (error(i) <= allowed) return true;
    if (format_.size_bytes == 1) {  // what saturation makes of it
      double cell = 0;
      encode(dtype_, static_cast<double>(expected), &cell, 0);
      cell = decode(dtype_, &cell, 0);
      if (cell == got || (std::isnan(cell) && std::isnan(got))) return true;
    }
    long double slack = 0;
    // What is left where v - row_max and log(row_sum) cancel.
    if (c_.given_stats && c_.is_log()) slack = 1e-15L;
    if (c_.tanh_ulps > 0 && c_.softcap > 0) {
      // What tanh's own error makes of v, and of the sum.
      const long double v = 2 * c_.tanh_ulps * std::ldexp(1.0L, std::ilogb(c_.softcap) - 52);
      slack += (c_.is_log() ? 1 : std::fabs(expected)) * v;
    }
    if (c_.is_backward()) {
      // The slack, and the rounding to the type from wherever it has led.
      const int exponent = std::max(expected == 0 ? format_.min_exponent : std::ilogb(expected),
                                    format_.min_exponent);
      slack += reference_.slack[static_cast<std::size_t>(i)] +
               std::ldexp(0.51L, exponent - format_.precision + 1);
    }
    return std::fabs(got - expected) <= slack;
  }

 private:
  const GeneralCase &c_;
  const GeneralReference &reference_;
  const GeneralResult &result_;
  const softmax_dtype_t dtype_;
  const Format &format_;
  const Bound bound_;
  const double scale_;
};

}  // namespace

std::string judge_general(const GeneralCase &c, const GeneralReference &reference,
                          const GeneralResult &result) {
  std::ostringstream wrong;
  if (result.status != SOFTMAX_SUCCESS) {
    char text[512];
    softmax_last_error(text, sizeof text);
    wrong << c.text() << ": status " << result.status << ": " << text;
    return wrong.str();
  }
  if (!result.damage.empty()) return c.text() + ": " + result.damage;

  const auto float_is = [&](const char *what, std::size_t row, float got, long double expected,
                            double ulps, double slack) {
    const double error = error_ulps(format_of(SOFTMAX_DTYPE_F32), got, expected);
    if (error <= ulps || std::fabs(got - expected) <= slack || wrong.tellp() != 0) return;
    wrong << c.text() << ": row " << row << ": " << what << " " << got << " for " << expected
          << ", " << error << " ulp apart";
  };
  const auto every = static_cast<std::size_t>(c.every);
  // What a row_sum that is rounded more than once leaves of its logarithm.
  const double log_slack = c.sum_ulps > 0.51 && !c.given_stats ? c.sum_ulps * 0x1p-23 : 0.0;
  for (std::size_t r = 0; c.has_stats && r < reference.row_max.size(); r += every) {
    const long double scale = std::fabs(reference.row_max[r]) + 1;
    if (!c.given_stats) {
      float_is("row_max", r, result.row_max[r], reference.row_max[r], 0.51, 0);
      const long double sum = reference.row_sum_against(r, result.row_max[r]);
      float_is("row_sum", r, result.row_sum[r], sum, c.sum_ulps,
               static_cast<double>(1e-14L * scale * sum));
    }
    float_is("lse", r, result.lse[r], reference.lse[r], 0.51,
             static_cast<double>(1e-14L * scale +
                                 (log_slack > 0 ? log_slack + 0x1p-24L * scale : 0.0L)));
  }
  if (c.op == SOFTMAX_OP_STATS || wrong.tellp() != 0) return wrong.str();

  const Judge judge(c, reference, result);
  const std::int64_t rows = c.rows(), cols = c.cols();
  std::int64_t bad = INT64_MAX, bad_count = 0;
#pragma omp parallel for schedule(static) reduction(min : bad) \
    reduction(+ : bad_count) if (rows / c.every * cols > kMany)
  for (std::int64_t r = 0; r < rows; r += c.every) {
    for (std::int64_t i = r * cols; i < (r + 1) * cols; ++i) {
      if (judge.is_right(i)) continue;
      ++bad_count;
      bad = std::min(bad, i);
    }
  }
  if (bad_count > 0) {
    wrong << c.text() << ": " << bad_count << " wrong, the first in row " << bad / cols
          << " column " << bad % cols << ": got " << judge.got(bad) << " expected "
          << static_cast<double>(judge.expected(bad)) << ", " << judge.error(bad) << " ulp apart";
  }
  return wrong.str();
}

std::string check_general(softmax_handle_t handle, const GeneralCase &c) {
  return check_general(handle, c, make_values(c));
}

std::string check_general(softmax_handle_t handle, const GeneralCase &c,
                          const GeneralValues &values) {
  const GeneralResult result = run_general(handle, c, values);
  return judge_general(c, make_general_reference(c, values), result);
}

}  // namespace softmax_test
