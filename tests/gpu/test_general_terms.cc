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
#include "support/quads.h"

namespace softmax_test {
namespace {

constexpr double kScale = 0.5;  // a general call's, and exact

long double scaled(float x) { return static_cast<long double>(kScale) * x; }

// A row of `count` elements that are `equal`, and one that is `lone`.
struct Pair {
  float equal;
  float lone;
};

long double expected(const Pair &pair, int count) {
  const long double term = std::exp(scaled(pair.lone) - scaled(pair.equal));
  return term / (count + term);
}

constexpr int kLone = 0;  // its column

// How a matrix of rows is handed over.
struct Way {
  int axis = 1;  // 0: rows lie across memory
  softmax_algo_t algo = SOFTMAX_ALGO_AUTO;
  bool is_added_to = false;  // a mask of zeros
  bool has_stats = false;    // as by-products
};

// What becomes of the rows, row by row; empty where the algorithm does not take them.
std::vector<float> results(const std::vector<float> &x, std::int64_t rows, std::int64_t cols,
                           int32_t op, const Way &way = {}) {
  const auto place = [&](std::int64_t i) {
    return static_cast<std::size_t>(way.axis == 1 ? i : i % cols * rows + i / cols);
  };
  std::vector<float> placed(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) placed[place(static_cast<std::int64_t>(i))] = x[i];
  const Array<float> in(placed), out(x.size(), -1.0f), mask(way.is_added_to ? x.size() : 1, 0.0f);
  const Array<float> sums(static_cast<std::size_t>(rows), 0.0f);
  softmax_desc_t desc = way.axis == 1 ? matrix(rows, cols, op) : matrix(cols, rows, op);
  desc.axis = way.axis;
  desc.scale = kScale;
  softmax_args_t args = no_args();
  args.x = in.data();
  args.y = out.data();
  if (way.has_stats) args.row_sum = sums.data();
  if (way.is_added_to) {
    desc.mask_kind = SOFTMAX_MASK_ADDITIVE;
    args.mask = mask.data();
  }
  const softmax_status_t status = execute(desc, args, way.algo);
  if (way.algo != SOFTMAX_ALGO_AUTO && status == SOFTMAX_STATUS_NOT_SUPPORTED_ALGO) return {};
  REQUIRE(status == SOFTMAX_SUCCESS);
  const std::vector<float> y = out.get();
  std::vector<float> by_row(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) by_row[i] = y[place(static_cast<std::int64_t>(i))];
  return by_row;
}

// What becomes of a column. axis: 1 for dense rows, 0 for rows across memory.
std::vector<float> results(const std::vector<Pair> &pairs, int count, int axis, int32_t op,
                           int col) {
  const std::int64_t cols = count + 1;
  std::vector<float> x;
  for (const Pair &pair : pairs) {
    for (std::int64_t c = 0; c < cols; ++c) x.push_back(c == kLone ? pair.lone : pair.equal);
  }
  const std::vector<float> y =
      results(x, static_cast<std::int64_t>(pairs.size()), cols, op, Way{axis});
  std::vector<float> of_column;
  for (std::size_t at = static_cast<std::size_t>(col); at < y.size(); at += cols) {
    of_column.push_back(y[at]);
  }
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
      const long double reference =
          -std::log1p(std::exp(scaled(pairs[i].lone) - scaled(pairs[i].equal)));
      worst = std::max(worst, std::fabs(error_ulps(format_of(SOFTMAX_DTYPE_F32), y[i], reference)));
    }
    CAPTURE(axis, worst);
    CHECK(worst <= promised_bound(SOFTMAX_DTYPE_F32).ulps);
    CHECK(worst > 0.5);
  }
}

TEST_CASE("general: terms whose sums all round to one side stay within float32's bound",
          "[general]") {
  const Way ways[] = {{1},
                      {0},
                      {1, SOFTMAX_ALGO_BLOCK},
                      {1, SOFTMAX_ALGO_CLUSTER},
                      {1, SOFTMAX_ALGO_AUTO, true},
                      {0, SOFTMAX_ALGO_AUTO, true},
                      {1, SOFTMAX_ALGO_AUTO, false, true},
                      {0, SOFTMAX_ALGO_AUTO, false, true}};
  for (const Way &way : ways) {
    double worst[2] = {};
    for (const std::int64_t cols : {21, 133, 749, 2053, 8196, 40965}) {
      // Apart: of dense rows a pack's, of rows across memory a thread's.
      for (const std::int64_t stride : {1, 2, 4, 8, 16, 32, 64, 128}) {
        if (stride * 4 > cols || (way.axis == 1 && stride > 2)) continue;
        for (const bool is_log : {false, true}) {
          const std::vector<float> x =
              make_quad_rows(cols, stride, static_cast<float>(1.0 / kScale), is_log);
          const std::vector<float> y =
              results(x, kQuadRows, cols, is_log ? SOFTMAX_OP_LOGSOFTMAX : SOFTMAX_OP_SOFTMAX, way);
          if (y.empty()) continue;
          // The last column, which shows most, and the first.
          for (std::int64_t row = 0; row < kQuadRows; ++row) {
            const float *const of_row = x.data() + row * cols;
            long double sum = 0.0L;
            for (std::int64_t c = 0; c < cols; ++c) sum += std::exp(scaled(of_row[c]));
            for (const std::int64_t c : {cols - 1, std::int64_t{0}}) {
              const long double v = scaled(of_row[c]);
              const long double reference = is_log ? v - std::log(sum) : std::exp(v) / sum;
              const double error =
                  std::fabs(error_ulps(format_of(SOFTMAX_DTYPE_F32),
                                       y[static_cast<std::size_t>(row * cols + c)], reference));
              worst[is_log] = std::max(worst[is_log], error);
            }
          }
        }
      }
    }
    CAPTURE(way.axis, way.algo, way.is_added_to, way.has_stats, worst[0], worst[1]);
    CHECK(worst[0] <= promised_bound(SOFTMAX_DTYPE_F32).ulps);
    CHECK(worst[1] <= promised_bound(SOFTMAX_DTYPE_F32).ulps);
    CHECK(worst[0] > 0.4);  // else nothing was looked at: a rounding alone comes to nearly 0.5
    CHECK(worst[1] > 0.4);
  }
}

}  // namespace softmax_test
