// The (max, sum) of a row or a part of one in the read-once kernels, which know a maximum before
// they take exponentials; for host and device alike.
//
// Terms are against a power of two, 2^R with R the integer nearest to max * log2(e), not against
// e^max: the factor between the two, the same for every term of a row, falls out of term / sum. It
// saves a third of the arithmetic of a term, and parts with different maxima merge exactly, their
// references being powers of two apart. Where |max| is too large for that ("far"), terms are
// against e^max as elsewhere.
//
// Log-softmax needs the sum without the maximum's own term, and that against e^max, once a row.
#pragma once

#include "core/numerics.h"

namespace softmax {

// ---- terms ----

// False for a NaN or an infinity. There is no near float64.
SOFTMAX_HD bool is_near(float max, float limit) { return max > -limit && max < limit; }

// R for a near maximum: exactly; and as the low bits of a word whose others are the same for every
// maximum, which is all that a difference of two needs.
SOFTMAX_HD float rounded_exponent(float max) { return fmaf(max, kFloatLog2E, kRoundToInteger); }
SOFTMAX_HD float reference_exponent(float max) { return rounded_exponent(max) - kRoundToInteger; }
SOFTMAX_HD std::uint32_t reference_exponent_bits(float max) {
  return bits_of(rounded_exponent(max));
}

// exp(x) / 2^R in units, at most 1.1 ulp off, for x <= max, where max is near.
//
// With log2(e) = L + l and K the integer nearest to x * L, f = x * L - K + x * l has an error of
// 2^-25 at most, whatever x is: the first fused multiply-add rounds a number below 1/2, exactly
// once. 2^f = 1 + f p(f) as in ShiftedExp, and K - R is added to the exponent.
//
// A NaN is lost: whoever takes maxima with max_or_nan knows of it.
class NearTerms {
 public:
  SOFTMAX_HD explicit NearTerms(float max)
      : round_(kRoundToInteger + (kUnitExponent - reference_exponent(max))),
        floor_(max - kZeroBelow) {}

  SOFTMAX_HD float operator()(float x) const {
    x = max_or_nan(x, floor_);
    // K - R + 64 sits in its low bits, the others fall off when it becomes an exponent.
    const float shifted = fmaf(x, kFloatLog2E, round_);
    float f = fmaf(x, kFloatLog2E, round_ - shifted);
    f = fmaf(x, kFloatLog2ELow, f);
    const float mantissa = power_of_two_fraction(f);
    return float_of(bits_of(mantissa) + (bits_of(shifted) << 23));
  }

 private:
  static constexpr float kUnitExponent = 64.0f;
  static constexpr float kZeroBelow = 130.0f;  // as in exp_times

  float round_;
  float floor_;
};

// NearTerms for results of 16 bits: the hardware's power of two. The exponent is rounded once, at a
// magnitude of 64 and more: 2^-18. log2(e) itself is 2^-26 off, relatively, which |x| multiplies:
// hence the limit.
constexpr float kCoarseNearLimit = 64.0f;

class CoarseTerms {
 public:
  static constexpr int kTermsTogether = 8;

  SOFTMAX_HD explicit CoarseTerms(float max)
      : is_near_(is_near(max, kCoarseNearLimit)),
        reference_(is_near_ ? 0.0f : finite_reference(max)),
        offset_(is_near_ ? 64.0f - reference_exponent(max) : 64.0f) {}

  template <int kCount>
  SOFTMAX_HD void make(const float (&x)[kCount], float (&term)[kCount]) const {
    if (is_near_) {
      SOFTMAX_UNROLL
      for (int i = 0; i < kCount; ++i) {
        term[i] = coarse_power_of_two(fmaf(x[i], kFloatLog2E, offset_));
      }
    } else {
      make_unasked(x, term);
    }
  }
  // The same to the bit without the question, which costs registers: a subtraction more.
  template <int kCount>
  SOFTMAX_HD void make_unasked(const float (&x)[kCount], float (&term)[kCount]) const {
    SOFTMAX_UNROLL
    for (int i = 0; i < kCount; ++i) {
      term[i] = coarse_power_of_two(fmaf(x[i] - reference_, kFloatLog2E, offset_));
    }
  }

