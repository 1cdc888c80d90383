// Edge rows: NaN, infinities and empty rows, for every algorithm, type and place in the row.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/over.h"

namespace softmax_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Places in a row of n columns at which a special value is tried.
std::vector<std::int64_t> places(std::int64_t n) {
  std::vector<std::int64_t> all;
  for (const std::int64_t place : {std::int64_t{0}, std::int64_t{1}, std::int64_t{31},
                                   std::int64_t{32}, n / 2, n - 2, n - 1}) {
    if (place >= 0 && place < n && (all.empty() || all.back() < place)) all.push_back(place);
  }
  return all;
}

constexpr std::int64_t kColumns[] = {1, 2, 3, 8, 31, 32, 33, 100, 257, 1024, 1025, 4096, 4099};

// Rows with `special` at each place in turn, and an ordinary row between any two of them.
Elements rows_with(softmax_dtype_t dtype, std::int64_t cols, double special, std::int64_t *rows) {
  const std::vector<std::int64_t> at = places(cols);
  *rows = 2 * static_cast<std::int64_t>(at.size()) + 1;
  Elements x = make_input(dtype, *rows, cols, Pattern::kNormal3, 13);
  for (std::size_t k = 0; k < at.size(); ++k) {
    x.set((2 * static_cast<std::int64_t>(k) + 1) * cols + at[k], special);
  }
  return x;
}

void check_special(double special) {
  Runner runner(device());
  for (const TypePair &types : kTypePairs) {
    for (const std::int64_t cols : kColumns) {
      std::int64_t rows;
      const Elements x = rows_with(types.x, cols, special, &rows);
      const Reference reference = make_reference(x, rows, cols);
      over_algorithms(device(), types, rows, cols, [&](const Problem &problem) {
        CHECK(runner.check(problem, x, reference) == "");
      });
    }
  }
}

}  // namespace

TEST_CASE("a NaN anywhere makes its whole row NaN and no other", "[edge]") { check_special(kNan); }

TEST_CASE("a +inf anywhere makes its whole row NaN and no other", "[edge]") {
  check_special(HUGE_VAL);
}

TEST_CASE("a -inf is exactly 0 and changes nothing else", "[edge]") { check_special(-HUGE_VAL); }

TEST_CASE("a row of -inf is NaN, or what empty_row says", "[edge]") {
  Runner runner(device());
  for (const TypePair &types : kTypePairs) {
    for (const std::int64_t cols : kColumns) {
      constexpr std::int64_t kRows = 5;
      Elements x = make_input(types.x, kRows, cols, Pattern::kNormal3, 17);
      for (const std::int64_t row : {1, 2, 4}) {
        for (std::int64_t j = 0; j < cols; ++j) x.set(row * cols + j, -HUGE_VAL);
      }
      for (const bool empty_is_zero : {false, true}) {
        const Reference reference = make_reference(x, kRows, cols, empty_is_zero);
        over_algorithms(device(), types, kRows, cols, [&](Problem problem) {
          problem.empty_is_zero = empty_is_zero;
          CHECK(runner.check(problem, x, reference) == "");
        });
      }
    }
  }
}

TEST_CASE("empty_row changes neither NaN rows nor rows with +inf", "[edge]") {
  Runner runner(device());
  const TypePair &types = kTypePairs[0];
  for (const std::int64_t cols : {1, 2, 33, 1025}) {
    constexpr std::int64_t kRows = 4;
    Elements x(types.x, kRows * cols);
    for (std::int64_t j = 0; j < kRows * cols; ++j) x.set(j, -HUGE_VAL);
    x.set(cols - 1, kNan);
    x.set(2 * cols - 1, HUGE_VAL);
    x.set(2 * cols, HUGE_VAL);
    if (cols > 1) x.set(2 * cols + 1, kNan);
    const Reference reference = make_reference(x, kRows, cols, true);
    over_algorithms(device(), types, kRows, cols, [&](Problem problem) {
      problem.empty_is_zero = true;
      CHECK(runner.check(problem, x, reference) == "");
    });
  }
}

TEST_CASE("infinities and NaN in one row give NaN", "[edge]") {
  Runner runner(device());
  for (const TypePair &types : kTypePairs) {
    constexpr std::int64_t kCols = 130;
    const double specials[] = {kNan, HUGE_VAL, -HUGE_VAL};
    constexpr std::int64_t kRows = 9;
    Elements x = make_input(types.x, kRows, kCols, Pattern::kNormal1, 19);
    for (std::int64_t i = 0; i < kRows; ++i) {
      x.set(i * kCols + (i * 17) % kCols, specials[i / 3]);
      x.set(i * kCols + 129 - (i * 7) % 40, specials[i % 3]);
    }
    const Reference reference = make_reference(x, kRows, kCols);
    over_algorithms(device(), types, kRows, kCols, [&](const Problem &problem) {
      CHECK(runner.check(problem, x, reference) == "");
    });
  }
}

TEST_CASE("subnormal inputs and outputs are kept", "[edge]") {
  Runner runner(device());
  for (const TypePair &types : kTypePairs) {
    const Format &format = format_of(types.x);
    const Format &out = format_of(types.y);
    constexpr std::int64_t kCols = 200;
    Elements x(types.x, 2 * kCols);
    for (std::int64_t j = 0; j < kCols; ++j) {
      // Inputs of a few least subnormals; and outputs that go through the subnormal range.
      x.set(j, std::ldexp(static_cast<double>(j), format.min_exponent - format.precision + 1));
      x.set(kCols + j, j == 0 ? 0 : (out.min_exponent - 0.11 * static_cast<double>(j)) * 0.6931);
    }
    const Reference reference = make_reference(x, 2, kCols);
    over_algorithms(device(), types, 2, kCols, [&](const Problem &problem) {
      if (!problem.is_log) CHECK(runner.check(problem, x, reference) == "");
    });
  }
}

TEST_CASE("nothing is done where M or N is 0", "[edge]") {
  for (const TypePair &types : kTypePairs) {
    for (const std::int64_t extent : {std::int64_t{0}, std::int64_t{7}, INT64_MAX}) {
      // Whatever they hold: there is nothing to hold.
      for (const softmax_algo_t algo : device().algorithms()) {
        for (const bool is_log : {false, true}) {
          Problem problem;
          problem.algo = algo;
          problem.types = types;
          problem.is_log = is_log;
          for (const Entry entry : {Entry::kFlat, Entry::kExecute}) {
            problem.entry = entry;
            problem.rows = 0;
            problem.cols = extent;
            INFO(to_text(problem));
            CHECK(call(device().handle(), problem, nullptr, nullptr, device().stream()) ==
                  SOFTMAX_SUCCESS);
            problem.rows = extent;
            problem.cols = 0;
            CHECK(call(device().handle(), problem, nullptr, nullptr, device().stream()) ==
                  SOFTMAX_SUCCESS);
          }
        }
      }
    }
  }
}

}  // namespace softmax_test
