// exp(x - max) for the many x of a row, in SIMD, good to 0.8 ulp whatever the size of x - max.
// Compiled once for each SIMD target.
//
// The terms of a row come out times a constant of the row that cancels where they are divided by
// their sum: 2^kScaleLog2, so that every term down to the clamp is a normal number and the last
// multiplication of a row is the only one that rounds into the subnormals; and, in Log2Exp, what is
// called the unit.
#if defined(SOFTMAX_CPU_EXP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SOFTMAX_CPU_EXP_INL_H
#undef SOFTMAX_CPU_EXP_INL_H
#else
#define SOFTMAX_CPU_EXP_INL_H
#endif

#include "cpu/elements-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace softmax {
namespace HWY_NAMESPACE {

template <typename T>
struct ExpTraits;

template <>
struct ExpTraits<float> {
  static constexpr float kScale = 0x1p64f;
  static constexpr float kInverseScale = 0x1p-64f;
  // Far below half of the least subnormal: 2^37 elements at -inf add nothing to a sum either.
  // k >= -188.
  static constexpr float kClamp = -130.0f;
  static constexpr float kLog2E = 0x1.715476p+0f;
  static constexpr float kLog2ELow = 0x1.4ae0cp-26f;
  // 1.5 * 2^23 rounds a sum to an integer, which sits in the low bits; 127 + 64 makes these the
  // exponent field of 2^(k + 64).
  static constexpr float kRound = 12582912.0f + 191.0f;
  static constexpr int kMantissaBits = 23;
  // The upper part has 16 significant bits: k times it is exact, without a fused operation too.
  static constexpr float kLn2Hi = 0x1.62e4p-1f;
  static constexpr float kLn2Lo = 0x1.7f7d1cp-20f;
};

template <>
struct ExpTraits<double> {
  static constexpr double kScale = 0x1p512;
  static constexpr double kInverseScale = 0x1p-512;
  static constexpr double kClamp = -800.0;  // k >= -1155
  static constexpr double kLog2E = 0x1.71547652b82fep+0;
  static constexpr double kRound = 6755399441055744.0 + 1535.0;  // 1.5 * 2^52 + 1023 + 512
  static constexpr int kMantissaBits = 52;
  static constexpr double kLn2Hi = 0x1.62e42fee00000p-1;  // 33 significant bits
  static constexpr double kLn2Lo = 0x1.a39ef35793c76p-33;
};

// exp(r) on |r| <= 0.3469: minimax in relative error, 2^-64.
constexpr double kExpF64[] = {1.0,
                              1.0,
                              0.5,
                              0x1.555555555555bp-3,
                              0x1.5555555555501p-5,
                              0x1.111111110ebcep-7,
                              0x1.6c16c16c30accp-10,
                              0x1.a01a01b3b6dcdp-13,
                              0x1.a01a013559f16p-16,
                              0x1.71ddef907c0d8p-19,
                              0x1.27e5b5af53b6ap-22,
                              0x1.af6ce7e503355p-26,
                              0x1.1e3c804c3335cp-29};

// limit where v is below it, else v; a NaN in v stays.
template <class V>
HWY_INLINE V not_below(V limit, V v) {
#if (HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128) || HWY_ARCH_ARM_A64
  return hn::Max(limit, v);  // x86 returns the second of two when one is a NaN; Arm the NaN
#else
  return hn::IfThenElse(hn::Lt(v, limit), limit, v);
#endif
}

// c[0] + c[1] r + c[2] r^2 + ...
template <class D, typename T, std::size_t kCount>
HWY_INLINE hn::Vec<D> polynomial(D d, hn::Vec<D> r, const T (&c)[kCount]) {
  hn::Vec<D> p = hn::Set(d, c[kCount - 1]);
  for (std::size_t i = kCount - 1; i > 0; --i) p = hn::MulAdd(p, r, hn::Set(d, c[i - 1]));
  return p;
}

// The rounding error of hi = x - max, for x <= max. The sum x + (-max) is not above 0, so the
// smaller of its two terms has the larger magnitude: Dekker's three operations are exact.
// Not a number where hi is infinite.
template <class V>
HWY_INLINE V difference_error(V x, V max, V hi) {
  const V minus_max = hn::Neg(max);
  const V larger = hn::Min(x, minus_max);
  const V smaller = hn::Max(x, minus_max);
  return hn::Sub(smaller, hn::Sub(hi, larger));
}

// For any x <= max, max finite: -inf gives less than the least subnormal, a NaN stays. The unit is
// 1: terms are exp(x - max) * kScale.
//
// exp(d) = 2^k exp(r), k = round(d / ln 2), by Cody and Waite's reduction; the rounding error of
// d = x - max joins r where results have 32 bits or more (kPrecise).
template <bool kPrecise, class D>
class DifferenceExp {
  using T = Lane<D>;
  using V = hn::Vec<D>;
  using Traits = ExpTraits<T>;

 public:
  explicit HWY_INLINE DifferenceExp(V max) : max_(max) {}

  HWY_INLINE V term(V x) const {
    const D d;
    const hn::RebindToUnsigned<D> du;
    const V clamp = hn::Set(d, Traits::kClamp);
    const V difference = hn::Sub(x, max_);
    const V hi = not_below(clamp, difference);
    const V round = hn::Set(d, Traits::kRound);
    const V shifted = hn::MulAdd(hi, hn::Set(d, Traits::kLog2E), round);
    const V k = hn::Sub(shifted, round);
    V r = hn::NegMulAdd(k, hn::Set(d, Traits::kLn2Hi), hi);
    if constexpr (kPrecise) {
      const V error =
          hn::IfThenElseZero(hn::Ge(difference, clamp), difference_error(x, max_, difference));
      r = hn::Add(r, hn::NegMulAdd(k, hn::Set(d, Traits::kLn2Lo), error));
    } else {
      r = hn::NegMulAdd(k, hn::Set(d, Traits::kLn2Lo), r);
    }
    const V power = hn::BitCast(d, hn::ShiftLeft<Traits::kMantissaBits>(hn::BitCast(du, shifted)));
    return hn::Mul(exp_reduced(r), power);
  }

