// Comparison. See compare.h.
#include "support/compare.h"

#include <cmath>
#include <cstdio>
#include <limits>

namespace softmax_test {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

template <typename W>
double error_of(const Format &format, double value, W reference) {
  if (std::isnan(value) || std::isnan(reference)) {
    return std::isnan(value) && std::isnan(reference) ? 0 : kNever;
  }
  if (std::isinf(reference)) return W(value) == reference ? 0 : kNever;
  if (reference == 0) return value == 0 ? 0 : kNever;
  int exponent = std::ilogb(reference);
  if (exponent > format.max_exponent) exponent = format.max_exponent;
  if (exponent < format.min_exponent) exponent = format.min_exponent;
  W stand_in = value;
  if (std::isinf(value)) {
    stand_in = std::copysign(std::ldexp(W(1), format.max_exponent + 1), W(value));
    // Everything past the format has this one spelling.
    if (std::signbit(value) == std::signbit(reference) &&
        std::fabs(reference) >= std::fabs(stand_in)) {
      return 0;
    }
  }
  return static_cast<double>(
      std::ldexp(std::fabs(stand_in - reference), format.precision - 1 - exponent));
}

template <typename W>
double allowance(const Format &format, const Bound &bound, W reference) {
  const W least_normal = std::ldexp(W(1), format.min_exponent);
  const W magnitude = std::fabs(reference);
  if (!(magnitude < least_normal)) return bound.ulps;
  if (bound.ulps <= bound.subnormal_steps) return bound.subnormal_steps;
  return bound.subnormal_steps +
         (bound.ulps - bound.subnormal_steps) * static_cast<double>(magnitude / least_normal);
}

template <typename W>
Comparison compare_with(const Elements &y, const std::vector<W> &reference, std::int64_t cols,
                        const Bound &bound) {
  Comparison result;
  const std::int64_t count = y.count();
  if (count != static_cast<std::int64_t>(reference.size())) {
    result.failure = "the output and the reference differ in size";
    return result;
  }
  const Format &format = format_of(y.dtype);
  const W least_normal = std::ldexp(W(1), format.min_exponent);
  double worst = 0;
  std::int64_t wrong = 0;
  std::int64_t first_wrong = count;
#pragma omp parallel for schedule(static) reduction(max : worst) reduction(+ : wrong) \
    reduction(min : first_wrong) if (count > 32768)
  for (std::int64_t i = 0; i < count; ++i) {
    const W expected = reference[static_cast<std::size_t>(i)];
    const double error = error_of(format, y[i], expected);
    const bool is_normal = !(std::fabs(expected) < least_normal);
    if (is_normal && error > worst) worst = error;
    if (!(error <= (is_normal ? bound.ulps : allowance(format, bound, expected)))) {
      ++wrong;
      if (i < first_wrong) first_wrong = i;
    }
  }
  result.worst_ulps = worst;
  if (wrong > 0) {
    char text[320];
    const W expected = reference[static_cast<std::size_t>(first_wrong)];
    std::snprintf(text, sizeof text,
                  "%lld of %lld elements are wrong, the first in row %lld, column %lld: got "
                  "%.17g, expected %.20Lg, %.4g ulp apart where %.4g are allowed",
                  static_cast<long long>(wrong), static_cast<long long>(count),
                  static_cast<long long>(first_wrong / cols),
                  static_cast<long long>(first_wrong % cols), y[first_wrong],
                  static_cast<long double>(expected), error_of(format, y[first_wrong], expected),
                  allowance(format, bound, expected));
    result.failure = text;
  }
  return result;
}

}  // namespace

Bound promised_bound(softmax_dtype_t y_dtype) {
  switch (y_dtype) {
    case SOFTMAX_DTYPE_F16:
    case SOFTMAX_DTYPE_BF16:
    case SOFTMAX_DTYPE_F8_E4M3:
    case SOFTMAX_DTYPE_F8_E5M2: return {0.51, 0.51};
    // exp's own last place and the multiplication by 1/sum are rounded separately.
    case SOFTMAX_DTYPE_F64: return {4, 1.5};
    default: return {4, 0.51};
  }
}

double error_ulps(const Format &format, double value, double reference) {
  return error_of(format, value, reference);
}
double error_ulps(const Format &format, double value, long double reference) {
  return error_of(format, value, reference);
}

Comparison compare(const Elements &y, const Reference &reference, bool is_log, std::int64_t cols,
                   const Bound &bound) {
  if (reference.is_wide) {
    return compare_with(y, is_log ? reference.wide_log_softmax : reference.wide_softmax, cols,
                        bound);
  }
  return compare_with(y, is_log ? reference.log_softmax : reference.softmax, cols, bound);
}

}  // namespace softmax_test
