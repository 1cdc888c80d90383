// The SIMD pieces by themselves, on every target: conversions and exponentials.
// The order of the includes matters.
// clang-format off
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "host/test_cpu_simd.cc"
#include "hwy/foreach_target.h"  // includes this file once for each target
#include "cpu/exp-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace softmax {
namespace HWY_NAMESPACE {

// Whole vectors of lanes; `count` is a multiple of 64.
template <typename X>
void widen(const X *from, float *to, std::size_t count) {
  const hn::ScalableTag<float> d;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    hn::StoreU(Elements<X>::load(d, from + i), d, to + i);
  }
}
template <typename Y>
void narrow(const float *from, Y *to, std::size_t count) {
  const hn::ScalableTag<float> d;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    Elements<Y>::store(hn::LoadU(d, from + i), d, to + i);
  }
}

// Every count of a tail, between what is there and stays as it is.
template <typename T>
bool tails_are_exact() {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t count = 0; count <= lanes; ++count) {
    T from[2 * hn::MaxLanes(hn::ScalableTag<T>())];
    T to[2 * hn::MaxLanes(hn::ScalableTag<T>())];
    for (std::size_t i = 0; i < 2 * lanes; ++i) from[i] = static_cast<T>(i + 1), to[i] = T(-7);
    T loaded[hn::MaxLanes(hn::ScalableTag<T>())];
    hn::StoreU(load_first(d, from, count), d, loaded);
    store_first(hn::LoadU(d, from), d, to, count);
    for (std::size_t i = 0; i < lanes; ++i) {
      if (loaded[i] != (i < count ? from[i] : T(0))) return false;
      if (to[i] != (i < count ? from[i] : T(-7))) return false;
    }
  }
  return true;
}

// exp(x - max), taken back from a term.
template <bool kPrecise, typename T>
void difference_exp(const T *x, T max, T *result, std::size_t count) {
  const hn::ScalableTag<T> d;
  const DifferenceExp<kPrecise, hn::ScalableTag<T>> exp(hn::Set(d, max));
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    hn::StoreU(exp.term(hn::LoadU(d, x + i)), d, result + i);
  }
}
// false where the target has no such exponential.
template <bool kPrecise>
bool log2_exp(const float *x, float max, float *result, std::size_t count) {
  const hn::ScalableTag<float> d;
  using Exp = Log2Exp<kPrecise, hn::ScalableTag<float>>;
  if (!Exp::accepts(max)) return false;
  const Exp exp(hn::Set(d, max));
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    hn::StoreU(exp.term(hn::LoadU(d, x + i)), d, result + i);
  }
  return true;
}
double log2_unit(float max) { return Log2Exp<true, hn::ScalableTag<float>>::unit(max); }

