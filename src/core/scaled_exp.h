// exp(x * s) over the many x of a row and one scale s > 0, in float32, for host and device alike:
// scaling costs no more than log2(e) does, which the constants below have taken in.
//
// Terms are exp(x * s) / 2^R, as row_part.h has them, R being the integer nearest to max * s *
// log2(e): two fused multiply-adds give the exponent exactly, whatever the scale.
#pragma once

#include <cmath>

#include "core/row_part.h"

namespace softmax {

// A scale as the terms need it. Its sign is for whoever loads x: sign * x is exact.
struct RowScaling {
  float sign;
  float hi, lo;            // |s|
  float log2_hi, log2_lo;  // |s| log2(e)
  double size;             // |s|
  // Others are no number, or 0, or so far from 1 that the constants leave their range.
  bool is_usual;

  static SOFTMAX_HD RowScaling of(double scale) {
    constexpr double kLog2E = 1.4426950408889634;
    RowScaling s;
    s.size = fabs(scale);
    s.sign = scale < 0.0 ? -1.0f : 1.0f;
    s.is_usual = s.size > 0x1p-100 && s.size < 0x1p100;
    s.hi = static_cast<float>(s.size);
    s.lo = static_cast<float>(s.size - static_cast<double>(s.hi));
    const double log2 = s.size * kLog2E;
    s.log2_hi = static_cast<float>(log2);
    s.log2_lo = static_cast<float>(log2 - static_cast<double>(s.log2_hi));
    return s;
  }
};

// Terms in units of 2^64, at most 1.1 ulp off, for x <= max, a finite number. A NaN is lost:
// whoever takes maxima with max_or_nan knows of it.
class ScaledTerms {
 public:
  // So many are added to each other, in Sum, before all others in float64: a chain of additions is
  // waited for. In float32 four would round twice, to one side where a row repeats four values.
  static constexpr int kTermsTogether = 4;
  using Sum = double;

  SOFTMAX_HD ScaledTerms(float max, const RowScaling &s)
      : log2_hi_(s.log2_hi), log2_lo_(s.log2_lo), least_(max - kZeroBelow * near_reciprocal(s.hi)) {
    constexpr float kNearLog2 = 0x1p20f;
    const float log2 = max * s.log2_hi;
    is_near_ = fabsf(log2) < kNearLog2;
    is_well_near_ = fabsf(log2) < kNearLog2 / 2.0f;
    round_ = kRoundToInteger + (kUnitExponent - ((log2 + kRoundToInteger) - kRoundToInteger));
  }

  // As four numbers, for threads that one of them works for; of near terms alone.
  SOFTMAX_HD explicit ScaledTerms(const float (&number)[4])
      : log2_hi_(number[0]),
        log2_lo_(number[1]),
        least_(number[2]),
        round_(number[3]),
        is_near_(true),
        is_well_near_(true) {}
  SOFTMAX_HD void give(float (&number)[4]) const {
    number[0] = log2_hi_;
    number[1] = log2_lo_;
    number[2] = least_;
    number[3] = round_;
  }

  // False where the exponents are too large for this.
  SOFTMAX_HD bool is_near() const { return is_near_; }
  // Beside these, whatever is below and not near is nothing.
  SOFTMAX_HD bool is_well_near() const { return is_well_near_; }
  // R.
  SOFTMAX_HD float exponent() const { return (kRoundToInteger - round_) + kUnitExponent; }
  // What max * s is beyond R, in powers of two: about half of one, at most.
  SOFTMAX_HD float fraction_of(float max) const {
    return fmaf(max, log2_lo_, fmaf(max, log2_hi_, -exponent()));
  }
  // What x * s of a term 1 is.
  SOFTMAX_HD double reference() const {
    constexpr double kLn2 = 0x1.62e42fefa39efp-1;
    return static_cast<double>(exponent()) * kLn2;
  }
  // What a sum against 2^exponent is to be multiplied by to be one against this, which is no less.
  SOFTMAX_HD float scale_of(float exponent) const {
    const float d = exponent - this->exponent();
    return d < -126.0f ? 0.0f
                       : float_of(static_cast<std::uint32_t>(static_cast<int>(d) + 127) << 23);
  }

