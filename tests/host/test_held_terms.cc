// Terms that are kept in place of a row's values: finish_one and term_factor of core/numerics.h.
#include <algorithm>
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
using softmax::Pair;
using softmax::RowFactors;
using softmax::ShiftedExp;
using softmax::Split;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
const Format &kF32 = format_of(SOFTMAX_DTYPE_F32);
constexpr float kUnit = 0x1p64f;  // what 1 is in a sum

// What a kernel with a row in registers does: `parts` runs of the row, each with its terms against
// its own maximum, are merged, and the terms become results in place.
template <typename T>
std::vector<T> held_softmax(const std::vector<T> &x, std::size_t parts) {
  const std::size_t run = (x.size() + parts - 1) / parts;
  std::vector<T> terms, references;
  T max = -std::numeric_limits<T>::infinity();
  std::vector<CompensatedSum<T>> sums;
  for (std::size_t first = 0; first < x.size(); first += run) {
    const std::size_t last = std::min(first + run, x.size());
    T own = -std::numeric_limits<T>::infinity();
    for (std::size_t i = first; i < last; ++i) own = std::fmax(own, x[i]);
    max = std::fmax(max, own);
    references.push_back(softmax::finite_reference(own));
    const ShiftedExp<T> exp(references.back());
    softmax::TermSum<T> sum;
    for (std::size_t i = first; i < last; ++i) {
      terms.push_back(exp.times(x[i], softmax::sum_unit<T>()));
      T term[1] = {terms.back()};
      sum.add_terms(term, term, exp, false);
    }
    sums.push_back(sum.combined());
  }
  CompensatedSum<T> total;
  std::vector<Split<T>> scales;
  for (std::size_t part = 0; part < sums.size(); ++part) {
    const Split<T> scale = softmax::exp_in_units(
        softmax::raw_difference(references[part], softmax::finite_reference(max)));
    scales.push_back(scale);
    sums[part].times(scale);
    total.add(sums[part]);
  }
  const RowFactors<T> row = softmax::finish_one(max, total, false, false);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const softmax::TermFactor<T> factor = softmax::term_factor(row, scales[i / run]);
    if (factor.has_before()) terms[i] *= factor.before;
    terms[i] = factor.times(terms[i]);
  }
  return terms;
}

}  // namespace

TEST_CASE("terms that are kept become results within 3 ulp however far their part is below",
          "[numerics]") {
  double worst = 0;
  int wrong = 0;
  for (const float gap : {0.0f, 1.0f, 16.0f, 27.7f, 27.8f, 40.0f, 60.0f, 80.0f, 87.0f, 92.0f,
                          100.0f, 103.0f, 200.0f}) {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      std::vector<float> x;
      for (std::uint64_t j = 0; j < 64; ++j) {
        const float below = j / 16 == seed % 4 ? 0.0f : gap;
        x.push_back(static_cast<float>(3 * normal(40 + seed, j)) - below);
      }
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
  INFO("worst " << worst);
  CHECK(worst <= 3);
  CHECK(worst > 0.5);  // or nothing was measured
  CHECK(wrong == 0);
}

TEST_CASE("kept terms of special rows are what the row's definition says", "[numerics]") {
  // A part of -inf alone, beside finite ones of any size and alone.
  for (const float top : {0.0f, 5.0f, -70000.0f, 3e38f, -3e38f, -3.402823466e+38f}) {
    const std::vector<float> y = held_softmax<float>({-kInf, -kInf, top, -kInf, -kInf, -kInf}, 3);
    for (std::size_t j = 0; j < y.size(); ++j) CHECK(y[j] == (j == 2 ? 1.0f : 0.0f));
  }
  for (const float special : {kNan, kInf}) {
    for (const float v : held_softmax<float>({1, 2, -kInf, -kInf, special, 3}, 3)) {
      CHECK(std::isnan(v));
    }
  }
  for (const float v : held_softmax<float>({-kInf, -kInf, -kInf, -kInf}, 2)) CHECK(std::isnan(v));
  for (const double v : held_softmax<double>({-HUGE_VAL, -HUGE_VAL}, 2)) CHECK(std::isnan(v));
  const std::vector<double> y = held_softmax<double>({0, 0, -HUGE_VAL, -HUGE_VAL, -800, -700}, 3);
  CHECK(y[0] == 0.5);
  CHECK(y[2] == 0);
  CHECK(std::fabs(y[5] / (std::exp(-700.0) / 2) - 1) < 0x1p-51);
}

TEST_CASE("finish_one gives what finish gives, to the last bits", "[numerics]") {
  for (const bool empty_is_zero : {false, true}) {
    for (const float rest : {0.0f, 1e-30f, 0.5f, 3.0f, 1e6f}) {
      const Pair<float> pair = {2.5f, rest * kUnit};
      const CompensatedSum<float> sum = pair.sum_against(pair.max);
      const RowFactors<float> both = softmax::finish(pair, empty_is_zero);
      const RowFactors<float> one = softmax::finish_one(pair.max, sum, empty_is_zero, false);
      CHECK(std::fabs(one.inverse_sum * (1.0 + one.correction) * (1.0 + rest) - 1) < 0x1p-40);
      CHECK(softmax::finish_one(pair.max, sum, empty_is_zero, true).log_sum == both.log_sum);
    }
    const CompensatedSum<float> nothing;
    for (const bool is_log : {false, true}) {
      const RowFactors<float> row = softmax::finish_one(-kInf, nothing, empty_is_zero, is_log);
      const float y = softmax::output_value(-kInf, row, is_log);
      CHECK((empty_is_zero ? y == (is_log ? -kInf : 0.0f) : std::isnan(y)));
    }
  }
}

}  // namespace softmax_test
