// The exponential of a difference whose rounding error is carried, for host and device alike.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define SOFTMAX_HD __host__ __device__ __forceinline__
#else
#define SOFTMAX_HD inline
#endif
#if defined(__CUDA_ARCH__)
#define SOFTMAX_UNROLL _Pragma("unroll")
#else
#define SOFTMAX_UNROLL
#endif

namespace softmax {

// Added to a float of moderate size it rounds that to an integer: 1.5 * 2^23.
constexpr float kRoundToInteger = 12582912.0f;
// log2(e), and what a float of it leaves.
constexpr float kFloatLog2E = 0x1.715476p+0f;
constexpr float kFloatLog2ELow = 0x1.4ae0cp-26f;

// Value-preserving constants, by accumulator type.
template <typename T>
struct Limits;
template <>
struct Limits<float> {
  static SOFTMAX_HD float lowest() { return -3.402823466e+38f; }
  static SOFTMAX_HD float infinity() { return HUGE_VALF; }
};
template <>
struct Limits<double> {
  static SOFTMAX_HD double lowest() { return -1.7976931348623157e+308; }
  static SOFTMAX_HD double infinity() { return HUGE_VAL; }
};

SOFTMAX_HD float fused_multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
SOFTMAX_HD double fused_multiply_add(double a, double b, double c) { return fma(a, b, c); }
SOFTMAX_HD float log_1_plus(float x) { return log1pf(x); }
SOFTMAX_HD double log_1_plus(double x) { return log1p(x); }

// 1 / x for a positive normal number, to within an ulp or two: the hardware's approximation without
// the slow path of a division, for those who work out the error that is left.
SOFTMAX_HD float near_reciprocal(float x) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return 1.0f / x;
#endif
}
SOFTMAX_HD double near_reciprocal(double x) {
#if defined(__CUDA_ARCH__)
  double result;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(result) : "d"(x));
  result = fma(result, fma(-result, x, 1.0), result);  // 20 bits to 40
  return fma(result, fma(-result, x, 1.0), result);
#else
  return 1.0 / x;
#endif
}

// The bits of a float32 or a float64, and back.
SOFTMAX_HD std::uint32_t bits_of(float value) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(value);
#else
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
#endif
}
SOFTMAX_HD float float_of(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
#endif
}

SOFTMAX_HD std::uint64_t bits_of(double value) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint64_t>(__double_as_longlong(value));
#else
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
#endif
}
SOFTMAX_HD double float_of(std::uint64_t bits) {
#if defined(__CUDA_ARCH__)
  return __longlong_as_double(static_cast<long long>(bits));
#else
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
#endif
}

// An unevaluated sum hi + lo, lo being what rounding took from hi.
template <typename T>
struct Split {
  T hi;
  T lo;
};

// a + b exactly (Knuth, TAOCP 4.2.2: no condition on the magnitudes). With an infinity or a NaN
// among the operands, or on overflow, lo is NaN: callers that can meet one guard it.
template <typename T>
SOFTMAX_HD Split<T> two_sum(T a, T b) {
  const T sum = a + b;
  const T b_seen = sum - a;
  return {sum, (a - (sum - b_seen)) + (b - b_seen)};
}

// x - max and its rounding error, for the exponential, which ignores lo where hi is -inf.
template <typename T>
SOFTMAX_HD Split<T> raw_difference(T x, T max) {
  return two_sum(x, -max);
}

// The same for adding lo back: lo is 0 where the difference is -inf (x is -inf, or the true
// difference is below the type's range); a NaN stays in hi.
template <typename T>
SOFTMAX_HD Split<T> difference(T x, T max) {
  Split<T> d = raw_difference(x, max);
  d.lo = d.hi < Limits<T>::lowest() ? T(0) : d.lo;
  return d;
}

// An exponential before its last multiplication.
template <typename T>
struct ExpParts {
  T mantissa;
  T error;  // what rounding took from it
  T power;
};

