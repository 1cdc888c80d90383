// The kernels with a row in registers: terms against powers of two, the parts of a row and their
// merging, results from the terms that are kept (core/row_part.h).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/row_part.h"
#include "support/catch.h"
#include "support/compare.h"
#include "support/inputs.h"

namespace softmax_test {
namespace {

using softmax::CoarseOutput;
using softmax::CoarseTerms;
using softmax::NearTerms;
using softmax::RowFactors;
using softmax::RowPart;
using softmax::ShiftedExp;
using softmax::Split;
using softmax::TermFactor;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kLowest = std::numeric_limits<float>::lowest();
const Format &kF32 = format_of(SOFTMAX_DTYPE_F32);
const Format &kF64 = format_of(SOFTMAX_DTYPE_F64);
constexpr float kUnit = 0x1p64f;  // what 1 is in a sum
constexpr long double kLn2 = 0.693147180559945309417232121458176568L;

template <typename T>
T larger_or_nan(T a, T b) {
  return a < b || b != b ? b : a;
}

bool is_near_max(float max) { return softmax::is_near(max, softmax::kNearLimit); }

// log of what the terms of a part with this maximum are against, where `limit` says which are near.
long double reference_of(float max, float limit) {
  if (softmax::is_near(max, limit)) return softmax::reference_exponent(max) * kLn2;
  return softmax::finite_reference(max);
}

// A term as the kernels take it.
template <typename T>
T term_of(T x, T reference) {
  if constexpr (sizeof(T) == 4) {
    if (is_near_max(reference)) return NearTerms(reference)(x);
  }
  return ShiftedExp<T>(softmax::finite_reference(reference)).times(x, softmax::sum_unit<T>());
}
template <typename T>
softmax::WideSum<T> sum_up_to(const T *x, std::size_t count, T reference, T *terms) {
  softmax::GridSum<T> sum;
  for (std::size_t i = 0; i < count; ++i) {
    const T term = term_of(x[i] > reference ? reference : x[i], reference);
    if (terms != nullptr) terms[i] = term;
    sum.add(term);
  }
  return sum.sum();
}

// One part as the kernels take it, its terms kept where `terms` is given.
template <typename T>
RowPart<T> part_of(const T *x, std::size_t count, bool is_log, T *terms) {
  T max = -std::numeric_limits<T>::infinity();
  for (std::size_t i = 0; i < count; ++i) max = larger_or_nan(max, x[i]);
  RowPart<T> part = RowPart<T>::of(max);
  part.others = sum_up_to(x, count, max, terms);
  if (is_log && !part.take_max_out(softmax::kNearLimit)) {
    T second = -std::numeric_limits<T>::infinity();
    for (std::size_t i = 0; i < count; ++i) second = x[i] < max ? std::max(second, x[i]) : second;
    RowPart<T> below = RowPart<T>::of(second);
    below.others = sum_up_to<T>(x, count, second, nullptr);
    part.take_others_from(below, softmax::kNearLimit);
  }
  return part;
}

template <typename T>
RowPart<T> merged(std::vector<RowPart<T>> parts) {
  T max = -std::numeric_limits<T>::infinity();
  for (const RowPart<T> &part : parts) max = larger_or_nan(max, part.max);
  RowPart<T> row = RowPart<T>::of(max);
  for (RowPart<T> &part : parts) {
    part.rescale(max, softmax::kNearLimit);
    row.add(part);
  }
  return row;
}

// The parts of a row cut into runs of equal length.
template <typename T>
std::vector<RowPart<T>> parts_of(const std::vector<T> &x, std::size_t run, bool is_log, T *terms) {
  std::vector<RowPart<T>> parts;
  for (std::size_t first = 0; first < x.size(); first += run) {
    parts.push_back(part_of(x.data() + first, std::min(run, x.size() - first), is_log,
                            terms == nullptr ? nullptr : terms + first));
  }
  return parts;
}

template <typename T>
std::vector<T> held_softmax(const std::vector<T> &x, std::size_t parts,
                            bool empty_is_zero = false) {
  const std::size_t run = (x.size() + parts - 1) / parts;
  std::vector<T> terms(x.size());
  const std::vector<RowPart<T>> own = parts_of(x, run, false, terms.data());
  const RowPart<T> all = merged(own);
  const RowFactors<T> row = softmax::finish(all, softmax::kNearLimit, empty_is_zero, false);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const TermFactor<T> factor = softmax::term_factor(
        row, softmax::part_scale(own[i / run].max, all.max, softmax::kNearLimit));
    if (factor.has_before()) terms[i] *= factor.before;
    terms[i] = factor.times(terms[i]);
  }
  return terms;
}

template <typename T>
std::vector<T> held_log_softmax(const std::vector<T> &x, std::size_t parts, bool empty_is_zero) {
  const std::size_t run = (x.size() + parts - 1) / parts;
  const RowFactors<T> row = softmax::finish(merged(parts_of<T>(x, run, true, nullptr)),
                                            softmax::kNearLimit, empty_is_zero, true);
  std::vector<T> y;
  for (const T v : x) {
    if constexpr (sizeof(T) == 4) {
      y.push_back(softmax::log_value(v, row, softmax::log_reference(row)));
    } else {
      y.push_back(ShiftedExp<T>(row.max).log_value(v, row.log_sum));
    }
  }
  return y;
}

// Four runs of 16 around `top`, all but one of them `gap` lower.
std::vector<float> uneven_row(std::uint64_t seed, float top, float gap) {
  std::vector<float> x;
  for (std::uint64_t j = 0; j < 64; ++j) {
    const float below = j / 16 == seed % 4 ? 0.0f : gap;
    x.push_back(top + (static_cast<float>(3 * normal(40 + seed, j)) - below));
  }
  return x;
}

}  // namespace

