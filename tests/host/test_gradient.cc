// The arithmetic of the gradients that CUDA takes from registers (core/gradient.h,
// core/wide_terms.h), as the kernels put it together, against long double.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/gradient.h"
#include "support/catch.h"
#include "support/compare.h"
#include "support/element.h"

namespace softmax_test {
namespace {

using softmax::GradientSource;
using softmax::NarrowDifference;
using softmax::NarrowGradient;
using softmax::NarrowLogGradient;
using softmax::NarrowLogGradientOfLogs;
using softmax::WideGradient;
using softmax::WideLogGradient;
using softmax::WideTerms;
using Wide = long double;

float rounded(softmax_dtype_t dtype, double value) {
  double cell = 0;
  encode(dtype, value, &cell, 0);
  return static_cast<float>(decode(dtype, &cell, 0));
}

struct Row {
  std::vector<float> source, dy, dx;  // source: y or x
  GradientSource from;
  double s = 1;
  bool from_x = false;
  bool is_log = false;

  std::size_t size() const { return source.size(); }
  Wide p(std::size_t i) const {
    if (!from_x) return is_log ? std::exp(Wide{source[i]}) : Wide{source[i]};
    return std::exp(Wide{source[i]} * from.scale - from.max) / from.sum;
  }
};

enum Dy { kRandom, kOneHot, kNearlyP };

Row make_row(softmax_dtype_t dtype, bool from_x, bool is_log, Dy kind, std::uint64_t seed) {
  std::mt19937_64 bits(seed);
  std::normal_distribution<double> normal;
  const std::size_t cols = seed % 9 == 0 ? 1500 : 1 + bits() % 200;
  const double spread = seed % 3 == 0 ? 15 : seed % 3 == 1 ? 0.1 : 2;
  Row row;
  row.from_x = from_x;
  row.is_log = is_log;
  row.s = seed % 2 == 0 ? 1.0 : seed % 4 == 1 ? -0.6 : 1.3;
  std::vector<Wide> v;
  for (std::size_t i = 0; i < cols; ++i) {
    row.source.push_back(rounded(dtype, normal(bits) * spread));
    v.push_back(Wide{row.source[i]} * row.s);
  }
  const std::size_t top =
      static_cast<std::size_t>(std::max_element(v.begin(), v.end()) - v.begin());
  const Wide max = v[top];
  Wide sum = 0;
  for (const Wide one : v) sum += std::exp(one - max);
  if (from_x) {
    const auto stored = static_cast<float>(max);
    row.from = {row.s, stored, static_cast<float>(sum * std::exp(max - stored))};
  } else {
    for (std::size_t i = 0; i < cols; ++i) {
      const Wide log_p = v[i] - max - std::log(sum);
      row.source[i] = rounded(dtype, static_cast<double>(is_log ? log_p : std::exp(log_p)));
    }
  }
  for (std::size_t i = 0; i < cols; ++i) {
    const double dy = kind == kRandom   ? normal(bits)
                      : kind == kOneHot ? (i == top ? -1.0 : 0.0)
                                        : static_cast<double>(row.p(i)) * -1.5;
    row.dy.push_back(rounded(dtype, dy));
  }
  return row;
}

// As backward_rows.cuh does it.
void take_gradient(softmax_dtype_t dtype, Row *row) {
  const bool is_narrow = dtype != SOFTMAX_DTYPE_F32;
  const WideTerms terms(row->from.scale, row->from.max);
  double sum = 0;
  for (std::size_t i = 0; i < row->size(); ++i) {
    const double p = row->is_log ? 1.0 : row->from_x ? terms(row->source[i]) : row->source[i];
    sum = std::fma(p, double{row->dy[i]}, sum);
  }
  const double factor = terms.rest() / row->from.sum;
  const WideGradient from_x(row->s * factor, sum * factor);
  const WideGradient wide(row->s, sum);
  const NarrowGradient narrow(row->s, sum);
  const WideLogGradient wide_log =
      row->from_x ? WideLogGradient(row->from, row->s, sum) : WideLogGradient(row->s, sum);
  const float least =
      dtype == SOFTMAX_DTYPE_F16 ? NarrowDifference::kLeastF16 : NarrowDifference::kLeastBf16;
  const NarrowLogGradient of_x(row->from, row->s, wide_log.dot(), least);
  const NarrowLogGradientOfLogs of_logs(row->s, sum, least);
  REQUIRE(of_x.is_near());
  for (std::size_t i = 0; i < row->size(); ++i) {
    const float source = row->source[i];
    const float dy = row->dy[i];
    float dx;
    if (row->is_log) {
      bool is_hard = !row->from_x && !(source <= NarrowLogGradientOfLogs::kMost);
      dx = row->from_x ? of_x(source, dy, &is_hard) : of_logs(source, dy, &is_hard);
      if (!is_narrow || is_hard) dx = wide_log(source, dy);
    } else if (row->from_x) {
      dx = from_x(terms(source), dy);
    } else {
      dx = is_narrow ? narrow(source, dy) : wide(double{source}, dy);
    }
    row->dx.push_back(rounded(dtype, double{dx}));
  }
}

// By how many ulp an element is off, less what may be lost before it is rounded.
double worst_error(softmax_dtype_t dtype, const Row &row) {
  Wide dot = 0, magnitude = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const Wide term = (row.is_log ? 1 : row.p(i)) * Wide{row.dy[i]};
    dot += term;
    magnitude += std::fabs(term);
  }
  const Format &format = format_of(dtype);
  double worst = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const Wide p = row.p(i), dy = row.dy[i];
    const Wide dx = row.is_log ? row.s * (dy - p * dot) : row.s * p * (dy - dot);
    const Wide terms = row.is_log ? std::fabs(dy) + p * magnitude : p * (std::fabs(dy) + magnitude);
    const Wide slack = std::ldexp(std::fabs(row.s) * terms, -46);
    const int exponent = dx == 0 ? format.min_exponent : std::ilogb(dx);
    const Wide ulp =
        std::ldexp(1.0L, std::max(exponent, format.min_exponent) - format.precision + 1);
    worst = std::max(worst, static_cast<double>((std::fabs(row.dx[i] - dx) - slack) / ulp));
  }
  return worst;
}

}  // namespace

