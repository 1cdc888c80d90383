// exp(x - reference) for the many x of a row and one reference: what the inner loops evaluate.
//
// `correction` is a small relative correction of every result, which costs nothing to apply here:
// it joins the error term of the difference. (What rounding took from 1 / sum, in the last pass of
// a row.)
//
// Three forms with one interface (times, log_value):
//   ShiftedExp<float>   at most 1.1 ulp, any reference; cheap where the reference is moderate
//   ShiftedExp<double>  at most 1.25 ulp, any reference
//   CoarseExp           about 2^-18 relative: for results that are rounded to 16 bits
#pragma once

#include "core/exp.h"

namespace softmax {

// The larger of two, a NaN if either is one (fmaxf would drop it).
SOFTMAX_HD float max_or_nan(float a, float b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#else
  return a < b || b != b ? b : a;
#endif
}

SOFTMAX_HD double max_or_nan(double a, double b) { return a < b || b != b ? b : a; }

// Below this references are moderate: exponents relative to powers of two are exact.
constexpr float kNearLimit = 16384.0f;

// 2^f for |f| of hardly more than 1/2: 1 + f p(f), p of degree 5, 0.16 * 2^-24 off at most.
SOFTMAX_HD float power_of_two_polynomial(float f) {
  float p = 0x1.4418e6p-13f;
  p = fmaf(p, f, 0x1.5f104ep-10f);
  p = fmaf(p, f, 0x1.3b2a4ep-7f);
  p = fmaf(p, f, 0x1.c6af62p-5f);
  p = fmaf(p, f, 0x1.ebfbe0p-3f);
  p = fmaf(p, f, 0x1.62e430p-1f);
  return p;
}
SOFTMAX_HD float power_of_two_fraction(float f) {
  return fmaf(power_of_two_polynomial(f), f, 1.0f);
}
// The same with what its last addition rounds.
SOFTMAX_HD Split<float> unrounded_power_of_two_fraction(float f) {
  const float p = power_of_two_polynomial(f);
  const float hi = fmaf(p, f, 1.0f);
  return {hi, fmaf(p, f, 1.0f - hi)};
}

template <typename T>
class ShiftedExp {  // float64
 public:
  // So many terms are added to each other before they join a sum.
  static constexpr int kTermsTogether = 4;
  static constexpr bool kIsCoarse = false;

  SOFTMAX_HD ShiftedExp() : ShiftedExp(Limits<T>::lowest()) {}
  SOFTMAX_HD explicit ShiftedExp(T reference, T correction = T(0))
      : reference_(reference), correction_(correction) {}
  SOFTMAX_HD T reference() const { return reference_; }

  // result[i] = factor * exp(x[i] - reference)
  template <int kCount>
  SOFTMAX_HD void times(const T (&x)[kCount], T factor, T (&result)[kCount]) const {
    SOFTMAX_UNROLL
    for (int i = 0; i < kCount; ++i) result[i] = times(x[i], factor);
  }
  SOFTMAX_HD T times(T x, T factor) const {
    Split<T> d = raw_difference(x, reference_);
    d.lo += correction_;
    return exp_times(d, factor);
  }
  // (x - reference) - log_sum
  SOFTMAX_HD T log_value(T x, T log_sum) const {
    const Split<T> d = difference(x, reference_);
    return (d.hi - log_sum) + d.lo;
  }

 private:
  T reference_;
  T correction_;
};

// In float32 the subtraction and its error term cost more than the exponential itself. For a
// moderate reference they can be had from two fused multiply-adds, exactly: with log2(e) = L + l
// and
//
//     reference * log2(e) = high + low,   high a multiple of 2^-7, |low| <= 2^-8,
//     k the integer nearest to (x - reference) * log2(e),
//
// k + high is a float32 number without rounding while |reference| < 2^14, so fma(x, L, -(k + high))
// has one rounding, of a number that is at most about 1/2. Adding x * l - low gives the fraction f
// of the power of two with an error of 2^-25, whatever the size of x - reference:
//
//     exp(x - reference) = 2^k 2^f,   2^f = 1 + f p(f), p of degree 5: 0.16 * 2^-24 off at most.
//
// The power of two is applied as in exp_times. A larger reference takes the general way.
template <>
class ShiftedExp<float> {
 public:
  static constexpr int kTermsTogether = 4;
  static constexpr bool kIsCoarse = false;