TEST_CASE("NearTerms are within 1.1 ulp of exp(x) / 2^R at any near maximum", "[numerics]") {
  double worst = 0;
  std::int64_t too_large = 0;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    const float sizes[] = {1.0f, 60.0f, 1000.0f, 16383.99f};
    const float max = sizes[i % 4] * static_cast<float>(2 * uniform(71, i) - 1);
    const NearTerms terms(max);
    for (std::uint64_t j = 0; j < 100; ++j) {
      const float below = static_cast<float>((j % 2 == 0 ? 120 : 2) * uniform(72 + i, j));
      const float x = j == 0 ? max : max - below;
      const float term = terms(x);
      const long double exact = std::exp(x - reference_of(max, softmax::kNearLimit));
      worst = std::max(worst, error_ulps(kF32, term, exact * 0x1p64L));
      too_large += exact <= 1.4143L ? 0 : 1;
    }
  }
  INFO("worst " << worst);
  CHECK(worst <= 1.1);
  CHECK(worst > 0.5);  // or nothing was measured
  CHECK(too_large == 0);
}

TEST_CASE("the terms' reference is as far from the maximum as its scale says", "[numerics]") {
  double worst = 0;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const float sizes[] = {1.0f, 60.0f, 1000.0f, 16383.99f};
    const float max = sizes[i % 4] * static_cast<float>(2 * uniform(74, i) - 1);
    const Split<float> scale = softmax::reference_scale(max, softmax::kNearLimit);
    const long double exact = std::exp(reference_of(max, softmax::kNearLimit) - max) * 0x1p64L;
    worst = std::max(worst, std::fabs(static_cast<double>(
                                (scale.hi + static_cast<long double>(scale.lo)) / exact - 1)));
    CHECK(softmax::own_term(max, softmax::kNearLimit) == NearTerms(max)(max));
  }
  INFO("worst " << worst * 0x1p24);
  CHECK(worst <= 0x1p-24);
  CHECK(worst > 0x1p-28);  // or nothing was measured
  CHECK(softmax::reference_scale(20000.0f, softmax::kNearLimit).hi == kUnit);
}

TEST_CASE("log-softmax of a maximum and one term keeps 4 ulp where its own ulp halves",
          "[numerics]") {
  // Just below a power of two, the logarithm of 1 + term: an ulp of it is half of the term's.
  double worst = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const float sizes[] = {1.0f, 500.0f, 16383.0f};
    const float max = sizes[i % 3] * static_cast<float>(2 * uniform(78, i) - 1);
    for (int k = 1; k <= 8; ++k) {
      const double term = std::ldexp(1.0, -k) * (1 + std::ldexp(uniform(79 + i, k), -k - 1));
      const std::vector<float> x = {max, static_cast<float>(max + std::log(term))};
      const float y = held_log_softmax(x, 1, false)[0];
      const long double exact = -std::log1p(std::exp(static_cast<long double>(x[1]) - max));
      worst = std::max(worst, error_ulps(kF32, y, exact));
    }
  }
  INFO("worst " << worst);
  CHECK(worst <= 3.5);
  CHECK(worst > 0.5);
}