TEST_CASE("gradients are rounded once, whatever is left of their difference",
          "[numerics][backward]") {
  for (const softmax_dtype_t dtype : {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_BF16}) {
    for (const bool from_x : {false, true}) {
      for (const bool is_log : {false, true}) {
        for (const Dy kind : {kRandom, kOneHot, kNearlyP}) {
          for (std::uint64_t seed = 0; seed < 60; ++seed) {
            Row row = make_row(dtype, from_x, is_log, kind, seed);
            take_gradient(dtype, &row);
            INFO("type " << dtype << " from_x " << from_x << " log " << is_log << " dy " << kind
                         << " seed " << seed);
            CHECK(worst_error(dtype, row) <= 0.51);
          }
        }
      }
    }
  }
}

TEST_CASE("a narrow gradient tells the elements that are not for it", "[numerics][backward]") {
  const float infinity = std::numeric_limits<float>::infinity();
  const NarrowLogGradient of_x({}, 1.0, 1.0, NarrowDifference::kLeastBf16);
  const NarrowLogGradientOfLogs of_logs(1.0, 1.0, NarrowDifference::kLeastBf16);
  const auto is_hard = [&](float y, float dy) {
    bool result = false, of_logs_result = false;
    of_x(y, dy, &result);
    of_logs(y, dy, &of_logs_result);
    if (y <= NarrowLogGradientOfLogs::kMost) CHECK(of_logs_result == result);
    return result;
  };
  CHECK(is_hard(0.0f, 1.0f));
  CHECK(is_hard(-0x1p-8f, 1.0f));
  CHECK(is_hard(std::numeric_limits<float>::quiet_NaN(), 0.0f));
  CHECK(is_hard(infinity, 0.0f));
  CHECK(!is_hard(-1.0f, 1.0f));
  CHECK(!is_hard(-infinity, 0.0f));
  CHECK(!is_hard(-200.0f, 1.0f));
}

TEST_CASE("WideTerms are within 2^-48 of exp(x * s - max), and pass a NaN on", "[numerics]") {
  std::mt19937_64 bits(5);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (const double s : {1.0, -0.6, 1e-6, 300.0}) {
    for (const double max : {0.0, 3.5, -70.25, 1000.0}) {
      const WideTerms terms(s, max);
      for (int i = 0; i < 2000; ++i) {
        const auto x = static_cast<float>((max - 60 + 60 * uniform(bits)) / s);
        const Wide expected = std::exp(Wide{x} * s - Wide(max));
        // What rounding log2(e) s to float64 makes of a large x is no less than that.
        const Wide allowed = std::ldexp(1 + std::fabs(Wide{x} * s) / 16, -48) * expected;
        CHECK(std::fabs(Wide(terms(x) * terms.rest()) - expected) <= allowed);
      }
      const float infinity = std::numeric_limits<float>::infinity();
      CHECK(terms(s > 0 ? -infinity : infinity) < 1e-300);
      CHECK(terms(s > 0 ? infinity : -infinity) > 1e300);
      const double nan = terms(std::numeric_limits<float>::quiet_NaN());
      CHECK(nan != nan);
    }
  }
}

}  // namespace softmax_test
