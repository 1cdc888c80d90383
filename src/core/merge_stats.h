// Merging the statistics of a row's parts, for host and device alike: the same operations in the
// same order, so that both give the same bits.
#pragma once

#include <cstdint>

#include "core/exp.h"

namespace softmax {

// log(x) for a positive, normal x, by operations that every device rounds alike; within 1 ulp.
//
// x = 2^k m, m between sqrt(1/2) and sqrt(2). With s = (m - 1) / (m + 1), log(m) is 2 atanh(s): f -
// (f^2/2 - s (f^2/2 + R)), f = m - 1, R a polynomial in s^2 (the minimax one of fdlibm's e_log.c).
SOFTMAX_HD double log_of(double x) {
  const std::uint64_t bits = bits_of(x);
  // So that the mantissa's upper part decides between m and m / 2.
  const std::uint64_t shifted = bits + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
  const double k = static_cast<double>(static_cast<std::int64_t>(shifted >> 52) - 1023);
  const double m = float_of((shifted & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu);
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double r = 1.479819860511658591e-01;
  r = fma(r, z, 1.531383769920937332e-01);
  r = fma(r, z, 1.818357216161805012e-01);
  r = fma(r, z, 2.222219843214978396e-01);
  r = fma(r, z, 2.857142874366239149e-01);
  r = fma(r, z, 3.999999999940941908e-01);
  r = fma(r, z, 6.666666666666735130e-01);
  r = r * z;
  const double half = 0.5 * f * f;
  constexpr double kLn2Hi = 6.93147180369123816490e-01;  // k times it is exact
  constexpr double kLn2Lo = 1.90821492927058770002e-10;
  return k * kLn2Hi - ((half - fma(s, half + r, k * kLn2Lo)) - f);
}

struct MergedStats {
  float max;
  float sum;
  float lse;
};

// Of `parts` parts, whose numbers are `stride` floats apart: see softmax_merge_stats.
SOFTMAX_HD MergedStats merge_stats(const float *part_max, const float *part_sum, std::int64_t parts,
                                   std::int64_t stride) {
  constexpr double kLowest = -1.7976931348623157e+308;
  const float minus_infinity = -Limits<float>::infinity();
  const float nan = Limits<float>::infinity() - Limits<float>::infinity();
  float max = minus_infinity;
  for (std::int64_t p = 0; p < parts; ++p) {
    const float value = part_max[p * stride];
    if (value != value || value == Limits<float>::infinity()) return {nan, nan, nan};
    max = value > max ? value : max;
  }
  if (!(double{max} >= kLowest)) return {minus_infinity, 0.0f, minus_infinity};
  double sum = 0.0;
  for (std::int64_t p = 0; p < parts; ++p) {
    const float value = part_max[p * stride];
    if (value == minus_infinity) continue;
    sum += double{part_sum[p * stride]} * exp_of(raw_difference(double{value}, double{max}));
  }
  if (!(sum == sum)) return {nan, nan, nan};
  double log_sum = sum > 0.0 ? Limits<double>::infinity() : -Limits<double>::infinity();
  constexpr double kLeastNormal = 2.2250738585072014e-308;
  constexpr double kMoreBits = 18014398509481984.0;  // 2^54, whose logarithm is 54 log(2)
  if (sum > 0.0 && sum < kLeastNormal) {
    log_sum = log_of(sum * kMoreBits) - 54 * 6.93147180559945309417e-01;
  } else if (sum > 0.0 && sum < Limits<double>::infinity()) {
    log_sum = log_of(sum);
  }
  return {max, static_cast<float>(sum), static_cast<float>(double{max} + log_sum)};
}

}  // namespace softmax