TEST_CASE("log_value is right next to a maximum of any size", "[numerics]") {
  double worst = 0;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const float sizes[] = {1.0f, 60.0f, 16383.99f, 1e9f, 1e30f};
    RowFactors<float> row = {};
    row.max = sizes[i % 5] * static_cast<float>(2 * uniform(76, i) - 1);
    row.log_sum = static_cast<float>(std::pow(10.0, -14 + 15 * uniform(77, i)));
    const Split<float> reference = softmax::log_reference(row);
    float x = row.max;
    for (std::uint64_t j = 0; j < 60; ++j) {
      const long double exact = (static_cast<long double>(x) - row.max) - row.log_sum;
      worst = std::max(worst, error_ulps(kF32, softmax::log_value(x, row, reference), exact));
      // The next ones below, and then ever further.
      x = j < 20 ? std::nextafter(x, -kInf)
                 : x - std::ldexp(std::fabs(x), static_cast<int>(j) / 2 - 30);
    }
  }
  INFO("worst " << worst);
  CHECK(worst <= 1.01);
  CHECK(worst > 0.4);  // or nothing was measured
  RowFactors<float> row = {};
  row.max = 3.0f;
  row.log_sum = 0.5f;
  CHECK(softmax::log_value(-kInf, row, softmax::log_reference(row)) == -kInf);
  row.log_sum = kNan;
  for (const float x : {3.0f, 2.0f, -kInf}) {
    CHECK(std::isnan(softmax::log_value(x, row, softmax::log_reference(row))));
  }
}

TEST_CASE("a NearTerm far below the maximum, or of -inf, is nothing beside the sum", "[numerics]") {
  for (const float max : {-16383.0f, -3.0f, 0.0f, 700.0f, 16383.0f}) {
    const NearTerms terms(max);
    for (const float x : {max - 131.0f, max - 1e6f, kLowest, -kInf}) {
      // Its result is 0: less than half of the least subnormal number.
      CHECK(terms(x) * 0x1p-64 < 0x1p-150);
      CHECK(terms(x) >= 0);
    }
  }
}

TEST_CASE("CoarseTerms and CoarseOutput are within 2^-17, near and far", "[numerics]") {
  double worst_term = 0, worst_output = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const float sizes[] = {1.0f, 63.9f, 65.0f, 3000.0f, 60000.0f, 1e30f};
    const float max = sizes[i % 6] * static_cast<float>(2 * uniform(81, i) - 1);
    const long double reference = reference_of(max, softmax::kCoarseNearLimit);
    const float inverse = static_cast<float>(std::exp(-12 * uniform(82, i)));
    for (std::uint64_t j = 0; j < 40; ++j) {
      const float x[1] = {j == 0 ? max : max - static_cast<float>(80 * uniform(83 + i, j))};
      float term[1];
      CoarseTerms(max).make(x, term);
      float y[1] = {x[0]};
      CoarseOutput(max, inverse).make(y);
      const long double exact = std::exp(x[0] - reference);
      worst_term = std::max<double>(worst_term, std::fabs(term[0] / (exact * 0x1p64L) - 1));
      // From 2^-126 on: below, float32 itself is coarser.
      if (exact * inverse < 0x1p-126L) continue;
      worst_output = std::max<double>(worst_output, std::fabs(y[0] / (exact * inverse) - 1));
    }
  }
  INFO("worst " << worst_term << " and " << worst_output);
  CHECK(worst_term <= 0x1p-17);
  CHECK(worst_output <= 0x1p-17);
  CHECK(worst_term > 0x1p-24);  // or nothing was measured
}

