// An element of a gradient, for host and device alike, where D = sum(p * dy), or sum(dy) of
// LOGSOFTMAX, is known in float64:
//
//     SOFTMAX       dx = s * p * (dy - D)
//     LOGSOFTMAX    dx = s * (dy - p * D)
//
// Near the optimum of what is trained both differences are small beside their terms, and show every
// error of p and D. "Wide" is float64 throughout. "Narrow" is for p, or what it is taken from, and
// dy of 16 bits: products of two are exact in float32, and results have room for its errors. Both
// are within 0.51 ulp, and 2^-46 of what they subtract. Scales are usual ones: 2^-30 < |s| < 2^30.
#pragma once

#include "core/scaled_exp.h"
#include "core/wide_terms.h"

namespace softmax {

constexpr double kUsualGradientScale = 0x1p30;  // and its reciprocal
// Of narrow gradients: D with more has no room in float32.
constexpr double kMostNarrowDot = 0x1p100;

// A float64 in two parts.
struct TwoFloats {
  float hi;
  float lo;
  static SOFTMAX_HD TwoFloats of(double value) {
    const float hi = static_cast<float>(value);
    return {hi, static_cast<float>(value - static_cast<double>(hi))};
  }
};

class WideGradient {
 public:
  SOFTMAX_HD WideGradient(double s, double dot) : s_(s), dot_(dot) {}
  SOFTMAX_HD float operator()(double p, float dy) const {
    return static_cast<float>(p * s_ * (static_cast<double>(dy) - dot_));
  }

 private:
  double s_, dot_;
};

class NarrowGradient {
 public:
  // Neither what a small scale makes of p nor what a large one makes of the difference leaves the
  // range.
  SOFTMAX_HD NarrowGradient(double s, double dot) : dot_(TwoFloats::of(dot)) {
    const float scale = static_cast<float>(s);
    const bool is_large = fabsf(scale) > 1.0f;
    before_ = is_large ? scale : 1.0f;
    after_ = is_large ? 1.0f : scale;
  }
  SOFTMAX_HD float operator()(float p, float dy) const {
    return p * before_ * ((dy - dot_.hi) - dot_.lo) * after_;
  }

 private:
  TwoFloats dot_;
  float before_, after_;
};

// What p of LOGSOFTMAX is taken from: exp(x * scale - max) / sum, or exp(y), where those are 1, 0
// and 1.
struct GradientSource {
  double scale = 1.0;
  double max = 0.0;
  double sum = 1.0;
};

class WideLogGradient {
 public:
  // `sum`: of dy.
  SOFTMAX_HD WideLogGradient(const GradientSource &from, double s, double sum)
      : WideLogGradient(WideTerms(from.scale, from.max), s, sum, near_reciprocal(from.sum)) {}
  // Of y.
  SOFTMAX_HD WideLogGradient(double s, double sum)
      : WideLogGradient(WideTerms::of_logs(), s, sum, 1.0) {}

  SOFTMAX_HD float operator()(float x, float dy) const {
    return static_cast<float>(fma(-terms_(x), dot_, static_cast<double>(dy)) * s_);
  }
  SOFTMAX_HD double dot() const { return dot_; }  // over the given sum

 private:
  SOFTMAX_HD WideLogGradient(const WideTerms &terms, double s, double sum, double factor)
      : terms_(terms), s_(s), dot_(sum * (terms.rest() * factor)) {}

  WideTerms terms_;
  double s_;
  double dot_;
};

// The last step of a narrow log-softmax gradient, for p that is 2^-22 off and less: little where
// the difference is not small beside p * D. It tells where it is, and those elements are for
// WideLogGradient.
class NarrowDifference {
 public:
  // How much smaller than p * D a difference may be, for p's error to be 1/100 ulp of it.
  static constexpr float kLeastBf16 = 0x1p-7f;
  static constexpr float kLeastF16 = 0x1p-4f;

  SOFTMAX_HD NarrowDifference(double s, double dot, float least)
      : scale_(static_cast<float>(s)), dot_(-static_cast<float>(dot)), least_(dot_ * least) {}

  SOFTMAX_HD float operator()(float p, float dy, bool *is_hard) const {
    const float gradient = fmaf(p, dot_, dy);
    // A NaN is hard. No branch: a predicate is all that there is to it.
    *is_hard |= !(fabsf(gradient) >= fabsf(p * least_));
    return gradient * scale_;
  }

 private:
  float scale_;
  float dot_;
  float least_;
};

// p from x.
class NarrowLogGradient {
 public:
  SOFTMAX_HD NarrowLogGradient(const GradientSource &from, double s, double dot, float least)
      : NarrowLogGradient(from, s, dot, least, RowScaling::of(from.scale),
                          near_reciprocal(fabs(from.scale))) {}

  // False where float32 exponents do not reach.
  SOFTMAX_HD bool is_near() const { return terms_.is_near(); }
  SOFTMAX_HD float operator()(float x, float dy, bool *is_hard) const {
    x *= sign_;
    *is_hard |= !(x <= most_);
    return difference_(terms_(x) * 0x1p-64f, dy, is_hard);
  }

 private:
  SOFTMAX_HD NarrowLogGradient(const GradientSource &from, double s, double dot, float least,
                               const RowScaling &scaling, double to_x)
      : terms_(static_cast<float>(from.max * to_x), scaling),
        sign_(scaling.sign),
        most_(static_cast<float>((from.max + 40.0) * to_x)),
        difference_(s, dot * wide_power_of_two((terms_.reference() - from.max) * kLog2E), least) {}

  static constexpr double kLog2E = 0x1.71547652b82fep+0;

  ScaledTerms terms_;
  float sign_;
  float most_;  // above it a term is too large; a NaN, which the terms lose, is hard, too
  NarrowDifference difference_;
};

// p from y.
class NarrowLogGradientOfLogs {
 public:
  static constexpr float kMost = 40.0f;  // of y: whoever has more, or a NaN, is not for this

  SOFTMAX_HD NarrowLogGradientOfLogs(double s, double dot, float least)
      : difference_(s, dot, least) {}
  SOFTMAX_HD float operator()(float y, float dy, bool *is_hard) const {
    return difference_(quick_exp_in_units(y) * 0x1p-64f, dy, is_hard);
  }

 private:
  NarrowDifference difference_;
};

}  // namespace softmax
