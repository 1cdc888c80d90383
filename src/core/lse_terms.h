// exp(x * s) over the many x of a row for its log-sum-exp alone, which is wanted to 2^-21 and not
// to an ulp of the sum: one fused multiply-add and the hardware's power of two. For host and device
// alike.
//
// With log2(s e) = L + l, a term is 2^(x L + offset), the offset being an integer that puts the
// maximum just below 2^kTop. In units of 2^-24 of a term:
//
//   the power of two      2.45, see docs/numerics.md
//   rounding x L + offset 2.77 where that is below 8 in size, from the maximum down to 2^-15 of it,
//                         else 5.55 down to 2^-24: only where 2^15 elements and more are so far
//                         down do they come to half of a sum
//   l                     0.16 a power of two below the maximum, where |l| <= 2^-26 L. All is taken
//                         to be kUsualDepth below (reference()): of that, 1.6 is left
//   two terms together    1, where terms are added two by two before all else, in float64
//
// A row whose terms are all off the same way, as far as any of them can be, is 7.8 off up to
// kLseMostCols columns, which is less than the 8 that there are.
#pragma once

#include "core/scaled_exp.h"

namespace softmax {

constexpr std::int64_t kLseMostCols = 131072;

class LseTerms {
 public:
  static constexpr int kTermsTogether = 2;

  // Whether a scale is one of those: of 1 and of powers of two l is 0.90 of that.
  static SOFTMAX_HD bool take(const RowScaling &s) {
    return s.is_usual && fabsf(s.log2_lo) <= 0x1p-26f * s.log2_hi;
  }

  // max: a finite number.
  SOFTMAX_HD LseTerms(float max, const RowScaling &s) : log2_(s.log2_hi) {
    constexpr float kOver = 0.5f + 1.0f / 64.0f;  // so that rounding it does not reach 2^kTop
    const float log2 = max * log2_;
    offset_ = kTop - (((log2 + kOver) + kRoundToInteger) - kRoundToInteger);
    constexpr float kNearLog2 = 0x1p20f;
    is_near_ = fabsf(log2) < kNearLog2;
    is_well_near_ = fabsf(log2) < kNearLog2 / 2.0f;
  }

  SOFTMAX_HD float operator()(float x) const {
    return coarse_power_of_two(fmaf(x, log2_, offset_));
  }
  // What terms are against is 2^exponent.
  SOFTMAX_HD float exponent() const { return -offset_; }
  // As of ScaledTerms.
  SOFTMAX_HD bool is_near() const { return is_near_; }
  SOFTMAX_HD bool is_well_near() const { return is_well_near_; }

  // What x * s of a term 1 is, to those who compare it with max * s.
  static SOFTMAX_HD double reference(float exponent, float max, const RowScaling &s) {
    constexpr double kLn2 = 0x1.62e42fefa39efp-1;
    const double low = double(s.log2_lo) * (double(max) - kUsualDepth / double(s.log2_hi));
    return (double(exponent) + low) * kLn2;
  }

 private:
  static constexpr float kTop = 8.0f;
  static constexpr double kUsualDepth = 10.0;

  float log2_;
  float offset_;
  bool is_near_;
  bool is_well_near_;
};

}  // namespace softmax
