// exp(x * s - max) in float64 over the many float32 x of a row, for host and device alike: what
// gradients need where float32 exponentials would be most of what is left of a difference. Half of
// the instructions of exp().
#pragma once

#include <cmath>

#include "core/shifted_exp.h"

namespace softmax {

SOFTMAX_HD float min_or_nan(float a, float b) { return -max_or_nan(-a, -b); }

// 2^u, 2^-50 off at most relatively, for |u| <= 1000; a NaN stays one.
SOFTMAX_HD double wide_power_of_two(double u) {
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
  const double shifted = u + kRound;
  const double f = u - (shifted - kRound);
  // 1 + f q(f), q of degree 9: 2^-51.5 off at most.
  double q = 0x1.e8b76263934bap-28;
  q = fma(q, f, 0x1.b689b4a79c327p-24);
  q = fma(q, f, 0x1.62be68638b69dp-20);
  q = fma(q, f, 0x1.ffcb3f1b24075p-17);
  q = fma(q, f, 0x1.43091387c75c5p-13);
  q = fma(q, f, 0x1.5d87fea4a753ap-10);
  q = fma(q, f, 0x1.3b2ab6fb8208cp-7);
  q = fma(q, f, 0x1.c6b08d7039559p-5);
  q = fma(q, f, 0x1.ebfbdff82c61fp-3);
  q = fma(q, f, 0x1.62e42fefa3a28p-1);
  const double mantissa = fma(q, f, 1.0);
  // The integer sits in the low bits, the others fall off.
  return float_of(bits_of(mantissa) + (bits_of(shifted) << 52));
}

// Terms, which times rest() are exp(x * s - max). Beyond 2^1000 and below 2^-1000 they are those. A
// NaN stays one. 2^-30 < |s| < 2^30, and max is a finite float32.
class WideTerms {
 public:
  SOFTMAX_HD WideTerms(double scale, double max) {
    constexpr double kLog2E = 0x1.71547652b82fep+0;
    constexpr double kLog2ELow = 0x1.777d0ffda0d24p-56;
    constexpr double kLn2 = 0x1.62e42fefa39efp-1;
    constexpr double kMost = 1000.0;
    log2_ = scale * kLog2E;
    max_ = max * kLog2E;
    rest_ = 1.0 - (fma(max, kLog2E, -max_) + max * kLog2ELow) * kLn2;
    const double way = (log2_ < 0.0 ? -1.0 : 1.0) * near_reciprocal(fabs(log2_));
    const float a = static_cast<float>((max_ - kMost) * way);
    const float b = static_cast<float>((max_ + kMost) * way);
    least_ = a < b ? a : b;
    most_ = a < b ? b : a;
  }

  // Of a scale of 1 and a maximum of 0, of constants that the compiler knows.
  static SOFTMAX_HD WideTerms of_logs() { return WideTerms(); }

  SOFTMAX_HD double operator()(float x) const {
    x = min_or_nan(max_or_nan(x, least_), most_);
    return wide_power_of_two(fma(static_cast<double>(x), log2_, -max_));
  }
  // What has been rounded off max * log2(e).
  SOFTMAX_HD double rest() const { return rest_; }

 private:
  SOFTMAX_HD WideTerms()
      : log2_(0x1.71547652b82fep+0), max_(0.0), rest_(1.0), least_(-693.0f), most_(693.0f) {}

  double log2_;
  double max_;
  double rest_;
  float least_, most_;
};

}  // namespace softmax
