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

// A running sum in twice the precision: as good after 2^24 terms as after 64. lo stays below half a
// unit in the last place of hi. Without that step (a plain sum of the errors: Ogita, Rump and
// Oishi, 2005) lo itself wears down: 1.5% of the sum were gone after 2^24 terms.
template <typename T>
struct CompensatedSum {
  T hi = T(0);
  T lo = T(0);

  SOFTMAX_HD void add(T value) {
    const Split<T> s = two_sum(hi, value);
    normalise(s.hi, lo + s.lo);
  }
  // A value and what rounding took from it.
  SOFTMAX_HD void add(Split<T> value) {
    const Split<T> s = two_sum(hi, value.hi);
    normalise(s.hi, (lo + value.lo) + s.lo);
  }
  // Symmetric to the bit: both sides of a shuffle arrive at the same sum.
  SOFTMAX_HD void add(const CompensatedSum &other) { add(other.parts()); }
  // For memory that may hold no object with an initialiser: shared memory.
  SOFTMAX_HD Split<T> parts() const { return {hi, lo}; }
  static SOFTMAX_HD CompensatedSum of(Split<T> parts) {
    CompensatedSum sum;
    sum.hi = parts.hi;
    sum.lo = parts.lo;
    return sum;
  }
  // Everything times exp(d), the product's rounding error kept. The exponential may be below the
  // normal range where the product is not: 2^64 of it changes places.
  SOFTMAX_HD void times_exp(Split<T> d) { times({exp_times(d, T(0x1p64)), T(0)}); }
  // The same where 2^64 exp(d) is there already.
  SOFTMAX_HD void times(Split<T> scale) {
    const T large = hi * T(0x1p-64);
    const T small = lo * T(0x1p-64);
    hi = large * scale.hi;
    lo = fused_multiply_add(small, scale.hi, fused_multiply_add(large, scale.hi, -hi));
    lo = fused_multiply_add(large, scale.lo, lo);
  }
  // The sum less a term that is one of its own: exact but for one rounding.
  SOFTMAX_HD T without(T term) const { return (hi - term) + lo; }

 private:
  // large is the larger, so that the error is exact (Dekker's fast two-sum): terms are not
  // negative, and where one is taken out again, what is left of the error is not worth keeping.
  SOFTMAX_HD void normalise(T large, T small) {
    hi = large + small;
    lo = small - (hi - large);
  }
};

// What 1 is in a sum. A term may be as small as the least subnormal number, and a row of many such
// terms still has a log-sum that is a normal number: in this unit the terms are normal too.
template <typename T>
SOFTMAX_HD T sum_unit() {
  return T(0x1p64);
}

// The state of a row, or of any part of one, its sums in units. `error` is what rounding took from
// `rest`, so that a tree of merges is as good as one sum. The identity of merge is
// (-inf, -1 unit, 0): no element, sum 0.
template <typename T>
struct Pair {
  T max;
  T rest;
  T error = T(0);

  static SOFTMAX_HD Pair identity() { return {-Limits<T>::infinity(), -sum_unit<T>(), T(0)}; }

  // sum_j exp(x_j - reference) in units, for a reference >= max. Equal ones are not subtracted: the
  // difference of two -inf would poison a row with an all -inf part.
  SOFTMAX_HD CompensatedSum<T> sum_against(T reference) const {
    CompensatedSum<T> sum = CompensatedSum<T>::of(two_sum(sum_unit<T>(), rest));
    sum.lo += error;
    if (max != reference) sum.times_exp(raw_difference(max, reference));
    return sum;
  }
};

// The pair of the union of two parts: the larger maximum is kept and the other's sum is scaled. A
// NaN is in rest and stays there: max never holds one.
template <typename T>
SOFTMAX_HD Pair<T> merge(Pair<T> a, Pair<T> b) {
  const bool a_larger = a.max >= b.max;
  const Pair<T> large = a_larger ? a : b;
  const CompensatedSum<T> small = (a_larger ? b : a).sum_against(large.max);
  const Split<T> rest = two_sum(large.rest, small.hi);
  return {large.max, rest.hi, large.error + (small.lo + rest.lo)};
}

