// See check.h.
#include "check.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "error.h"

namespace tool {
namespace {

using Wide = long double;

constexpr std::int64_t kMaxElements = 1 << 20;

// The bounds of softmax.h, section 3. Where long double is no wider than double, the reference's
// own rounding is added to the bound of f64.
double bound_ulp(const Dtype &dtype) {
  if (dtype.bytes == 2) return 0.51;
  return dtype.bytes == 8 && LDBL_MANT_DIG <= DBL_MANT_DIG ? 8 : 4;
}

// The distance in units in the last place of the type at `want`; infinite for a NaN.
double ulp_distance(double got, Wide want, const Dtype &dtype) {
  const int exponent = want == 0 ? dtype.min_exponent : std::ilogb(want);
  const Wide unit = std::ldexp(static_cast<Wide>(1),
                               std::max(exponent, dtype.min_exponent) - dtype.precision_bits + 1);
  const double distance = static_cast<double>(std::fabs(static_cast<Wide>(got) - want) / unit);
  return std::isnan(distance) ? HUGE_VAL : distance;
}

struct Reference {
  Wide max, rest;  // the largest, and the sum of exp(x - max) over all the others
};

Reference reference_of(const void *x, const Dtype &dtype, std::int64_t begin, std::int64_t cols) {
  std::int64_t at = begin;
  for (std::int64_t i = begin; i < begin + cols; ++i) {
    if (load_element(x, dtype, i) > load_element(x, dtype, at)) at = i;
  }
  Reference result{load_element(x, dtype, at), 0};
  for (std::int64_t i = begin; i < begin + cols; ++i) {
    if (i != at) result.rest += std::exp(load_element(x, dtype, i) - result.max);
  }
  return result;
}

}  // namespace

CheckResult check_rows(const void *x, const void *y, const Dtype &dtype, std::int64_t rows,
                       std::int64_t cols, bool is_log, const char *algo) {
  CheckResult result;
  const double bound = bound_ulp(dtype);
  const std::int64_t count = std::min(rows, std::max<std::int64_t>(2, kMaxElements / cols));
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t row = count == 1 ? 0 : k * (rows - 1) / (count - 1);
    const std::int64_t begin = row * cols;
    const Reference reference = reference_of(x, dtype, begin, cols);
    for (std::int64_t j = 0; j < cols; ++j) {
      const Wide shifted = load_element(x, dtype, begin + j) - reference.max;
      const Wide want =
          is_log ? shifted - std::log1p(reference.rest) : std::exp(shifted) / (1 + reference.rest);
      const double got = load_element(y, dtype, begin + j);
      const double distance = ulp_distance(got, want, dtype);
      if (!(distance <= bound)) {
        fail_run("{} is wrong: row {}, column {} is {}, the reference {} ({:.3g} ULP, at most {})",
                 algo, row, j, got, static_cast<double>(want), distance, bound);
      }
      result.max_ulp = std::max(result.max_ulp, distance);
    }
  }
  result.rows_checked = count;
  return result;
}

}  // namespace tool
