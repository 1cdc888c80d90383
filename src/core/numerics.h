// The arithmetic that decides correctness, for host and device alike: the difference x - max with
// its rounding error, the exponential that takes it in, compensated sums, and the (max, rest) pair.
//
// Notation: for a set of elements, max is their maximum and rest = sum_j exp(x_j - max) - 1, the
// sum without the maximum's own term. Keeping that 1 out is what lets log(1 + rest) be log1p(rest):
// where one element dominates, rest is tiny, and 1 + rest would round it away.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define SOFTMAX_HD __host__ __device__ __forceinline__
#else
#define SOFTMAX_HD inline
#endif

namespace softmax {

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

// The bits of a float32 and back.
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

// factor * exp(d.hi + d.lo), for d.hi <= 40 and |factor| from 2^-60 to 2^60 (or 0).
//
// exp(d) = 2^k exp(r), k = round(d / ln 2), |r| <= ln(2)/2, by Cody and Waite's reduction; the
// error term joins r. exp(r) = 1 + r + r^2 q(r) with q of degree 4: the approximation error is
// below 0.2 * 2^-24, the total below 1.1 ulp. The power of two comes last, 2^-64 of it with the
// factor: so both powers are normal numbers for every k that occurs (-174 to 58), and a result
// below the normal range is rounded once instead of being flushed. d.lo may be NaN where d.hi is
// -inf.
SOFTMAX_HD float exp_times(Split<float> d, float factor) {
  constexpr float kLog2E = 1.4426950408889634f;
  constexpr float kLn2Hi = 0x1.62e430p-1f;
  constexpr float kLn2Lo = -0x1.05c610p-29f;
  constexpr float kRound = 12582912.0f;              // 1.5 * 2^23: adding it rounds to an integer
  constexpr std::uint32_t kRoundBits = 0x4b400000u;  // kRound's own
  constexpr float kZeroBelow = -120.0f;              // exp is under half of the least subnormal

  // A NaN fails the comparison and passes through.
  const bool tiny = d.hi < kZeroBelow;
  const float hi = tiny ? kZeroBelow : d.hi;
  const float lo = tiny ? 0.0f : d.lo;

  const float shifted = fmaf(hi, kLog2E, kRound);
  const float k = shifted - kRound;
  float r = fmaf(k, -kLn2Hi, hi);
  r = fmaf(k, -kLn2Lo, r) + lo;

  float q = 0x1.6d117cp-10f;
  q = fmaf(q, r, 0x1.120be2p-7f);
  q = fmaf(q, r, 0x1.555518p-5f);
  q = fmaf(q, r, 0x1.5554dcp-3f);
  q = fmaf(q, r, 0.5f);
  const float mantissa = fmaf(r * r, q, r) + 1.0f;

  // k sits in the low bits of `shifted`. Unsigned: a NaN's bits may be anything.
  const std::uint32_t scale_bits = (bits_of(shifted) - kRoundBits + (127u + 64u)) << 23;
  return mantissa * (factor * 0x1p-64f) * float_of(scale_bits);
}

// The same in float64, where the platform's exp is accurate to an ulp and d.lo is a first-order
// term.
SOFTMAX_HD double exp_times(Split<double> d, double factor) {
  const double e = exp(d.hi);
  const double lo = e > 0.0 ? d.lo : 0.0;  // also where d.hi is -inf and d.lo NaN
  return fma(e, lo, e) * factor;
}

template <typename T>
SOFTMAX_HD T exp_of(Split<T> d) {
  return exp_times(d, T(1));
}

// A running sum whose rounding errors are kept: as good after 2^24 terms as after 64 (Ogita, Rump
// and Oishi, "Accurate sum and dot product", 2005).
template <typename T>
struct CompensatedSum {
  T hi = T(0);
  T lo = T(0);

  SOFTMAX_HD void add(T value) {
    const Split<T> s = two_sum(hi, value);
    hi = s.hi;
    lo += s.lo;
  }
  // Symmetric to the bit: both sides of a shuffle arrive at the same sum.
  SOFTMAX_HD void add(const CompensatedSum &other) {
    const Split<T> s = two_sum(hi, other.hi);
    hi = s.hi;
    lo = (lo + other.lo) + s.lo;
  }
  // The sum less a term that is one of its own: exact but for one rounding.
  SOFTMAX_HD T without(T term) const { return (hi - term) + lo; }
};

// The state of a row, or of any part of one: 8 bytes in float32. The identity of merge is
// (-inf, -1): no element, sum 0.
template <typename T>
struct Pair {
  T max;
  T rest;