 private:
  bool is_near_;
  float reference_;
  float offset_;
};

// exp(x) / 2^R / s, or exp(x - max) / s where max is far, for results of 16 bits: the division is
// in the exponent. 2^32 is for a while, so that the subnormal numbers of bfloat16 are reached.
class CoarseOutput {
 public:
  SOFTMAX_HD CoarseOutput() : CoarseOutput(0.0f, 1.0f) {}
  SOFTMAX_HD CoarseOutput(float max, float inverse_sum)
      : is_near_(is_near(max, kCoarseNearLimit)),
        reference_(max),
        offset_(coarse_log2(inverse_sum) + (is_near_ ? 32.0f - reference_exponent(max) : 32.0f)) {}

  template <int kCount>
  SOFTMAX_HD void make(float (&x)[kCount]) const {
    if (is_near_) {
      SOFTMAX_UNROLL
      for (float &v : x) {
        v = coarse_power_of_two(fmaf(v, kFloatLog2E, offset_)) * 0x1p-32f;
      }
    } else {
      SOFTMAX_UNROLL
      for (float &v : x) {
        v = coarse_power_of_two(fmaf(v - reference_, kFloatLog2E, offset_)) * 0x1p-32f;
      }
    }
  }

 private:
  bool is_near_;
  float reference_;
  float offset_;
};

// ---- sums ----

// Float terms are added in double, alone or with few others first, which is cheaper than carrying
// the error along and as exact; double ones with their error.
template <typename T>
struct WideSum;
template <>
struct WideSum<float> {
  double value = 0.0;

  SOFTMAX_HD void add(float term) { value += double(term); }
  SOFTMAX_HD void add(const WideSum &other) { value += other.value; }
  SOFTMAX_HD bool is_below(float limit) const { return value < double(limit); }
  SOFTMAX_HD void times(Split<float> units) {
    value *= (double(units.hi) + double(units.lo)) * 0x1p-64;
  }
  // The sum, rounded, and what rounding took from it.
  SOFTMAX_HD CompensatedSum<float> compensated() const {
    CompensatedSum<float> sum;
    sum.hi = float(value);
    sum.lo = float(value - double(sum.hi));
    return sum;
  }
};
template <>
struct WideSum<double> {
  CompensatedSum<double> value;

  SOFTMAX_HD void add(double term) { value.add(term); }
  SOFTMAX_HD void add(const WideSum &other) { value.add(other.value); }
  SOFTMAX_HD bool is_below(double limit) const { return value.hi < limit; }
  SOFTMAX_HD void times(Split<double> units) { value.times(units); }
  SOFTMAX_HD CompensatedSum<double> compensated() const { return value; }
};

// a + b rounded towards zero, both of them positive and a the larger.
SOFTMAX_HD double add_towards_zero(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dadd_rz(a, b);
#else
  const Split<double> sum = two_sum(a, b);
  return sum.lo < 0.0 ? float_of(bits_of(sum.hi) - 1) : sum.hi;
#endif
}

// The sum of a lane's terms, each at most 2^(1/2) units, no more than 700 of them. It has no order:
// a term is cut to a multiple of a step, whatever is there already, and of multiples nothing is
// rounded, here or where 32 lanes' sums are added to each other. A row's sum is at least 2^(-1/2)
// units and a run has less than 2^11 terms, so that all the cuts together are below 2^-29 of it.
// (To the nearest multiple would not do: which of two that are as near depends on the sum.)
//
// The sum begins at 1.5 * 2^52 steps, where a double has nothing but their multiples.
constexpr double kSumStep = 0x1p64 * 0x1p-41;

template <typename T>
class GridSum;
template <>
class GridSum<float> {
 public:
  SOFTMAX_HD void add(float term) { value_ = add_towards_zero(value_, double(term)); }
  SOFTMAX_HD WideSum<float> sum() const { return {value_ - kStart}; }

 private:
  static constexpr double kStart = 0x1.8p52 * kSumStep;
  double value_ = kStart;
};
// What is cut off goes to a sum of its own, of steps so much smaller.
template <>
class GridSum<double> {
 public:
  SOFTMAX_HD void add(double term) {
    const double next = add_towards_zero(high_, term);
    low_ = add_towards_zero(low_, term - (next - high_));
    high_ = next;
  }
  SOFTMAX_HD WideSum<double> sum() const {
    return {CompensatedSum<double>::of(two_sum(high_ - kStart, low_ - kLowStart))};
  }