void all_widen_f16(const f16_t *x, float *y, std::size_t n) { widen(x, y, n); }
void all_widen_bf16(const bf16_t *x, float *y, std::size_t n) { widen(x, y, n); }
void all_narrow_f16(const float *x, f16_t *y, std::size_t n) { narrow(x, y, n); }
void all_narrow_bf16(const float *x, bf16_t *y, std::size_t n) { narrow(x, y, n); }
bool tails() {
  return tails_are_exact<float>() && tails_are_exact<double>() && tails_are_exact<std::uint16_t>();
}
void exp_f32(const float *x, float max, float *y, std::size_t n) {
  difference_exp<true>(x, max, y, n);
}
void exp_f64(const double *x, double max, double *y, std::size_t n) {
  difference_exp<true>(x, max, y, n);
}
void exp_coarse(const float *x, float max, float *y, std::size_t n) {
  difference_exp<false>(x, max, y, n);
}
bool exp2_f32(const float *x, float max, float *y, std::size_t n) {
  return log2_exp<true>(x, max, y, n);
}
bool exp2_coarse(const float *x, float max, float *y, std::size_t n) {
  return log2_exp<false>(x, max, y, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace softmax
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <cmath>
#include <limits>
#include <vector>

#include "core/dtype.h"
#include "support/catch.h"
#include "support/inputs.h"

namespace softmax {
namespace {

HWY_EXPORT(all_widen_f16);
HWY_EXPORT(all_widen_bf16);
HWY_EXPORT(all_narrow_f16);
HWY_EXPORT(all_narrow_bf16);
HWY_EXPORT(tails);
HWY_EXPORT(exp_f32);
HWY_EXPORT(exp_f64);
HWY_EXPORT(exp_coarse);
HWY_EXPORT(exp2_f32);
HWY_EXPORT(exp2_coarse);
HWY_EXPORT(log2_unit);

template <typename Body>
void on_every_target(Body body) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    INFO(hwy::TargetName(target));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

bool same(float a, float b) {
  return a == b ? std::signbit(a) == std::signbit(b) : a != a && b != b;
}

template <typename X, typename Widen>
void check_widening(Widen widen) {
  std::vector<X> patterns(65536);
  for (std::uint32_t i = 0; i < 65536; ++i) patterns[i].bits = static_cast<std::uint16_t>(i);
  std::vector<float> wide(65536);
  widen(patterns.data(), wide.data(), wide.size());
  std::uint32_t wrong = 0;
  for (std::uint32_t i = 0; i < 65536; ++i) wrong += !same(wide[i], to_float(patterns[i]));
  CHECK(wrong == 0);
}

// Every 16-bit value, the middle to its neighbour, and the float32 numbers beside that; and numbers
// of any bits.
template <typename Y>
std::vector<float> narrowing_inputs() {
  std::vector<float> inputs;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const float value = to_float(Y{static_cast<std::uint16_t>(i)});
    const float next = to_float(Y{static_cast<std::uint16_t>(i + 1)});
    const float middle = value + (next - value) / 2;
    inputs.push_back(value);
    inputs.push_back(middle);
    inputs.push_back(std::nextafter(middle, HUGE_VALF));
    inputs.push_back(std::nextafter(middle, -HUGE_VALF));
  }
  for (std::uint64_t i = 0; i < (1 << 20); ++i) {
    inputs.push_back(
        float_from_bits(static_cast<std::uint32_t>(softmax_test::uniform(3, i) * 4294967296.0)));
  }
  return inputs;
}

template <typename Y, typename Narrow, typename Expected>
void check_narrowing(Narrow narrow, Expected expected) {
  const std::vector<float> inputs = narrowing_inputs<Y>();
  std::vector<Y> results(inputs.size());
  narrow(inputs.data(), results.data(), inputs.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Y y = expected(inputs[i]);
    const bool both_nan =
        to_float(results[i]) != to_float(results[i]) && to_float(y) != to_float(y);
    wrong += results[i].bits != y.bits && !both_nan;
  }
  CHECK(wrong == 0);
}

TEST_CASE("SIMD reads all 65536 patterns of a 16-bit type as the scalar code does") {
  on_every_target([] {
    check_widening<f16_t>([](auto... arguments) {
      HWY_DYNAMIC_DISPATCH(all_widen_f16)(arguments...);
    });
    check_widening<bf16_t>([](auto... arguments) {
      HWY_DYNAMIC_DISPATCH(all_widen_bf16)(arguments...);
    });
  });
}

TEST_CASE("SIMD rounds to a 16-bit type as the scalar code does, ties and subnormals too") {
  on_every_target([] {
    check_narrowing<f16_t>(
        [](auto... arguments) {
          HWY_DYNAMIC_DISPATCH(all_narrow_f16)
          (arguments...);
        },
        to_f16);
    check_narrowing<bf16_t>(
        [](auto... arguments) {
          HWY_DYNAMIC_DISPATCH(all_narrow_bf16)
          (arguments...);
        },
        to_bf16);
  });
}

TEST_CASE("A tail is loaded and stored to its last element and no further") {
  on_every_target([] { CHECK(HWY_DYNAMIC_DISPATCH(tails)()); });
}

// The largest error of terms / scale against exp(x - max) * unit, in ulps of the exact value, over
// arguments from max down to where results leave the normal numbers.
template <typename T, typename Exp>
double worst_ulps(Exp exp, T max, T lowest_difference, double unit, T scale) {
  constexpr std::size_t kCount = 1 << 16;
  std::vector<T> x(kCount), terms(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const double u = softmax_test::uniform(17, i);
    // Half of the arguments near max, where results are largest.
    const double d = i % 2 == 0 ? u * double(lowest_difference) : -u * 2;
    x[i] = std::min(max, static_cast<T>(double(max) + d));
  }
  x[0] = max;
  exp(x.data(), max, terms.data(), kCount);
  double worst = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const long double exact =
        std::exp(static_cast<long double>(x[i]) - static_cast<long double>(max)) * unit;
    const long double value = static_cast<long double>(terms[i]) / scale;
    const int exponent = std::ilogb(exact);
    const long double ulp = std::scalbn(1.0L, exponent - (std::numeric_limits<T>::digits - 1));
    const double error = static_cast<double>(std::fabs(value - exact) / ulp);
    if (!(error <= worst)) worst = error;  // a NaN must show
  }
  return worst;
}

constexpr float kMaxima[] = {0.0f, 1.0f, -0.7f, 3.3f, 17.1f, -88.2f, 700.3f, -9999.7f, 16383.5f};

TEST_CASE("The float32 exponential of a difference is within an ulp") {
  on_every_target([] {
    const auto exp = [](auto... arguments) { HWY_DYNAMIC_DISPATCH(exp_f32)(arguments...); };
    for (const float max : kMaxima) {
      CHECK(worst_ulps<float>(exp, max, -87.0f, 1.0, 0x1p64f) <= 1.2);
    }
    CHECK(worst_ulps<float>(exp, 3e9f, -87.0f, 1.0, 0x1p64f) <= 1.2);
  });
}

TEST_CASE("The float32 power of two of a row is within an ulp") {
  int targets_with_it = 0;
  on_every_target([&] {
    const auto exp = [](auto... arguments) { return HWY_DYNAMIC_DISPATCH(exp2_f32)(arguments...); };
    for (const float max : kMaxima) {
      std::vector<float> x(64, max), y(64);
      if (!exp(x.data(), max, y.data(), x.size())) continue;  // no fused operations
      ++targets_with_it;
      const double unit = HWY_DYNAMIC_DISPATCH(log2_unit)(max);
      CHECK(unit >= 0.70);
      CHECK(unit <= 1.42);
      CHECK(worst_ulps<float>(exp, max, -87.0f, unit, 0x1p64f) <= 1.2);
    }
  });
#if HWY_ARCH_X86
  if (hwy::SupportedTargets() & (HWY_AVX2 | HWY_AVX3)) CHECK(targets_with_it > 0);
#endif
}

TEST_CASE("The float64 exponential of a difference is within an ulp") {
  on_every_target([] {
    const auto exp = [](auto... arguments) { HWY_DYNAMIC_DISPATCH(exp_f64)(arguments...); };
    for (const double max : {0.0, 1.0, -0.7, 3.3, 17.1, -700.2, 1e5 + 0.3, -1e12 - 0.1}) {
      CHECK(worst_ulps<double>(exp, max, -708.0, 1.0, 0x1p512) <= 1.2);
    }
  });
}

TEST_CASE("The exponentials for 16-bit results are within a hundredth of such a result's ulp") {
  on_every_target([] {
    const auto by_difference = [](auto... arguments) {
      HWY_DYNAMIC_DISPATCH(exp_coarse)(arguments...);
    };
    const auto by_power = [](auto... arguments) {
      HWY_DYNAMIC_DISPATCH(exp2_coarse)(arguments...);
    };
    // In ulps of float32: 2^13 of them are one of float16, 2^16 one of bfloat16.
    for (const float max : {0.0f, 3.25f, -88.0f, 700.0f}) {
      CHECK(worst_ulps<float>(by_difference, max, -17.0f, 1.0, 0x1p64f) <= 0.004 * 8192);
      CHECK(worst_ulps<float>(by_difference, max, -87.0f, 1.0, 0x1p64f) <= 0.004 * 65536);
      std::vector<float> x(64, max), y(64);
      if (!HWY_DYNAMIC_DISPATCH(exp2_coarse)(x.data(), max, y.data(), x.size())) continue;
      // The unit is what the term of max itself says: that is what cancels.
      const double unit = double(y[0]) * 0x1p-64;
      CHECK(worst_ulps<float>(by_power, max, -17.0f, unit, 0x1p64f) <= 0.004 * 8192);
      CHECK(worst_ulps<float>(by_power, max, -87.0f, unit, 0x1p64f) <= 0.004 * 65536);
    }
  });
}

TEST_CASE("Terms of -inf vanish and those of a NaN stay, on every target") {
  on_every_target([] {
    const float infinity = std::numeric_limits<float>::infinity();
    std::vector<float> x(64, -infinity), y(64);
    const auto check = [&] {
      for (std::size_t i = 0; i < y.size(); ++i) {
        if (i % 3 == 0) {
          CHECK(y[i] != y[i]);
        } else {
          CHECK(y[i] * 0x1p-64f * 0.5f == 0.0f);  // as the last pass over a row does at most
        }
      }
    };
    for (std::size_t i = 0; i < x.size(); i += 3) x[i] = std::numeric_limits<float>::quiet_NaN();
    for (const float max : {0.0f, -3.4e38f, 3.4e38f, 16000.0f}) {
      HWY_DYNAMIC_DISPATCH(exp_f32)(x.data(), max, y.data(), x.size());
      check();
      HWY_DYNAMIC_DISPATCH(exp_coarse)(x.data(), max, y.data(), x.size());
      check();
      if (HWY_DYNAMIC_DISPATCH(exp2_f32)(x.data(), max, y.data(), x.size())) check();
      if (HWY_DYNAMIC_DISPATCH(exp2_coarse)(x.data(), max, y.data(), x.size())) check();
    }
  });
}

}  // namespace
}  // namespace softmax

#endif  // HWY_ONCE
