// log(1 + rest) for many rows at once. Compiled once for each SIMD target.
#if defined(SOFTMAX_CPU_LOG_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SOFTMAX_CPU_LOG_INL_H
#undef SOFTMAX_CPU_LOG_INL_H
#else
#define SOFTMAX_CPU_LOG_INL_H
#endif

#include "core/numerics.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace softmax {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rounds a number of rows up to what log_sums_in_place takes.
constexpr std::int64_t log_batch(std::int64_t rows) { return (rows + 7) / 8 * 8; }

// values[i] = log(1 + values[i]) to a few ulps of float64, which no float32 result sees; `count` is
// a multiple of 8. A NaN stays.
HWY_INLINE void log_1_plus_all(double *values, std::int64_t count) {
  const hn::CappedTag<double, 8> d;
  const std::int64_t step = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < count; i += step) {
    const auto x = hn::LoadU(d, values + i);
    hn::StoreU(hn::IfThenElse(hn::IsNaN(x), x, hn::Log1p(d, x)), d, values + i);
  }
}

// log s of one row, from s - 1; the same bits as in a batch.
template <typename T>
HWY_INLINE double log_sum_of(const CompensatedSum<double> &rest) {
  if constexpr (sizeof(T) == 8) {
    return log_1_plus(rest.hi) + rest.lo / (1.0 + rest.hi);
  } else {
    double values[8] = {rest.hi + rest.lo};
    log_1_plus_all(values, 8);
    return values[0];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace softmax
HWY_AFTER_NAMESPACE();

#endif  // per target