  static SOFTMAX_HD Pair identity() { return {-Limits<T>::infinity(), T(-1)}; }
};

// The pair of the union of two parts: the larger maximum is kept and the other's sum is scaled.
// Equal maxima are not subtracted: (-inf) - (-inf) would poison a row with an all -inf part.
// A NaN is in rest and stays there: max never holds one.
template <typename T>
SOFTMAX_HD Pair<T> merge(Pair<T> a, Pair<T> b) {
  const bool a_larger = a.max >= b.max;
  const Pair<T> large = a_larger ? a : b;
  const Pair<T> small = a_larger ? b : a;
  const T sum = small.rest + T(1);
  const T scaled =
      small.max == large.max ? sum : exp_times(raw_difference(small.max, large.max), sum);
  return {large.max, large.rest + scaled};
}

// The reference that sums are taken against where the maximum is known: the maximum itself, or, for
// a part that is all -inf, the lowest finite number, so that exp(-inf - reference) is 0 and not
// NaN.
template <typename T>
SOFTMAX_HD T finite_reference(T max) {
  return max < Limits<T>::lowest() ? Limits<T>::lowest() : max;
}

// The online sum of one thread: one pass, any order of elements.
//
// Terms are exp(x - reference). The reference is moved only when an element exceeds it by more than
// kSlack: each move costs an exponential and a rounding, and over a slowly ascending row moving at
// every element would add up thousands of them. The terms stay below e^kSlack, and the reference is
// an element of the row, so rest is either exact (reference == max) or at least e^-kSlack: taking
// the maximum's own term out of the compensated sum loses nothing.
template <typename T>
struct OnlineSum {
  static constexpr int kSlack = 8;

  T reference = Limits<T>::lowest();
  T max = -Limits<T>::infinity();
  CompensatedSum<T> sum;

  // Elements that are at most group_max; call once before adding the elements of a group.
  SOFTMAX_HD void make_room(T group_max) {
    max = group_max > max ? group_max : max;
    if (group_max > reference + T(kSlack)) {
      const T scale = exp_of(raw_difference(reference, group_max));
      // The product's rounding error is kept too. An empty sum stays 0, also against +inf.
      const T scaled = sum.hi * scale;
      sum.lo = fused_multiply_add(sum.lo, scale, fused_multiply_add(sum.hi, scale, -scaled));
      sum.hi = scaled;
      reference = group_max;
    }
  }
  SOFTMAX_HD T term(T x) const { return exp_of(raw_difference(x, reference)); }
  SOFTMAX_HD void add(T x) {
    make_room(x);
    sum.add(term(x));
  }

  SOFTMAX_HD Pair<T> pair() const {
    if (max < Limits<T>::lowest()) return {max, sum.hi - T(1)};  // sum 0, or NaN
    const T own = exp_of(raw_difference(max, reference));
    return {max, exp_times(raw_difference(reference, max), sum.without(own))};
  }
};

// What the last pass over a row needs.
template <typename T>
struct RowFactors {
  T max;
  T inverse_sum;  // 1 / s
  T log_sum;      // log s
};

// A row without an element above -inf has rest == -1: NaN, or with empty_is_zero 0 (log: -inf),
// which the maximum 0 brings about by itself. A NaN in the row has made rest NaN.
template <typename T>
SOFTMAX_HD RowFactors<T> finish(Pair<T> row, bool empty_is_zero) {
  if (row.max < Limits<T>::lowest() && row.rest == T(-1)) {
    const T nan = Limits<T>::infinity() - Limits<T>::infinity();
    return empty_is_zero ? RowFactors<T>{T(0), T(1), T(0)} : RowFactors<T>{T(0), nan, nan};
  }
  const T reference = finite_reference(row.max);
  return {reference, T(1) / (T(1) + row.rest), log_1_plus(row.rest)};
}

template <typename T>
SOFTMAX_HD T softmax_value(T x, const RowFactors<T> &row) {
  return exp_times(raw_difference(x, row.max), row.inverse_sum);
}

template <typename T>
SOFTMAX_HD T log_softmax_value(T x, const RowFactors<T> &row) {
  const Split<T> d = difference(x, row.max);
  return (d.hi - row.log_sum) + d.lo;
}

template <typename T>
SOFTMAX_HD T output_value(T x, const RowFactors<T> &row, bool is_log) {
  return is_log ? log_softmax_value(x, row) : softmax_value(x, row);
}

}  // namespace softmax