  SOFTMAX_HD ShiftedExp() : ShiftedExp(Limits<float>::lowest()) {}
  SOFTMAX_HD explicit ShiftedExp(float reference, float correction = 0.0f)
      : reference_(reference), correction_(correction) {
    constexpr float kToMultipleOf2Pow7 = 98304.0f;  // 1.5 * 2^16: adding it rounds to 2^-7
    // Comparisons are false for a NaN or an infinity.
    near_ = reference > -kNearLimit && reference < kNearLimit;
    log2_ = reference * kFloatLog2E;
    const float log2_error = fmaf(reference, kFloatLog2E, -log2_);
    high_ = (log2_ + kToMultipleOf2Pow7) - kToMultipleOf2Pow7;
    low_ = (log2_ - high_) + fmaf(reference, kFloatLog2ELow, log2_error);
    low_ = fmaf(-correction, kFloatLog2E, low_);
    floor_ = reference - kZeroBelow;
  }
  SOFTMAX_HD float reference() const { return reference_; }

  template <int kCount>
  SOFTMAX_HD void times(const float (&x)[kCount], float factor, float (&result)[kCount]) const {
    if (near_) {
      SOFTMAX_UNROLL
      for (int i = 0; i < kCount; ++i) result[i] = near_times(x[i], factor);
    } else {
      SOFTMAX_UNROLL
      for (int i = 0; i < kCount; ++i) result[i] = far_times(x[i], factor);
    }
  }
  SOFTMAX_HD float times(float x, float factor) const {
    return near_ ? near_times(x, factor) : far_times(x, factor);
  }
  SOFTMAX_HD float log_value(float x, float log_sum) const {
    const Split<float> d = difference(x, reference_);
    return (d.hi - log_sum) + d.lo;
  }

  // The two ways of times(), for who decides once for many.
  SOFTMAX_HD bool is_near() const { return near_; }
  SOFTMAX_HD float near_times(float x, float factor) const {
    constexpr std::uint32_t kRoundBits = 0x4b400000u;  // kRoundToInteger's own
    x = max_or_nan(x, floor_);
    const float shifted = fmaf(x, kFloatLog2E, -log2_) + kRoundToInteger;
    const float k = shifted - kRoundToInteger;
    float f = fmaf(x, kFloatLog2E, -(k + high_));
    f = fmaf(x, kFloatLog2ELow, f - low_);
    const float mantissa = power_of_two_fraction(f);
    const std::uint32_t scale_bits = (bits_of(shifted) - kRoundBits + (127u + 64u)) << 23;
    return mantissa * (factor * 0x1p-64f) * float_of(scale_bits);
  }
  SOFTMAX_HD float far_times(float x, float factor) const {
    Split<float> d = raw_difference(x, reference_);
    d.lo += correction_;
    return exp_times(d, factor);
  }

 private:
  static constexpr float kZeroBelow = 130.0f;  // as in exp_times

  float reference_;
  float correction_;
  float log2_;
  float high_;
  float low_;
  float floor_;
  bool near_;
};

// The hardware's power of two, to about 2^-22. Results below 2^-126 are 0.
SOFTMAX_HD float coarse_power_of_two(float exponent) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(exponent));
  return result;
#else
  return exponent < -126.0f ? 0.0f : exp2f(exponent);
#endif
}

// To about 2^-22, for a normal number.
SOFTMAX_HD float coarse_log2(float value) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
#else
  return log2f(value);
#endif
}

// For results of 16 bits, which need 2^-17 (binary16) at most: the hardware's power of two. 2^64 is
// in its exponent, so that results below its range are still reached; that costs the exponent 2^-18
// at most.
class CoarseExp {
 public:
  static constexpr int kTermsTogether = 8;
  static constexpr bool kIsCoarse = true;  // rounding in a sum of few is less than a term is off

  SOFTMAX_HD CoarseExp() : CoarseExp(Limits<float>::lowest()) {}
  SOFTMAX_HD explicit CoarseExp(float reference, float /*correction*/ = 0.0f)
      : reference_(reference) {}
  SOFTMAX_HD float reference() const { return reference_; }

  template <int kCount>
  SOFTMAX_HD void times(const float (&x)[kCount], float factor, float (&result)[kCount]) const {
    SOFTMAX_UNROLL
    for (int i = 0; i < kCount; ++i) result[i] = times(x[i], factor);
  }
  // |factor| from 2^-60 to 2^64
  SOFTMAX_HD float times(float x, float factor) const {
    return coarse_power_of_two(fmaf(x - reference_, kFloatLog2E, 64.0f)) * (factor * 0x1p-64f);
  }
  SOFTMAX_HD float log_value(float x, float log_sum) const { return (x - reference_) - log_sum; }

 private:
  float reference_;
};

}  // namespace softmax