// The reference that sums are taken against where the maximum is known: the maximum itself, or, for
// a part that is all -inf, the lowest finite number, so that exp(-inf - reference) is 0 and not
// NaN.
template <typename T>
SOFTMAX_HD T finite_reference(T max) {
  return max < Limits<T>::lowest() ? Limits<T>::lowest() : max;
}

// Adds terms to a sum, a few at a time as a tree, so that few roundings lie on any path. Overwrites
// them.
template <int kMostTogether, typename Sum, typename T, int kCount>
SOFTMAX_HD void add_terms(Sum &sum, T (&term)[kCount]) {
  constexpr int kTogether = kCount < kMostTogether ? kCount : kMostTogether;
  SOFTMAX_UNROLL
  for (int first = 0; first < kCount; first += kTogether) {
    SOFTMAX_UNROLL
    for (int width = kTogether / 2; width > 0; width /= 2) {
      SOFTMAX_UNROLL
      for (int i = 0; i < width; ++i) term[first + i] += term[first + i + width];
    }
    sum.add(term[first]);
  }
}

// The same with what rounding takes: in float32 four terms of a row that repeats them would round
// twice, to one side all along.
template <int kMostTogether, typename T, int kCount>
SOFTMAX_HD void add_terms_and_errors(CompensatedSum<T> &sum, T (&term)[kCount]) {
  constexpr int kTogether = kCount < kMostTogether ? kCount : kMostTogether;
  SOFTMAX_UNROLL
  for (int first = 0; first < kCount; first += kTogether) {
    T error = T(0);
    SOFTMAX_UNROLL
    for (int width = kTogether / 2; width > 0; width /= 2) {
      SOFTMAX_UNROLL
      for (int i = first; i < first + width; ++i) {
        const Split<T> s = two_sum(term[i], term[i + width]);
        term[i] = s.hi;
        error += s.lo;
      }
    }
    sum.add(Split<T>{term[first], error});
  }
}

// The sum in units of exp(x - reference) over many x, a group at a time, where the elements that
// equal the reference are counted apart from the others. The reference's own 1 can then be taken
// out exactly, however small the rest is and however many terms it has: a compensated sum that
// holds the 1 keeps the rest in its low part, which is itself rounded at every addition.
template <typename T>
struct TermSum {
  CompensatedSum<T> ones;
  CompensatedSum<T> others;

  // Softmax does not need the distinction: there the 1s stay among the others. `apart` keeps every
  // term whole: the largest of a group that exceeds the reference is taken out again later.
  template <typename Exp, int kCount>
  SOFTMAX_HD void add(const T (&x)[kCount], const Exp &exp, bool is_log, bool apart = false) {
    T term[kCount];
    exp.times(x, sum_unit<T>(), term);
    add_terms(x, term, exp, is_log, apart);
  }

  // The same for terms that have been evaluated, in units: what holds them keeps them.
  template <typename Exp, int kCount>
  SOFTMAX_HD void add_terms(const T (&x)[kCount], T (&term)[kCount], const Exp &exp, bool is_log,
                            bool apart = false) {
    T count = T(0);
    if (is_log) {
      SOFTMAX_UNROLL
      for (int i = 0; i < kCount; ++i) {
        // Its term is the unit, or NaN where both are infinite.
        const bool is_one = x[i] == exp.reference();
        count += is_one ? term[i] : T(0);
        term[i] = is_one ? T(0) : term[i];
      }
    }
    if (is_log && apart) {
      SOFTMAX_UNROLL
      for (int i = 0; i < kCount; ++i) others.add(term[i]);
    } else if constexpr (Exp::kIsCoarse) {
      softmax::add_terms<Exp::kTermsTogether>(others, term);
    } else {
      add_terms_and_errors<Exp::kTermsTogether>(others, term);
    }
    if (!(count == T(0))) ones.add(count);
  }

  SOFTMAX_HD CompensatedSum<T> combined() const {
    CompensatedSum<T> sum = ones;
    sum.add(others);
    return sum;
  }