TEST_CASE("coarse outputs reach the least subnormal bfloat16, and -inf is 0", "[numerics]") {
  for (const float max : {0.0f, 50.0f, -50.0f, 1000.0f}) {
    const double reference = static_cast<double>(reference_of(max, softmax::kCoarseNearLimit));
    float y[2] = {max - 92.0f, -kInf};
    CoarseOutput(max, 1.0f).make(y);
    const double exact = std::exp(double(max - 92.0f) - reference);
    CHECK(std::fabs(y[0] - exact) <= 0x1p-150 + exact * 0x1p-17);
    CHECK(y[0] >= 0x1p-134);
    CHECK(y[1] == 0);
    float term[2];
    const float x[2] = {-kInf, kNan};
    CoarseTerms(max).make(x, term);
    CHECK(term[0] == 0);
    CHECK(std::isnan(term[1]));
  }
}

TEST_CASE("parts with near maxima are a power of two apart, exactly", "[numerics]") {
  for (const float part : {-16000.0f, -40.0f, 0.0f, 0.3f, 55.0f, 16000.0f}) {
    for (const float above : {0.0f, 0.1f, 0.7f, 3.0f, 60.0f, 100.0f, 131.0f, 300.0f}) {
      const float row = part + above;
      if (!is_near_max(row)) continue;
      const int exponent =
          static_cast<int>(softmax::reference_exponent(part) - softmax::reference_exponent(row));
      const Split<float> scale = softmax::part_scale(part, row, softmax::kNearLimit);
      CHECK(scale.lo == 0);
      CHECK(scale.hi == (exponent < -190 ? 0.0f : std::ldexp(1.0f, 64 + exponent)));
    }
  }
}

TEST_CASE("a part's scale is as good as an exponential where a maximum is far", "[numerics]") {
  double worst = 0;
  int mixed = 0;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const float row = 16384.0f + static_cast<float>(60 * (2 * uniform(91, i) - 1));
    const float part = row - static_cast<float>(80 * uniform(92, i));
    mixed += is_near_max(part) != is_near_max(row) ? 1 : 0;
    const Split<float> scale = softmax::part_scale(part, row, softmax::kNearLimit);
    const long double exact =
        std::exp(reference_of(part, softmax::kNearLimit) - reference_of(row, softmax::kNearLimit));
    const long double found = (scale.hi + static_cast<long double>(scale.lo)) * 0x1p-64L;
    worst = std::max<double>(worst, std::fabs(found / exact - 1));
  }
  INFO("worst " << worst);
  CHECK(mixed > 500);
  CHECK(worst <= 0x1p-24);
  CHECK(worst > 0);
}

TEST_CASE("terms that are kept become results within 3 ulp however far their part is below",
          "[numerics]") {
  double worst = 0;
  int wrong = 0;
  for (const float top : {0.0f, 5000.0f, 16390.0f, -16384.0f, 1e6f}) {
    for (const float gap : {0.0f, 1.0f, 16.0f, 27.7f, 27.8f, 40.0f, 60.0f, 80.0f, 87.0f, 92.0f,
                            100.0f, 103.0f, 200.0f}) {
      for (std::uint64_t seed = 0; seed < 60; ++seed) {
        const std::vector<float> x = uneven_row(seed, top, gap);
        const std::vector<float> y = held_softmax(x, 4);
        double max = -HUGE_VAL, sum = 0;
        for (const float v : x) max = std::max<double>(max, v);
        for (const float v : x) sum += std::exp(v - max);
        for (std::size_t j = 0; j < x.size(); ++j) {
          const double exact = std::exp(x[j] - max) / sum;
          const double error = error_ulps(kF32, y[j], exact);
          if (exact >= 0x1p-126) {
            worst = std::max(worst, error);
          } else if (!(error <= 0.51 + 3.4 * exact / 0x1p-126)) {
            ++wrong;
          }
        }
      }
    }
  }
  INFO("worst " << worst);
  CHECK(worst <= 3);
  CHECK(worst > 0.5);  // or nothing was measured
  CHECK(wrong == 0);
}

