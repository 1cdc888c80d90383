// The SIMD exponential of a difference that carries its rounding error: what core/numerics.h does
// in scalar code. Compiled once for each SIMD target.
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

// The exponential's constants. exp(d) = 2^k exp(r) with k = round(d / ln 2), and results come out
// times 2^kScaleLog2, so that every term down to the clamp is a normal number and the last
// multiplication of a row, by 2^-kScaleLog2 / s, is the only one that rounds into the subnormals.
template <typename T>
struct ExpTraits;

template <>
struct ExpTraits<float> {
  static constexpr float kScale = 0x1p64f;
  static constexpr float kInverseScale = 0x1p-64f;
  // Below it exp is under half of the least subnormal. k >= -174.
  static constexpr float kClamp = -120.0f;
  static constexpr float kLog2E = 0x1.715476p+0f;
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

// limit where v is below it, else v; a NaN in v stays.
template <class D>
HWY_INLINE hn::Vec<D> not_below(D, hn::Vec<D> limit, hn::Vec<D> v) {
#if (HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128) || HWY_ARCH_ARM_A64
  return hn::Max(limit, v);  // x86 returns the second of two when one is a NaN; Arm the NaN
#else
  return hn::IfThenElse(hn::Lt(v, limit), limit, v);
#endif
}

// exp(r) on |r| <= 0.3469, minimax in relative error: 2^-28 of degree 6, 2^-23.2 of degree 5 for
// results that end in 16 bits, 2^-64 of degree 12 for float64.
template <bool kPrecise, class D>
HWY_INLINE hn::Vec<D> exp_reduced(D d, hn::Vec<D> r) {
  using T = Lane<D>;
  hn::Vec<D> p;
  if constexpr (sizeof(T) == 8) {
    p = hn::Set(d, 0x1.1e3c804c3335cp-29);
    p = hn::MulAdd(p, r, hn::Set(d, 0x1.af6ce7e503355p-26));
    p = hn::MulAdd(p, r, hn::Set(d, 0x1.27e5b5af53b6ap-22));
    p = hn::MulAdd(p, r, hn::Set(d, 0x1.71ddef907c0d8p-19));
    p = hn::MulAdd(p, r, hn::Set(d, 0x1.a01a013559f16p-16));
    p = hn::MulAdd(p, r, hn::Set(d, 0x1.a01a01b3b6dcdp-13));
    p = hn::MulAdd(p, r, hn::Set(d, 0x1.6c16c16c30accp-10));
    p = hn::MulAdd(p, r, hn::Set(d, 0x1.111111110ebcep-7));
    p = hn::MulAdd(p, r, hn::Set(d, 0x1.5555555555501p-5));
    p = hn::MulAdd(p, r, hn::Set(d, 0x1.555555555555bp-3));
    p = hn::MulAdd(p, r, hn::Set(d, 0.5));
  } else if constexpr (kPrecise) {
    p = hn::Set(d, 0x1.6d117cp-10f);
    p = hn::MulAdd(p, r, hn::Set(d, 0x1.120be2p-7f));
    p = hn::MulAdd(p, r, hn::Set(d, 0x1.555518p-5f));
    p = hn::MulAdd(p, r, hn::Set(d, 0x1.5554dcp-3f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.5f));
  } else {
    p = hn::Set(d, 0x1.1061b8p-7f);
    p = hn::MulAdd(p, r, hn::Set(d, 0x1.572bc4p-5f));
    p = hn::MulAdd(p, r, hn::Set(d, 0x1.5557b4p-3f));
    p = hn::MulAdd(p, r, hn::Set(d, 0x1.fffdf8p-2f));
  }
  p = hn::MulAdd(p, r, hn::Set(d, T(1)));
  return hn::MulAdd(p, r, hn::Set(d, T(1)));
}

// The rounding error of hi = x - max, for x <= max. The sum x + (-max) is not above 0, so the
// smaller of its two terms has the larger magnitude: Dekker's three operations are exact.
// Not a number where hi is infinite.
template <class D>
HWY_INLINE hn::Vec<D> difference_error(D, hn::Vec<D> x, hn::Vec<D> minus_max, hn::Vec<D> hi) {
  const auto larger = hn::Min(x, minus_max);
  const auto smaller = hn::Max(x, minus_max);
  return hn::Sub(smaller, hn::Sub(hi, larger));
}

// exp(x - max) * kScale for x <= max, max finite: -inf gives less than the least subnormal, a NaN
// stays. kPrecise is for 32-bit and 64-bit results: it carries the difference's rounding error, and
// the result is good to 0.8 ulp. Without, the relative error is below 2^-17 at x - max = -87, where
// the least normal bfloat16 lies, and below 2^-20 at -17, where that of float16 lies.
template <bool kPrecise, class D>
HWY_INLINE hn::Vec<D> exp_term(D d, hn::Vec<D> x, hn::Vec<D> max) {
  using T = Lane<D>;
  using Traits = ExpTraits<T>;
  const hn::RebindToUnsigned<D> du;
  const auto clamp = hn::Set(d, Traits::kClamp);
  const auto difference = hn::Sub(x, max);
  const auto hi = not_below(d, clamp, difference);
  const auto round = hn::Set(d, Traits::kRound);
  const auto shifted = hn::MulAdd(hi, hn::Set(d, Traits::kLog2E), round);
  const auto k = hn::Sub(shifted, round);
  auto r = hn::NegMulAdd(k, hn::Set(d, Traits::kLn2Hi), hi);
  if constexpr (kPrecise) {
    const auto error = hn::IfThenElseZero(hn::Ge(difference, clamp),
                                          difference_error(d, x, hn::Neg(max), difference));
    r = hn::Add(r, hn::NegMulAdd(k, hn::Set(d, Traits::kLn2Lo), error));
  } else {
    r = hn::NegMulAdd(k, hn::Set(d, Traits::kLn2Lo), r);
  }
  const auto power = hn::BitCast(d, hn::ShiftLeft<Traits::kMantissaBits>(hn::BitCast(du, shifted)));
  return hn::Mul(exp_reduced<kPrecise>(d, r), power);
}

}  // namespace HWY_NAMESPACE
}  // namespace softmax
HWY_AFTER_NAMESPACE();

#endif  // per target
