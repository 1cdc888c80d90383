// The arithmetic that decides correctness, for host and device alike: compensated sums, the
// (max, rest) pair of any part of a row, the online sum, and what the last pass over a row needs.
//
// Notation: for a set of elements, max is their maximum and rest = sum_j exp(x_j - max) - 1, the
// sum without the maximum's own term. Keeping that 1 out is what lets log(1 + rest) be log1p(rest):
// where one element dominates, rest is tiny, and 1 + rest would round it away.
#pragma once

#include "core/exp.h"
#include "core/shifted_exp.h"

namespace softmax {

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
  // For memory that may hold no object with an initialiser: shared memory.
  SOFTMAX_HD Split<T> parts() const { return {hi, lo}; }
  static SOFTMAX_HD CompensatedSum of(Split<T> parts) {
    CompensatedSum sum;
    sum.hi = parts.hi;
    sum.lo = parts.lo;
    return sum;
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
template <typename T, typename Exp = ShiftedExp<T>>
struct OnlineSum {
  static constexpr int kSlack = 8;

  Exp exp;  // of differences to the reference
  T max = -Limits<T>::infinity();
  CompensatedSum<T> sum;

  // Call with the maximum of a group of elements before adding their terms.
  SOFTMAX_HD void make_room(T group_max) {
    max = group_max > max ? group_max : max;
    const T reference = exp.reference();
    if (group_max > reference + T(kSlack)) {
      const T scale = exp_of(raw_difference(reference, group_max));
      // The product's rounding error is kept too. An empty sum stays 0, also against +inf.
      const T scaled = sum.hi * scale;
      sum.lo = fused_multiply_add(sum.lo, scale, fused_multiply_add(sum.hi, scale, -scaled));
      sum.hi = scaled;
      exp = Exp(group_max);
    }
  }
  SOFTMAX_HD void add(T x) {
    make_room(x);
    sum.add(exp.times(x, T(1)));
  }

  SOFTMAX_HD Pair<T> pair() const {
    if (max < Limits<T>::lowest()) return {max, sum.hi - T(1)};  // sum 0, or NaN
    const T own = exp.times(max, T(1));
    // Not exp_times(..., rest): rest may be far below the factors that it takes.
    return {max, exp_of(raw_difference(exp.reference(), max)) * sum.without(own)};
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

// One output element, where it is not worth keeping the exponential for a row.
template <typename T>
SOFTMAX_HD T output_value(T x, const RowFactors<T> &row, bool is_log) {
  const ShiftedExp<T> exp(row.max);
  return is_log ? exp.log_value(x, row.log_sum) : exp.times(x, row.inverse_sum);
}

}  // namespace softmax