TEST_CASE("kept terms of special rows are what the row's definition says", "[numerics]") {
  // A part of -inf alone, beside finite ones of any size and alone.
  for (const float top : {0.0f, 5.0f, -16383.9f, -70000.0f, 3e38f, -3e38f, kLowest}) {
    const std::vector<float> y = held_softmax<float>({-kInf, -kInf, top, -kInf, -kInf, -kInf}, 3);
    for (std::size_t j = 0; j < y.size(); ++j) CHECK(y[j] == (j == 2 ? 1.0f : 0.0f));
  }
  for (const bool empty_is_zero : {false, true}) {
    for (const float special : {kNan, kInf}) {
      for (const float beside : {-kInf, 1.0f, 20000.0f}) {
        // Alone in its part, and beside others.
        for (const std::size_t parts : {1, 3, 6}) {
          const std::vector<float> x = {beside, beside, -kInf, -kInf, special, beside};
          for (const float v : held_softmax(x, parts, empty_is_zero)) CHECK(std::isnan(v));
          for (const float v : held_log_softmax(x, parts, empty_is_zero)) CHECK(std::isnan(v));
        }
      }
    }
    const std::vector<float> empty(4, -kInf);
    for (const float v : held_softmax(empty, 2, empty_is_zero)) {
      CHECK((empty_is_zero ? v == 0 : std::isnan(v)));
    }
    for (const float v : held_log_softmax(empty, 2, empty_is_zero)) {
      CHECK((empty_is_zero ? v == -kInf : std::isnan(v)));
    }
  }
  for (const double v : held_softmax<double>({-HUGE_VAL, -HUGE_VAL}, 2)) CHECK(std::isnan(v));
  const std::vector<double> y = held_softmax<double>({0, 0, -HUGE_VAL, -HUGE_VAL, -800, -700}, 3);
  CHECK(y[0] == 0.5);
  CHECK(y[2] == 0);
  CHECK(std::fabs(y[5] / (std::exp(-700.0) / 2) - 1) < 0x1p-51);
}

TEST_CASE("a whole row's factor is term_factor's at one unit, bit for bit", "[numerics]") {
  for (std::uint64_t i = 0; i < 1000; ++i) {
    RowPart<float> part = RowPart<float>::of(2.0f);
    part.others.add(kUnit * static_cast<float>(0.71 * std::exp(16 * uniform(95, i))));
    part.others.add(kUnit * static_cast<float>(0x1p-20 * uniform(96, i)));
    const RowFactors<float> row = softmax::finish(part, softmax::kNearLimit, false, false);
    const TermFactor<float> any = softmax::term_factor(row, Split<float>{kUnit, 0.0f});
    const TermFactor<float> whole = softmax::whole_row_factor(row);
    REQUIRE(any.before == 1);
    REQUIRE(whole.before == 1);
    REQUIRE(whole.hi == any.hi);
    REQUIRE(whole.lo == any.lo);
  }
}

TEST_CASE("log-softmax of a confident row in parts keeps its relative accuracy near 0",
          "[numerics]") {
  double worst = 0;
  for (const float top : {0.0f, 300.0f, 20000.0f}) {
    for (const float gap : {0.5f, 8.0f, 20.0f, 40.0f, 80.0f}) {
      for (std::uint64_t seed = 0; seed < 40; ++seed) {
        std::vector<float> x;
        for (std::uint64_t j = 0; j < 48; ++j) {
          x.push_back(top - gap - static_cast<float>(uniform(60 + seed, j)));
        }
        x[seed] = top;
        const std::vector<float> y = held_log_softmax(x, 1 + seed % 6, false);
        long double rest = 0;
        for (const float v : x) rest += v == top ? 0 : std::exp(static_cast<long double>(v) - top);
        worst = std::max(worst, error_ulps(kF32, y[seed], -std::log1p(rest)));
      }
    }
  }
  INFO("worst " << worst);
  CHECK(worst <= 4);
  CHECK(worst > 0.5);  // or nothing was measured
}

TEST_CASE("elements that share the maximum are counted in log-softmax, in one part or several",
          "[numerics]") {
  for (const std::size_t parts : {1, 2, 4}) {
    for (const float v : held_log_softmax<float>({3, 3, 3, 3}, parts, false)) {
      CHECK(error_ulps(kF32, v, -std::log(4.0)) <= 1);
    }
    for (const double v : held_log_softmax<double>({3, 3, 3, 3}, parts, false)) {
      CHECK(error_ulps(kF64, v, -std::log(4.0L)) <= 2);
    }
    // Those of a lower part are elements like any other.
    const std::vector<float> y = held_log_softmax<float>({1, 1, 2, 2}, parts, false);
    CHECK(error_ulps(kF32, y[3], -std::log(2 + 2 * std::exp(-1.0))) <= 2);
  }
}

}  // namespace softmax_test