  SOFTMAX_HD void times_exp(Split<T> d) {
    others = combined();
    others.times_exp(d);
    ones = CompensatedSum<T>();
  }
};

// The online sum of one thread: one pass, any order of elements.
//
// Terms are exp(x - reference). The reference is moved only when an element exceeds it by more than
// kSlack: each move costs an exponential and a rounding, and over a slowly ascending row moving at
// every element would add up thousands of them. The terms stay below e^kSlack, and the reference is
// an element of the row, so rest is either kept exactly (reference == max) or at least e^-kSlack:
// taking the maximum's own term out of the compensated sum loses nothing.
template <typename T, typename Exp = ShiftedExp<T>>
struct OnlineSum {
  static constexpr int kSlack = 8;

  Exp exp;  // of differences to the reference
  T max = -Limits<T>::infinity();
  TermSum<T> sum;

  template <int kCount>
  SOFTMAX_HD void add(const T (&x)[kCount], T largest, bool is_log) {
    max = largest > max ? largest : max;
    if (largest > exp.reference() + T(kSlack)) {
      // An empty sum stays 0, also against +inf.
      sum.times_exp(raw_difference(exp.reference(), largest));
      exp = Exp(largest);
    }
    sum.add(x, exp, is_log, largest > exp.reference());
  }
  SOFTMAX_HD void add(T x) {
    const T group[1] = {x};
    add(group, x, true);
  }

  SOFTMAX_HD Pair<T> pair() const {
    const CompensatedSum<T> total = sum.combined();
    if (max < Limits<T>::lowest()) return {max, total.hi - sum_unit<T>(), T(0)};  // sum 0, or NaN
    const T own = exp.times(max, sum_unit<T>());
    CompensatedSum<T> rest = total;
    rest.add(-own);
    rest = CompensatedSum<T>::of(two_sum(rest.hi, rest.lo));
    if (exp.reference() != max) rest.times_exp(raw_difference(exp.reference(), max));
    return {max, rest.hi, rest.lo};
  }
};

// What the last pass over a row needs.
template <typename T>
struct RowFactors {
  T max;
  T inverse_sum;  // 1 / s, rounded
  T correction;   // 1 / s = inverse_sum * (1 + correction): rides in the exponential for nothing
  T log_sum;      // log s
};

// `sum` is in units; log_sum is filled in where `is_log` asks for it. A row without an element
// above -inf is NaN, or with empty_is_zero 0 (log: -inf), which the maximum 0 brings about by
// itself. A NaN in the row has made the sum NaN.
template <typename T>
SOFTMAX_HD RowFactors<T> finish(T max, CompensatedSum<T> sum, bool empty_is_zero,
                                bool is_log = true) {
  // Not sum.hi == 0: exp of -inf is no more than nothing beside a 1.
  if (max < Limits<T>::lowest() && sum.hi == sum.hi) {
    const T nan = Limits<T>::infinity() - Limits<T>::infinity();
    return empty_is_zero ? RowFactors<T>{T(0), T(1), T(0), T(0)}
                         : RowFactors<T>{T(0), nan, T(0), nan};
  }
  constexpr T kFromUnit = T(0x1p-64);
  const T hi = sum.hi * kFromUnit;
  const T inverse = T(1) / hi;
  const T residual = fused_multiply_add(-inverse, hi, T(1));
  return {finite_reference(max), inverse,
          fused_multiply_add(-inverse, sum.lo * kFromUnit, residual),
          is_log ? log_1_plus(sum.without(sum_unit<T>()) * kFromUnit) : T(0)};
}

template <typename T>
SOFTMAX_HD RowFactors<T> finish(Pair<T> row, bool empty_is_zero) {
  return finish(row.max, row.sum_against(row.max), empty_is_zero);
}

// One output element, where it is not worth keeping the exponential for a row.
template <typename T>
SOFTMAX_HD T output_value(T x, const RowFactors<T> &row, bool is_log) {
  const ShiftedExp<T> exp(row.max, row.correction);
  return is_log ? exp.log_value(x, row.log_sum) : exp.times(x, row.inverse_sum);
}

}  // namespace softmax
