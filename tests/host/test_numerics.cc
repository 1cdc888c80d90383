// The arithmetic that decides correctness: core/exp.h, core/shifted_exp.h, core/numerics.h.
#include <cmath>
#include <limits>
#include <vector>

#include "core/numerics.h"
#include "support/catch.h"
#include "support/compare.h"
#include "support/inputs.h"

namespace softmax_test {
namespace {

using softmax::CompensatedSum;
using softmax::OnlineSum;
using softmax::Pair;
using softmax::RowFactors;
using softmax::ShiftedExp;
using softmax::Split;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
const Format &kF32 = format_of(SOFTMAX_DTYPE_F32);

constexpr float kUnit = 0x1p64f;  // what 1 is in a pair's rest

// The sum that a pair stands for, as a multiple of exp(max).
template <typename T>
double sum_of(Pair<T> pair) {
  return 1 + static_cast<double>(pair.rest) / kUnit;
}

double rest_of(const std::vector<float> &x) {
  double max = -HUGE_VAL;
  for (const float v : x) max = std::max<double>(max, v);
  long double sum = 0;
  for (const float v : x) sum += std::exp(static_cast<long double>(v) - max);
  return static_cast<double>(sum - 1);
}

}  // namespace

TEST_CASE("two_sum keeps what rounding takes", "[numerics]") {
  for (std::uint64_t k = 0; k < 20000; ++k) {
    const float a = static_cast<float>(normal(1, k) * std::ldexp(1, static_cast<int>(k % 30) - 15));
    const float b = static_cast<float>(normal(2, k) * std::ldexp(1, static_cast<int>(k % 37) - 18));
    const Split<float> s = softmax::two_sum(a, b);
    // 24 bits each at most 33 binary places apart: 64 bits hold the sum.
    const long double exact = static_cast<long double>(a) + b;
    if (s.hi != a + b || static_cast<long double>(s.hi) + s.lo != exact) {
      INFO(a << " + " << b);
      CHECK(false);
    }
  }
  const Split<double> wide = softmax::two_sum(1.0, 0x1p-60);
  CHECK(wide.hi == 1.0);
  CHECK(wide.lo == 0x1p-60);
}

TEST_CASE("difference carries the subtraction's error and is safe at infinities", "[numerics]") {
  const Split<float> d = softmax::difference(0.1f, 60.3f);
  CHECK(static_cast<double>(d.hi) + d.lo == static_cast<double>(0.1f) - 60.3f);
  const Split<float> far = softmax::difference(-kInf, 5.0f);
  CHECK(far.hi == -kInf);
  CHECK(far.lo == 0);
  const Split<float> overflow = softmax::difference(-3e38f, 3e38f);
  CHECK(overflow.hi == -kInf);
  CHECK(overflow.lo == 0);
  CHECK(std::isnan(softmax::difference(kNan, 5.0f).hi));
}

TEST_CASE("exp_times is within 1.25 ulp over its whole range", "[numerics]") {
  double worst = 0;
  int wrong_subnormals = 0;
  for (int k = 0; k < 2000000; ++k) {
    const float hi = -104.0f + 144.0f * static_cast<float>(uniform(3, k));
    // Up to half a unit in the last place of hi, which may be 0.
    const int exponent = hi == 0.0f ? -126 : std::ilogb(hi);
    const float lo = static_cast<float>(std::ldexp(uniform(4, k) - 0.5, exponent - 23));
    const float got = softmax::exp_times(Split<float>{hi, lo}, 1.0f);
    const double exact = std::exp(static_cast<double>(hi)) * (1 + static_cast<double>(lo));
    const double error = error_ulps(kF32, got, exact);
    if (exact >= 0x1p-126) {
      worst = std::max(worst, error);
    } else if (!(error <= 0.51 + 0.74 * exact / 0x1p-126)) {
      ++wrong_subnormals;
    }
  }
  INFO("worst " << worst);
  CHECK(worst <= 1.25);
  CHECK(worst > 0.5);  // or nothing was measured
  CHECK(wrong_subnormals == 0);
}

TEST_CASE("exp_times ends in 0 and passes a NaN on", "[numerics]") {
  CHECK(softmax::exp_of(Split<float>{0, 0}) == 1.0f);
  CHECK(softmax::exp_of(Split<float>{-104.0f, 0}) == 0.0f);
  CHECK(softmax::exp_of(Split<float>{-1e30f, 0}) == 0.0f);
  CHECK(softmax::exp_of(Split<float>{-kInf, 0}) == 0.0f);
  CHECK(softmax::exp_of(Split<float>{-kInf, kNan}) == 0.0f);  // what raw_difference gives
  CHECK(softmax::exp_of(softmax::raw_difference(-kInf, 3.0f)) == 0.0f);
  CHECK(std::isnan(softmax::exp_of(Split<float>{kNan, 0})));
  CHECK(softmax::exp_of(Split<double>{0, 0}) == 1.0);
  CHECK(softmax::exp_of(softmax::raw_difference<double>(-kInf, 3)) == 0.0);
  CHECK(std::isnan(softmax::exp_of(Split<double>{kNan, 0})));
}

TEST_CASE("exp_times takes a factor as it says", "[numerics]") {
  for (int k = 0; k < 100000; ++k) {
    const float hi = -60.0f * static_cast<float>(uniform(5, k));
    const float factor = static_cast<float>(std::ldexp(1 + uniform(6, k), k % 50 - 25));
    const double exact = std::exp(static_cast<double>(hi)) * factor;
    if (!(error_ulps(kF32, softmax::exp_times(Split<float>{hi, 0}, factor), exact) <= 2.2)) {
      INFO(hi << " " << factor);
      CHECK(false);
    }
  }
  CHECK(softmax::exp_times(Split<float>{-3, 0}, 0.0f) == 0.0f);
  CHECK(softmax::exp_times(Split<float>{-kInf, 0}, 0.0f) == 0.0f);
}

TEST_CASE("ShiftedExp is within 1.1 ulp at any reference", "[numerics]") {
  for (const float reference : {0.0f, 0.37f, -88.6f, 1234.56f, -16000.1f, 16383.9f, 16384.0f,
                                70000.3f, -1e9f, 3e30f, -3e38f}) {
    const ShiftedExp<float> exp(reference);
    double worst = 0;
    for (int k = 0; k < 100000; ++k) {
      const float x = reference + 8.0f - 100.0f * static_cast<float>(uniform(7, k));
      const double exact = std::exp(static_cast<double>(x) - reference);
      if (!(exact >= 0x1p-126 && exact < 3000)) continue;
      worst = std::max(worst, error_ulps(kF32, exp.times(x, 1.0f), exact));
    }
    INFO("reference " << reference << ", worst " << worst);
    CHECK(worst <= 1.1);
  }
}

TEST_CASE("ShiftedExp gives 0 for -inf and a NaN for a NaN at any reference", "[numerics]") {
  for (const float reference : {0.0f, -5.5f, 20000.0f, -3.402823466e+38f}) {
    const ShiftedExp<float> exp(reference);
    CHECK(exp.times(-kInf, 1.0f) == 0.0f);
    CHECK(std::isnan(exp.times(kNan, 1.0f)));
    CHECK(exp.times(reference, 1.0f) == 1.0f);
    CHECK(exp.log_value(-kInf, 0.5f) == -kInf);
    CHECK(std::isnan(exp.log_value(kNan, 0.5f)));
  }
}

TEST_CASE("a compensated sum of 2^24 terms is as good as of 64", "[numerics]") {
  for (const bool equal : {true, false}) {
    CompensatedSum<float> sum;
    long double exact = 0;
    for (std::uint64_t k = 0; k < (1u << 24); ++k) {
      const float term = equal ? 0.1f : static_cast<float>(uniform(8, k));
      sum.add(term);
      exact += term;
    }
    CHECK(std::fabs(static_cast<double>((static_cast<long double>(sum.hi) + sum.lo) / exact - 1)) <
          0x1p-24);
  }
}

TEST_CASE("a compensated sum of sums is the same from both sides", "[numerics]") {
  for (std::uint64_t k = 0; k < 1000; ++k) {
    CompensatedSum<float> a, b;
    for (std::uint64_t i = 0; i < 50; ++i) {
      a.add(static_cast<float>(uniform(9, 100 * k + i)));
      b.add(static_cast<float>(uniform(10, 100 * k + i)) * 1e-5f);
    }
    CompensatedSum<float> left = a, right = b;
    left.add(b);
    right.add(a);
    if (left.hi != right.hi || left.lo != right.lo) CHECK(false);
  }
  SUCCEED();
}

TEST_CASE("the pair's identity changes nothing", "[numerics]") {
  const Pair<float> none = Pair<float>::identity();
  for (const Pair<float> pair :
       {Pair<float>{3.5f, 0.25f * kUnit}, Pair<float>{-1e30f, 7 * kUnit}, none}) {
    for (const Pair<float> merged : {merge(pair, none), merge(none, pair)}) {
      CHECK(merged.max == pair.max);
      CHECK(merged.rest == pair.rest);
    }
  }
}

TEST_CASE("merging pairs is associative up to rounding and right in any order", "[numerics]") {
  for (std::uint64_t k = 0; k < 500; ++k) {
    std::vector<float> x;
    std::vector<Pair<float>> pairs;
    for (std::uint64_t i = 0; i < 24; ++i) {
      x.push_back(static_cast<float>(5 * normal(11, 24 * k + i)));
      pairs.push_back({x.back(), 0});
    }
    Pair<float> forward = Pair<float>::identity(), backward = forward;
    for (int i = 0; i < 24; ++i) {
      forward = merge(forward, pairs[i]);
      backward = merge(pairs[23 - i], backward);
    }
    for (int width = 1; width < 24; width *= 2) {  // a tree
      for (int i = 0; i + width < 24; i += 2 * width) pairs[i] = merge(pairs[i], pairs[i + width]);
    }
    const double exact = 1 + rest_of(x);
    for (const Pair<float> pair : {forward, backward, pairs[0]}) {
      if (!(std::fabs(sum_of(pair) / exact - 1) < 24 * 0x1p-24)) {
        INFO(sum_of(pair) << " " << exact);
        CHECK(false);
      }
    }
  }
  SUCCEED();
}

TEST_CASE("merging parts that are all -inf poisons nothing", "[numerics]") {
  const Pair<float> none = Pair<float>::identity();
  const Pair<float> some = {2.0f, 0.5f};
  const Pair<float> merged = merge(merge(none, none), merge(some, merge(none, none)));
  CHECK(merged.max == 2.0f);
  CHECK(merged.rest == 0.5f);
  const Pair<float> empty = merge(none, none);
  CHECK(empty.max == -kInf);
  CHECK(empty.rest == -kUnit);
}

TEST_CASE("a NaN in a part reaches the row from either side", "[numerics]") {
  const Pair<float> bad = {1.0f, kNan};
  for (const Pair<float> other :
       {Pair<float>{5, 1}, Pair<float>{1, 1}, Pair<float>{-5, 1}, Pair<float>::identity()}) {
    CHECK(std::isnan(merge(bad, other).rest));
    CHECK(std::isnan(merge(other, bad).rest));
  }
}

TEST_CASE("the online sum is right over rows in any order", "[numerics]") {
  for (const Pattern pattern : {Pattern::kNormal1, Pattern::kNormal10, Pattern::kAscending,
                                Pattern::kDescending, Pattern::kMaxLast, Pattern::kConfident,
                                Pattern::kCertain, Pattern::kMinusInf, Pattern::kEqual}) {
    for (const std::int64_t cols : {1, 2, 10, 1000, 30000}) {
      const Elements x = make_input(SOFTMAX_DTYPE_F32, 1, cols, pattern, 12);
      OnlineSum<float> online;
      std::vector<float> values;
      for (std::int64_t j = 0; j < cols; ++j) {
        values.push_back(static_cast<float>(x[j]));
        online.add(values.back());
      }
      const Pair<float> pair = online.pair();
      INFO(pattern_name(pattern) << ", " << cols << " columns: " << pair.rest << ", "
                                 << rest_of(values));
      CHECK(std::fabs(sum_of(pair) - (1 + rest_of(values))) <= 3 * 0x1p-23 * (1 + rest_of(values)));
    }
  }
}

TEST_CASE("a slow ascent does not wear the online sum down", "[numerics]") {
  OnlineSum<float> online;
  std::vector<float> values;
  for (int j = 0; j < 100000; ++j) {
    values.push_back(static_cast<float>(j) * 0.001f);
    online.add(values.back());
  }
  CHECK(std::fabs(sum_of(online.pair()) / (1 + rest_of(values)) - 1) < 3 * 0x1p-23);
}

TEST_CASE("the online sum of special values is what the pair says of them", "[numerics]") {
  OnlineSum<float> nothing;
  CHECK(nothing.pair().max == -kInf);
  CHECK(nothing.pair().rest == -kUnit);
  OnlineSum<float> empty;
  for (int j = 0; j < 5; ++j) empty.add(-kInf);
  CHECK(empty.pair().max == -kInf);
  CHECK(empty.pair().rest == -kUnit);
  for (const float special : {kNan, kInf}) {
    for (int place = 0; place < 3; ++place) {
      OnlineSum<float> online;
      for (int j = 0; j < 3; ++j) online.add(j == place ? special : 1.0f + static_cast<float>(j));
      const RowFactors<float> factors = softmax::finish(online.pair(), false);
      CHECK(std::isnan(softmax::output_value(1.0f, factors, false)));
      CHECK(std::isnan(softmax::output_value(1.0f, factors, true)));
    }
  }
}

TEST_CASE("finish turns pairs into what the last pass needs", "[numerics]") {
  const RowFactors<float> plain = softmax::finish(Pair<float>{2, kUnit}, false);
  CHECK(plain.max == 2);
  CHECK(plain.inverse_sum == 0.5f);
  CHECK(plain.log_sum == static_cast<float>(std::log(2.0)));

  const RowFactors<float> nan_row = softmax::finish(Pair<float>::identity(), false);
  CHECK(std::isnan(softmax::output_value(-kInf, nan_row, false)));
  CHECK(std::isnan(softmax::output_value(-kInf, nan_row, true)));
  const RowFactors<float> zero_row = softmax::finish(Pair<float>::identity(), true);
  CHECK(softmax::output_value(-kInf, zero_row, false) == 0);
  CHECK(softmax::output_value(-kInf, zero_row, true) == -kInf);
  // empty_row is for rows without a value above -inf alone.
  const RowFactors<float> bad = softmax::finish(Pair<float>{-kInf, kNan}, true);
  CHECK(std::isnan(softmax::output_value(-kInf, bad, false)));
  CHECK(std::isnan(softmax::output_value(-kInf, bad, true)));
}

TEST_CASE("the online sum of terms below the normal range is accurate", "[numerics]") {
  for (const float gap : {92.75f, 97.0f}) {
    OnlineSum<float> online;
    for (int j = 0; j < 100000; ++j) online.add(j == 777 ? gap : 0.0f);
    const double exact = -std::log1p(99999 * std::exp(-static_cast<double>(gap)));
    const float got = softmax::output_value(gap, softmax::finish(online.pair(), false), true);
    INFO("gap " << gap << ": " << got << ", " << exact);
    CHECK(error_ulps(kF32, got, exact) <= 4);
  }
}

TEST_CASE("a confident row's log-softmax keeps its relative accuracy near 0", "[numerics]") {
  for (const float gap : {10.0f, 30.0f, 60.0f, 85.0f, 87.25f}) {
    for (const bool max_first : {true, false}) {
      OnlineSum<float> online;
      online.add(max_first ? gap : 0.0f);
      online.add(max_first ? 0.0f : gap);
      const double exact = -std::log1p(std::exp(-static_cast<double>(gap)));
      const float got = softmax::output_value(gap, softmax::finish(online.pair(), false), true);
      INFO("gap " << gap << ": " << got << ", " << exact);
      CHECK(error_ulps(kF32, got, exact) <= 4);
    }
  }
}

TEST_CASE("a row of -inf alone is empty however its sum was taken", "[numerics]") {
  // exp(-inf) in units of 2^-64 is not 0 to the last bit, and must not pass for a sum.
  for (const bool is_log : {false, true}) {
    const float row[4] = {-kInf, -kInf, -kInf, -kInf};
    softmax::TermSum<float> terms;
    terms.add(row, softmax::ShiftedExp<float>(softmax::finite_reference(-kInf)), is_log);
    const RowFactors<float> nan_row = softmax::finish(-kInf, terms.combined(), false);
    CHECK(std::isnan(softmax::output_value(-kInf, nan_row, is_log)));
    const RowFactors<float> zero_row = softmax::finish(-kInf, terms.combined(), true);
    CHECK(softmax::output_value(-kInf, zero_row, is_log) == (is_log ? -kInf : 0.0f));
  }
}

TEST_CASE("elements at -inf add nothing, however many", "[numerics]") {
  softmax::TermSum<float> terms;
  const softmax::ShiftedExp<float> exp(3.0f);
  const float top[1] = {3.0f};
  const float row[4] = {-kInf, -kInf, -kInf, -kInf};
  terms.add(top, exp, true);
  for (int i = 0; i < (1 << 22); ++i) terms.add(row, exp, true);
  CHECK(softmax::finish(3.0f, terms.combined(), false).log_sum == 0.0f);
}

}  // namespace softmax_test