 private:
  static constexpr double kStart = 0x1.8p52 * kSumStep;
  static constexpr double kLowStart = kStart * 0x1p-41;
  double high_ = kStart;
  double low_ = kLowStart;
};

// The term of a near maximum itself, bit for bit; of others the unit.
SOFTMAX_HD float own_term(float max, float limit) {
  return is_near(max, limit) ? NearTerms(max)(max) : sum_unit<float>();
}
SOFTMAX_HD double own_term(double, float) { return sum_unit<double>(); }

// exp(what terms are against - max) in units, not rounded: 2^-f, where max is R + f in powers of
// two as NearTerms has it.
SOFTMAX_HD Split<float> reference_scale(float max, float limit) {
  if (!is_near(max, limit)) return {sum_unit<float>(), 0.0f};
  const float f = fmaf(max, kFloatLog2ELow, fmaf(max, kFloatLog2E, -reference_exponent(max)));
  const Split<float> power = unrounded_power_of_two_fraction(-f);
  return {power.hi * sum_unit<float>(), power.lo * sum_unit<float>()};
}

// exp(what the terms of a part are against - what those of the row are) in units, as a part is
// brought to a row's maximum. `limit` says which maxima are near.
SOFTMAX_HD Split<float> part_scale(float part_max, float row_max, float limit) {
  const bool part_near = is_near(part_max, limit);
  const bool row_near = is_near(row_max, limit);
  if (part_near && row_near) {
    const float exponent = reference_exponent(part_max) - reference_exponent(row_max);
    if (exponent < -190.0f) return {0.0f, 0.0f};
    return {float_of(static_cast<std::uint32_t>(static_cast<int>(exponent) + 64 + 127) << 23),
            0.0f};
  }
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  const double part =
      part_near ? double(reference_exponent(part_max)) * kLn2 : double(finite_reference(part_max));
  const double row =
      row_near ? double(reference_exponent(row_max)) * kLn2 : double(finite_reference(row_max));
  const float hi = float(part - row);
  return exp_in_units(Split<float>{hi, float(part - row - double(hi))});
}
SOFTMAX_HD Split<double> part_scale(double part_max, double row_max, float) {
  return exp_in_units(raw_difference(finite_reference(part_max), finite_reference(row_max)));
}

// Sixteen bytes, or 32 in float64, to travel as one. A NaN of the row is in max.
template <typename T>
struct alignas(4 * sizeof(T)) RowPart {
  T max;
  T ones;  // log-softmax: elements that equal the maximum and are not in the others, in units
  WideSum<T> others;

  static SOFTMAX_HD RowPart of(T max) { return {max, T(0), {}}; }

  // The union of two parts with the same maximum.
  SOFTMAX_HD void add(const RowPart &other) {
    ones += other.ones;
    others.add(other.others);
  }
  // Against a larger maximum: the ones are terms like any other then. Equal maxima are not
  // subtracted: they may be infinite.
  SOFTMAX_HD void rescale(T new_max, float limit) {
    if (max == new_max) return;
    if (ones != T(0)) others.add(ones_as_terms(limit));
    others.times(part_scale(max, new_max, limit));
    ones = T(0);
    max = new_max;
  }
  SOFTMAX_HD T ones_as_terms(float limit) const { return ones * 0x1p-64f * own_term(max, limit); }