 private:
  // Minimax in relative error on |r| <= 0.3469: 2^-28 of degree 6, 2^-23.2 of degree 5 for results
  // of 16 bits.
  static HWY_INLINE V exp_reduced(V r) {
    const D d;
    if constexpr (sizeof(T) == 8) {
      return polynomial(d, r, kExpF64);
    } else if constexpr (kPrecise) {
      constexpr T kExp[] = {1.0f,           1.0f,           0.5f,           0x1.5554dcp-3f,
                            0x1.555518p-5f, 0x1.120be2p-7f, 0x1.6d117cp-10f};
      return polynomial(d, r, kExp);
    } else {
      constexpr T kExp[] = {1.0f,           1.0f,           0x1.fffdf8p-2f,
                            0x1.5557b4p-3f, 0x1.572bc4p-5f, 0x1.1061b8p-7f};
      return polynomial(d, r, kExp);
    }
  }

  V max_;
};

// For float32 and a moderate maximum, without any difference: with K the integer nearest to
// max * log2(e), a term is
//
//     2^(x log2(e) - K) * kScale = exp(x - max) * unit * kScale,   unit = 2^(max log2(e) - K),
//
// and x log2(e) = k + f, k an integer, has its fraction f from a fused multiply-add with one
// rounding: the product does not lose anything, and k takes all but a number of at most 1/2 away.
// Subtracting the integer K costs nothing: it is part of the constant that rounds to k. The error
// of f is 2^-25 at most for |x| < 2^14 + 120, beyond which one would have to know log2(e) better.
template <bool kPrecise, class D>
class Log2Exp {
  using T = Lane<D>;
  using V = hn::Vec<D>;
  using Traits = ExpTraits<T>;

 public:
  static constexpr T kLimit = 16384;
#if HWY_NATIVE_FMA
  static constexpr bool kExists = sizeof(T) == 4;
#else
  static constexpr bool kExists = false;  // the product would be rounded
#endif
  static HWY_INLINE bool accepts(T max) { return kExists && max > -kLimit && max < kLimit; }

  // exp(x - max) is a term divided by this and by kScale.
  static HWY_INLINE double unit(T max) {
    if (!accepts(max)) return 1.0;
    const double power = double{max} * 0x1.71547652b82fep+0 - double{hn::GetLane(nearest(max))};
    const double r = power * 0x1.62e42fefa39efp-1;
    constexpr std::size_t kCount = sizeof kExpF64 / sizeof kExpF64[0];
    double p = kExpF64[kCount - 1];
    for (std::size_t i = kCount - 1; i > 0; --i) p = p * r + kExpF64[i - 1];
    return p;
  }

  explicit HWY_INLINE Log2Exp(V max)
      : floor_(hn::Add(max, hn::Set(D(), Traits::kClamp))),
        round_(hn::Sub(hn::Set(D(), Traits::kRound), nearest(max))) {}

  HWY_INLINE V term(V x) const {
    const D d;
    const hn::RebindToUnsigned<D> du;
    x = not_below(floor_, x);
    const V log2e = hn::Set(d, Traits::kLog2E);
    const V shifted = hn::MulAdd(x, log2e, round_);
    const V k = hn::Sub(shifted, round_);
    V f = hn::MulSub(x, log2e, k);
    // For results of 16 bits its absence costs 2^-26 |x - max|: what it amounts to at max cancels.
    if constexpr (kPrecise) f = hn::MulAdd(x, hn::Set(d, Traits::kLog2ELow), f);
    const V power = hn::BitCast(d, hn::ShiftLeft<Traits::kMantissaBits>(hn::BitCast(du, shifted)));
    return hn::Mul(power_of_two(f), power);
  }

 private:
  // An integer, by float32 arithmetic that is the same in every lane and for `unit`.
  static HWY_INLINE V nearest(V max) {
    const V round = hn::Set(D(), T(12582912.0));
    return hn::Sub(hn::Add(hn::Mul(max, hn::Set(D(), Traits::kLog2E)), round), round);
  }
  static HWY_INLINE V nearest(T max) { return nearest(hn::Set(D(), max)); }

  // Minimax in relative error on |f| <= 0.5: 0.16 * 2^-24, or 2^-21 for results of 16 bits.
  static HWY_INLINE V power_of_two(V f) {
    if constexpr (kPrecise) {
      constexpr T kPower[] = {1.0f,           0x1.62e430p-1f,  0x1.ebfbe0p-3f, 0x1.c6af62p-5f,
                              0x1.3b2a4ep-7f, 0x1.5f104ep-10f, 0x1.4418e6p-13f};
      return polynomial(D(), f, kPower);
    } else {
      constexpr T kPower[] = {1.0f,           0x1.62e39ep-1f, 0x1.ebfa4cp-3f,
                              0x1.c7436ep-5f, 0x1.3cbf76p-7f, 0x1.23a620p-10f};
      return polynomial(D(), f, kPower);
    }
  }

  V floor_;
  V round_;
};

}  // namespace HWY_NAMESPACE
}  // namespace softmax
HWY_AFTER_NAMESPACE();

#endif  // per target