  SOFTMAX_HD float operator()(float x) const {
    float shifted;
    const float f = fraction(x, &shifted);
    return float_of(bits_of(power_of_two_fraction(f)) + (bits_of(shifted) << 23));
  }
  // The same of x + low, low being no more than a rounding of x.
  SOFTMAX_HD float operator()(float x, float low) const {
    float shifted;
    const float f = fraction(x, low, &shifted);
    return float_of(bits_of(power_of_two_fraction(f)) + (bits_of(shifted) << 23));
  }
  // The same with the hardware's power of two, in half of the instructions: at most 2.5 * 2^-24
  // off, to either side, and 0.35 for the fraction's rounding. Of two terms one may be off this way
  // and one that way, which their ratio shows: not for softmax in float32.
  SOFTMAX_HD float quick(float x) const {
    float shifted;
    const float f = fraction(x, &shifted);
    return float_of(bits_of(coarse_power_of_two(f)) + (bits_of(shifted) << 23));
  }
  SOFTMAX_HD float quick(float x, float low) const {
    float shifted;
    const float f = fraction(x, low, &shifted);
    return float_of(bits_of(coarse_power_of_two(f)) + (bits_of(shifted) << 23));
  }

 private:
  static constexpr float kUnitExponent = 64.0f;
  static constexpr float kZeroBelow = 130.0f;  // as in exp_times

  // The exponent's fraction; the rest sits in the low bits of `shifted`, whose others fall off.
  SOFTMAX_HD float fraction(float x, float *shifted) const {
    x = fmaxf(x, least_);
    *shifted = fmaf(x, log2_hi_, round_);
    return fmaf(x, log2_lo_, fmaf(x, log2_hi_, round_ - *shifted));
  }
  SOFTMAX_HD float fraction(float x, float low, float *shifted) const {
    low = x < least_ ? 0.0f : low;
    x = fmaxf(x, least_);
    *shifted = fmaf(x, log2_hi_, round_);
    const float f = fmaf(x, log2_hi_, round_ - *shifted);
    return fmaf(low, log2_hi_, fmaf(x, log2_lo_, f));
  }

  float log2_hi_, log2_lo_;
  float least_;  // below that a term is 0 beside others
  float round_;
  bool is_near_;
  bool is_well_near_;
};

// exp(y) in units of 2^64 with the hardware's power of two: 2^-22 off at most, for y <= 40. Below
// e^-130 it stays there. A NaN is lost.
SOFTMAX_HD float quick_exp_in_units(float y) {
  constexpr float kRound = kRoundToInteger + 64.0f;
  y = fmaxf(y, -130.0f);
  const float shifted = fmaf(y, kFloatLog2E, kRound);
  float f = fmaf(y, kFloatLog2E, kRound - shifted);
  f = fmaf(y, kFloatLog2ELow, f);
  return float_of(bits_of(coarse_power_of_two(f)) + (bits_of(shifted) << 23));
}

// The same for results of 16 bits and less: the hardware's power of two, 2^-17 off at most.
class ScaledCoarseTerms {
 public:
  static constexpr int kTermsTogether = 8;
  using Sum = float;  // which rounds less than these are off

  // Against the maximum itself.
  SOFTMAX_HD ScaledCoarseTerms(float max, float log2) : max_(max), log2_(log2), offset_(64.0f) {}
  // Against what near `terms` are against.
  SOFTMAX_HD ScaledCoarseTerms(float max, const RowScaling &s, const ScaledTerms &terms)
      : max_(max), log2_(s.log2_hi), offset_(64.0f + terms.fraction_of(max)) {}
  SOFTMAX_HD float operator()(float x) const {
    return coarse_power_of_two(fmaf(x - max_, log2_, offset_));
  }

 private:
  float max_;
  float log2_;
  float offset_;
};

// (x - max) * s less log_sum, for log-softmax. -inf stays.
SOFTMAX_HD float scaled_log_value(float x, float max, const RowScaling &s, float log_sum) {
  const Split<float> d = difference(x, max);
  const float product = d.hi * s.hi;
  const float error = product < Limits<float>::lowest()
                          ? 0.0f
                          : fmaf(d.hi, s.hi, -product) + fmaf(d.hi, s.lo, d.lo * s.hi);
  return (product - log_sum) + error;
}
// The same for results of 16 bits and less: neither term is above 0, so that three roundings are no
// more than 2^-22 of the result.
SOFTMAX_HD float coarse_log_value(float x, float max, float scale, float log_sum) {
  return fmaf(x - max, scale, -log_sum);
}

}  // namespace softmax