  // Log-softmax: one of the maximum's own terms out of a sum of all. False where too little is left
  // of that sum's digits: none of the others is near the maximum then, and their sum is taken
  // against the largest of them instead, as `below`, the terms of what is larger being that one's.
  SOFTMAX_HD bool take_max_out(float limit) {
    if (!(max >= Limits<T>::lowest())) return true;
    ones = sum_unit<T>();
    others.add(-own_term(max, limit));
    return !others.is_below(sum_unit<T>() / 16);
  }
  SOFTMAX_HD void take_others_from(RowPart below, float limit) {
    below.others.add(-own_term(below.max, limit));
    const bool any = below.max >= Limits<T>::lowest();
    below.rescale(max, limit);
    others = any ? below.others : WideSum<T>();
  }
};

// What the outputs need of a row's part: only what the operation asks for, and no division, since
// the correction has what a reciprocal lacks. A row without an element above -inf is NaN, or with
// empty_is_zero 0 (log: -inf).
template <typename T>
SOFTMAX_HD RowFactors<T> finish(const RowPart<T> &part, float limit, bool empty_is_zero,
                                bool is_log) {
  constexpr T kFromUnit = T(0x1p-64);
  const T nan = Limits<T>::infinity() - Limits<T>::infinity();
  // Where the maximum is +inf its own term is inf - inf.
  const bool is_nan = !(part.max < Limits<T>::infinity());
  const bool is_empty = part.max < Limits<T>::lowest();
  RowFactors<T> row = {finite_reference(part.max), T(0), T(0), T(0)};
  if (is_log) {
    WideSum<T> others = part.others;
    if constexpr (sizeof(T) == 4) others.times(reference_scale(part.max, limit));
    CompensatedSum<T> rest = others.compensated();
    rest.add(part.ones - sum_unit<T>());
    const T log_sum = log_1_plus((rest.hi + rest.lo) * kFromUnit);
    row.log_sum = is_empty ? (empty_is_zero ? T(0) : nan) : is_nan ? nan : log_sum;
  } else {
    const CompensatedSum<T> others = part.others.compensated();
    const T hi = others.hi * kFromUnit;
    const T inverse = near_reciprocal(hi);
    const T residual = fused_multiply_add(-inverse, hi, T(1));
    const T correction = fused_multiply_add(-inverse, others.lo * kFromUnit, residual);
    row.inverse_sum = is_empty ? (empty_is_zero ? T(1) : nan) : is_nan ? nan : inverse;
    row.correction = is_empty ? T(0) : correction;
  }
  return row;
}

// max + log_sum, of log-softmax. It has more digits than log_sum next to a large maximum: enough
// for whatever is less than the maximum, which is so by 2^-24 of it at least.
SOFTMAX_HD Split<float> log_reference(const RowFactors<float> &row) {
  const double sum = double(row.max) + double(row.log_sum);
  const float hi = float(sum);
  return {hi, float(sum - double(hi))};
}
// (x - max) - log_sum, 1 ulp off at most beside what log_sum is.
SOFTMAX_HD float log_value(float x, const RowFactors<float> &row, Split<float> reference) {
  return x == row.max ? -row.log_sum : (x - reference.hi) - reference.lo;
}

// What brings a kept term, exp(x - reference) in units, to exp(x - max) / s: first `before` times
// it, then the sum hi + lo times that, in which alone the result is rounded. Where exp(reference -
// max) / s is small, hi in the unit's scale would lose digits that a normal result still has: 2^100
// of it changes places, which takes digits only from terms whose results are below everything.
template <typename T>
struct TermFactor {
  T before;
  T hi;
  T lo;

  SOFTMAX_HD bool has_before() const { return before != T(1); }
  SOFTMAX_HD T times(T term) const { return fused_multiply_add(term, hi, term * lo); }
};

// `scale` is exp(reference - max) in units.
template <typename T>
SOFTMAX_HD TermFactor<T> term_factor(const RowFactors<T> &row, Split<T> scale) {
  const T hi = scale.hi * row.inverse_sum;
  const T lo = fused_multiply_add(scale.lo, row.inverse_sum,
                                  fused_multiply_add(scale.hi, row.inverse_sum, -hi));
  const bool is_large = hi >= T(0x1p24);                  // 2^-40 and more; a NaN goes either way
  const T rescale = is_large ? T(0x1p-128) : T(0x1p-28);  // one unit a factor; and 2^100
  return {is_large ? T(1) : T(0x1p-100), hi * rescale,
          fused_multiply_add(hi, row.correction, lo) * rescale};
}

// The same for terms against the row's own maximum, whose scale is one unit and whose sum is at
// least 2^-1/2: a factor that is never small.
template <typename T>
SOFTMAX_HD TermFactor<T> whole_row_factor(const RowFactors<T> &row) {
  constexpr T kFromUnit = T(0x1p-64);
  return {T(1), row.inverse_sum * kFromUnit, row.inverse_sum * row.correction * kFromUnit};
}

}  // namespace softmax
