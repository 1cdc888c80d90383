// How far terms may be off in softmax with float32 results, looked for where it shows most: one
// element beside many that are equal, whose own terms err the other way. The result is off by both
// errors, and just below a power of two an ulp is 2^-24 of it.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "gpu/general_args.h"
#include "support/catch.h"
#include "support/compare.h"

namespace softmax_test {
namespace {

constexpr double kScale = 0.5;  // a general call's, and exact

// A row of `count` elements that are `equal`, and one that is `lone`.
struct Pair {
  float equal;
  float lone;
};

long double expected(const Pair &pair, int count) {
  const long double term =
      std::exp(static_cast<long double>(kScale) *
               (static_cast<long double>(pair.lone) - static_cast<long double>(pair.equal)));
  return term / (count + term);
}

constexpr int kLone = 0;  // its column

// What becomes of a column. axis: 1 for dense rows, 0 for rows across memory.
std::vector<float> results(const std::vector<Pair> &pairs, int count, int axis, int32_t op,
                           int col) {
  const auto rows = static_cast<std::int64_t>(pairs.size());
  const std::int64_t cols = count + 1;
  std::vector<float> x(static_cast<std::size_t>(rows * cols));
  const auto index = [&](std::int64_t r, std::int64_t c) {
    return static_cast<std::size_t>(axis == 1 ? r * cols + c : c * rows + r);
  };
  for (std::int64_t r = 0; r < rows; ++r) {
    const Pair &pair = pairs[static_cast<std::size_t>(r)];
    for (std::int64_t c = 0; c < cols; ++c) x[index(r, c)] = c == kLone ? pair.lone : pair.equal;
  }
  const Array<float> in(x), out(x.size(), -1.0f);
  softmax_desc_t desc = axis == 1 ? matrix(rows, cols, op) : matrix(cols, rows, op);
  desc.axis = axis;
  desc.scale = kScale;
  softmax_args_t args = no_args();
  args.x = in.data();
  args.y = out.data();
  REQUIRE(execute(desc, args, SOFTMAX_ALGO_AUTO) == SOFTMAX_SUCCESS);
  const std::vector<float> y = out.get();
  std::vector<float> of_column;
  for (std::int64_t r = 0; r < rows; ++r) of_column.push_back(y[index(r, col)]);
  return of_column;
}
std::vector<float> lone_results(const std::vector<Pair> &pairs, int count, int axis) {
  return results(pairs, count, axis, SOFTMAX_OP_SOFTMAX, kLone);
}

// Those whose results are most above what they should be, and those that are most below.
std::vector<Pair> extremes(const std::vector<Pair> &pairs, int axis) {
  constexpr int kCount = 17;
  constexpr std::size_t kEach = 48;
  const std::vector<float> y = lone_results(pairs, kCount, axis);
  std::vector<std::pair<double, std::size_t>> errors;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const long double reference = expected(pairs[i], kCount);
    errors.push_back({static_cast<double>((y[i] - reference) / reference), i});
  }
  std::sort(errors.begin(), errors.end());
  std::vector<Pair> some;
  for (std::size_t i = 0; i < kEach; ++i) {
    some.push_back(pairs[errors[i].second]);
    some.push_back(pairs[errors[errors.size() - 1 - i].second]);
  }
  return some;
}

}  // namespace

TEST_CASE("general: terms that err opposite ways stay within float32's bound", "[general]") {
  constexpr int kCandidates = 1 << 16;
  for (const int axis : {1, 0}) {
    // Beside zeros, whose terms are exact, and zeros beside others: each one's own error.
    std::vector<Pair> lone, equal;
    for (int i = 0; i < kCandidates; ++i) {
      const float value = 24.0f + static_cast<float>(i) * (16.0f / kCandidates);
      lone.push_back({0.0f, -value});
      equal.push_back({value, 0.0f});
    }
    std::vector<Pair> both;
    const std::vector<Pair> equals = extremes(equal, axis);
    for (const Pair &a : extremes(lone, axis)) {
      for (const Pair &b : equals) both.push_back({b.equal, a.lone});
    }
    double worst = 0.0;
    for (const int count : {17, 19, 22, 26, 30, 41, 50, 60, 130}) {
      const std::vector<float> y = lone_results(both, count, axis);
      for (std::size_t i = 0; i < both.size(); ++i) {
        worst = std::max(worst, std::fabs(error_ulps(format_of(SOFTMAX_DTYPE_F32), y[i],
                                                     expected(both[i], count))));
      }
    }
    CAPTURE(axis, worst);
    CHECK(worst <= promised_bound(SOFTMAX_DTYPE_F32).ulps);
    CHECK(worst > 0.5);  // else nothing was looked at
  }
}

TEST_CASE("general: log-softmax of a row of two stays within float32's bound", "[general]") {
  // -log(1 + t): where t is just above a power of two, an ulp of the result is half of one of t.
  std::vector<Pair> pairs;
  for (int i = 0; i < 1 << 19; ++i) {
    pairs.push_back({i % 2 == 0 ? 0.0f : 7.3f,
                     (i % 2 == 0 ? 0.0f : 7.3f) - 0.5f - static_cast<float>(i) * 0x1p-14f});
  }
  for (const int axis : {1, 0}) {
    const std::vector<float> y = results(pairs, 1, axis, SOFTMAX_OP_LOGSOFTMAX, 1 - kLone);
    double worst = 0.0;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const long double reference = -std::log1p(
          std::exp(static_cast<long double>(kScale) * (static_cast<long double>(pairs[i].lone) -
                                                       static_cast<long double>(pairs[i].equal))));
      worst = std::max(worst, std::fabs(error_ulps(format_of(SOFTMAX_DTYPE_F32), y[i], reference)));
    }
    CAPTURE(axis, worst);
    CHECK(worst <= promised_bound(SOFTMAX_DTYPE_F32).ulps);
    CHECK(worst > 0.5);
  }
}

}  // namespace softmax_test