// factor * exp(d.hi + d.lo), for d.hi <= 40 and |factor| from 2^-60 to 2^64 (or 0).
//
// exp(d) = 2^k exp(r), k = round(d / ln 2), |r| <= ln(2)/2, by Cody and Waite's reduction; the
// error term joins r. exp(r) = 1 + r + r^2 q(r) with q of degree 4: the approximation error is
// below 0.2 * 2^-24, the total below 1.25 ulp. The power of two comes last, 2^-64 of it with the
// factor: so both powers are normal numbers for every k that occurs (-188 to 58), and a result
// below the normal range is rounded once instead of being flushed. d.lo may be NaN where d.hi is
// -inf.
SOFTMAX_HD ExpParts<float> exp_parts(Split<float> d) {
  constexpr float kLn2Hi = 0x1.62e430p-1f;
  constexpr float kLn2Lo = -0x1.05c610p-29f;
  constexpr std::uint32_t kRoundBits = 0x4b400000u;  // kRoundToInteger's own
  // Far below half of the least subnormal: 2^37 elements at -inf add nothing to a sum either.
  constexpr float kZeroBelow = -130.0f;

  // A NaN fails the comparison and passes through.
  const bool tiny = d.hi < kZeroBelow;
  const float hi = tiny ? kZeroBelow : d.hi;
  const float lo = tiny ? 0.0f : d.lo;

  const float shifted = fmaf(hi, kFloatLog2E, kRoundToInteger);
  const float k = shifted - kRoundToInteger;
  float r = fmaf(k, -kLn2Hi, hi);
  r = fmaf(k, -kLn2Lo, r) + lo;

  float q = 0x1.6d117cp-10f;
  q = fmaf(q, r, 0x1.120be2p-7f);
  q = fmaf(q, r, 0x1.555518p-5f);
  q = fmaf(q, r, 0x1.5554dcp-3f);
  q = fmaf(q, r, 0.5f);
  // 1 + t, and what rounding takes from it: exp_times is for the few exponentials that scale whole
  // sums, whose error is every element's.
  const float t = fmaf(r * r, q, r);
  const float mantissa = 1.0f + t;
  const float mantissa_error = t - (mantissa - 1.0f);

  // k sits in the low bits of `shifted`. Unsigned: a NaN's bits may be anything.
  const std::uint32_t scale_bits = (bits_of(shifted) - kRoundBits + (127u + 64u)) << 23;
  return {mantissa, mantissa_error, float_of(scale_bits)};
}
SOFTMAX_HD float exp_times(Split<float> d, float factor) {
  const ExpParts<float> e = exp_parts(d);
  const float small_factor = factor * 0x1p-64f;
  return fmaf(e.mantissa, small_factor, e.error * small_factor) * e.power;
}
// 2^64 exp(d), not rounded.
SOFTMAX_HD Split<float> exp_in_units(Split<float> d) {
  const ExpParts<float> e = exp_parts(d);
  return {e.mantissa * e.power, e.error * e.power};
}

// The same in float64: q of degree 9, its error below 0.15 * 2^-53; |factor| from 2^-500 to 2^500.
SOFTMAX_HD ExpParts<double> exp_parts(Split<double> d) {
  constexpr double kLog2E = 0x1.71547652b82fep+0;
  constexpr double kLn2Hi = 0x1.62e42fefa39efp-1;
  constexpr double kLn2Lo = 0x1.abc9e3b39803fp-56;
  constexpr double kRound = 6755399441055744.0;              // 1.5 * 2^52
  constexpr std::uint64_t kRoundBits = 0x4338000000000000u;  // kRound's own
  constexpr double kZeroBelow = -820.0;

  const bool tiny = d.hi < kZeroBelow;
  const double hi = tiny ? kZeroBelow : d.hi;
  const double lo = tiny ? 0.0 : d.lo;

  const double shifted = fma(hi, kLog2E, kRound);
  const double k = shifted - kRound;
  double r = fma(k, -kLn2Hi, hi);
  r = fma(k, -kLn2Lo, r) + lo;

  double q = 0x1.af38a9b0ec855p-26;
  q = fma(q, r, 0x1.289185613a3d6p-22);
  q = fma(q, r, 0x1.71de0dae63bb3p-19);
  q = fma(q, r, 0x1.a019b90d2ae7ap-16);
  q = fma(q, r, 0x1.a01a01a7c41d5p-13);
  q = fma(q, r, 0x1.6c16c1788bd90p-10);
  q = fma(q, r, 0x1.11111111109b3p-7);
  q = fma(q, r, 0x1.5555555553d63p-5);
  q = fma(q, r, 0x1.5555555555556p-3);
  q = fma(q, r, 0x1.0000000000001p-1);
  const double t = fma(r * r, q, r);
  const double mantissa = 1.0 + t;
  const double mantissa_error = t - (mantissa - 1.0);

  const std::uint64_t scale_bits = (bits_of(shifted) - kRoundBits + (1023u + 512u)) << 52;
  return {mantissa, mantissa_error, float_of(scale_bits)};
}
SOFTMAX_HD double exp_times(Split<double> d, double factor) {
  const ExpParts<double> e = exp_parts(d);
  const double small_factor = factor * 0x1p-512;
  return fma(e.mantissa, small_factor, e.error * small_factor) * e.power;
}
SOFTMAX_HD Split<double> exp_in_units(Split<double> d) {
  const ExpParts<double> e = exp_parts(d);
  return {e.mantissa * 0x1p-448 * e.power, e.error * 0x1p-448 * e.power};
}

template <typename T>
SOFTMAX_HD T exp_of(Split<T> d) {
  return exp_times(d, T(1));
}

}  // namespace softmax
