// From the sums of a row's parts to what its last pass needs, in float64 for every data type.
#pragma once

#include <cmath>

#include "cpu/kernels.h"

namespace softmax {

// The sum of a row from sums of its parts that were all taken against the row's maximum.
struct RowSum {
  double maxima = 0;
  CompensatedSum<double> others;

  void add(const PartSum &part) {
    maxima += part.maxima;  // integers: exact
    others.add(part.others);
  }
  // For log-softmax: the sum of exp(x_j - max), less one maximum's own 1. Where that leaves 0,
  // nothing is lost of the others.
  CompensatedSum<double> rest(double unit) const {
    CompensatedSum<double> total;
    total.hi = maxima - 1.0;
    total.add(per_unit(others, unit));
    return total;
  }

  // Terms to what they stand for.
  static CompensatedSum<double> per_unit(CompensatedSum<double> sum, double unit) {
    if (unit == 1.0) return sum;
    const double inverse = 1.0 / unit;
    sum.hi *= inverse;
    sum.lo *= inverse;
    return sum;
  }
};

// The sum of a row whose maximum is not known before its last part: each part comes with its own.
//
// The row's maximum is never among `others`, so that nothing has to be taken out of them again. The
// reference moves only when a maximum exceeds it by more than kSlack: over a slowly ascending row,
// moving at every part would add up a rounding error a part.
struct OnlineRow {
  static constexpr double kSlack = 8;

  double max = -Limits<double>::infinity();
  double reference = Limits<double>::lowest();
  CompensatedSum<double> others;

  // A part with a finite maximum; `rest` is its sum, less its maximum's own 1.
  void add(double part_max, const CompensatedSum<double> &rest) {
    if (part_max > reference + kSlack) {
      others = scaled(others, reference, part_max);
      reference = part_max;
    }
    others.add(scaled(rest, part_max, reference));
    const double loser = part_max < max ? part_max : max;
    if (loser >= Limits<double>::lowest()) others.add(exp_of(raw_difference(loser, reference)));
    max = part_max > max ? part_max : max;
  }

  // A NaN or a +inf was seen.
  void poison() { others.hi = Limits<double>::infinity() - Limits<double>::infinity(); }
  bool is_poisoned() const { return others.hi != others.hi; }

  CompensatedSum<double> rest() const { return scaled(others, reference, max); }

 private:
  // sum * exp(from - to), with the rounding error of the product.
  static CompensatedSum<double> scaled(const CompensatedSum<double> &sum, double from, double to) {
    if (from == to) return sum;
    const double factor = exp_of(raw_difference(from, to));
    const double hi = sum.hi * factor;
    return {hi, fused_multiply_add(sum.lo, factor, fused_multiply_add(sum.hi, factor, -hi))};
  }
};

inline bool is_finite(double value) {
  return value >= Limits<double>::lowest() && value <= -Limits<double>::lowest();
}

// exp(v - max) / sum for any v, with the rounding error of the difference.
inline double given_probability(double v, double max, double sum) {
  const Split<double> difference = two_sum(v, -max);
  double term = std::exp(difference.hi);
  if (is_finite(term) && term > 0) term += term * difference.lo;
  return term / sum;
}

// For a finite maximum. A NaN in the row is in the sum, and from there in every factor.
inline RowScale softmax_scale(double max, const CompensatedSum<double> &sum) {
  RowScale row;
  row.max = max;
  row.inverse_sum = 1.0 / (sum.hi + sum.lo);
  return row;
}
inline RowScale log_scale(double max, double log_sum) {
  RowScale row;
  row.max = max;
  row.log_sum = log_sum;
  return row;
}

// A row whose maximum is not finite: NaN throughout, but for the row without an element above -inf
// when the caller wants that to be zero.
inline RowScale constant_row(bool is_empty, bool is_log, bool empty_is_zero) {
  RowScale row;
  row.is_constant = true;
  row.constant = is_empty && empty_is_zero
                     ? (is_log ? -Limits<double>::infinity() : 0.0)
                     : Limits<double>::infinity() - Limits<double>::infinity();
  return row;
}

}  // namespace softmax
