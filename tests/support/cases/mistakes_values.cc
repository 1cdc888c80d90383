// Where published softmax kernels go wrong with values: the maximum's type, infinities in the
// online merge, precision of what is stored in between, and sums that stall. One test a mistake.
#include <cmath>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/over.h"

namespace softmax_test {
namespace {

// Checks every algorithm, both operations, in and out of place.
void check_everywhere(Runner *runner, const TypePair &types, std::int64_t rows, std::int64_t cols,
                      const Elements &x) {
  const Reference reference = make_reference(x, rows, cols);
  over_algorithms(runner->device(), types, rows, cols, [&](const Problem &problem) {
    CHECK(runner->check(problem, x, reference) == "");
  });
}

}  // namespace

TEST_CASE("a maximum that no int holds is subtracted exactly", "[mistakes]") {
  // The maximum passed through an int: fractions are cut, and beyond 2^31 it is another number.
  Runner runner(device());
  const struct {
    int pair;
    std::vector<double> maxima;
  } groups[] = {
      {0, {0.999, -0.75, 88.9, 3e9, -3e9, 1e30, -1e30, 3.4e38}},
      {1, {0.999, -0.75, 88.9, 60000, -60000}},
      {2, {0.999, -0.75, 88.9, 3e9, -3e9, 1e30, -1e30}},
      {3, {0.999, -0.75, 88.9, 3e9, -3e9, 5e18, 1e300, -1e300}},
  };
  for (const auto &group : groups) {
    const TypePair &types = kTypePairs[group.pair];
    constexpr std::int64_t kCols = 75;
    const auto rows = static_cast<std::int64_t>(group.maxima.size());
    Elements x(types.x, rows * kCols);
    for (std::int64_t i = 0; i < rows; ++i) {
      const double max = group.maxima[static_cast<std::size_t>(i)];
      // Steps that the type can tell apart at this magnitude, and no more than 100 in all.
      const double unit = std::ldexp(std::fabs(max), -format_of(types.x).precision + 2);
      const double step = unit < 0.25 ? 0.25 : unit;
      for (std::int64_t j = 0; j < kCols; ++j) {
        x.set(i * kCols + j, max - step * static_cast<double>((j * 31) % kCols));
      }
    }
    check_everywhere(&runner, types, rows, kCols, x);
  }
}

TEST_CASE("one finite element among -inf gives 1 and zeros wherever it is", "[mistakes]") {
  // (-inf) - (-inf) in the merge of parts, in idle threads, and in whole warps without a value.
  Runner runner(device());
  for (const TypePair &types : kTypePairs) {
    for (const std::int64_t n : {1, 2, 3, 31, 32, 33, 64, 127, 129, 255, 257, 300, 1030}) {
      if (n > 300 && types.x != SOFTMAX_DTYPE_F32) continue;
      Elements x(types.x, n * n);
      for (std::int64_t k = 0; k < n * n; ++k) x.set(k, k % (n + 1) == 0 ? -2.5 : -HUGE_VAL);
      over_algorithms(device(), types, n, n, [&](const Problem &problem) {
        std::string failure;
        const Elements y = runner.run(problem, x, &failure);
        CHECK(failure == "");
        std::int64_t wrong = 0;
        for (std::int64_t k = 0; k < n * n; ++k) {
          const double expected =
              problem.is_log ? (k % (n + 1) == 0 ? 0 : -HUGE_VAL) : (k % (n + 1) == 0 ? 1 : 0);
          if (!(y[k] == expected)) ++wrong;
        }
        INFO(to_text(problem));
        CHECK(wrong == 0);
      });
    }
  }
}

TEST_CASE("slices of -inf of every width poison nothing", "[mistakes]") {
  // Aligned runs of w elements: row r has run r alone finite in one matrix, alone -inf in another.
  Runner runner(device());
  for (const int pair : {0, 2, 3}) {
    const TypePair &types = kTypePairs[pair];
    for (const std::int64_t cols : {256, 1024, 4099}) {
      for (std::int64_t width = 1; width <= cols; width *= 2) {
        const std::int64_t runs = (cols + width - 1) / width;
        const std::int64_t rows = runs < 40 ? runs : 40;  // the first, the last, and between
        for (const bool alone_is_finite : {true, false}) {
          Elements x = make_input(types.x, rows, cols, Pattern::kNormal3, 5);
          for (std::int64_t i = 0; i < rows; ++i) {
            const std::int64_t run = rows == 1 ? 0 : i * (runs - 1) / (rows - 1);
            for (std::int64_t j = 0; j < cols; ++j) {
              if ((j / width == run) != alone_is_finite) x.set(i * cols + j, -HUGE_VAL);
            }
          }
          const Reference reference = make_reference(x, rows, cols);
          over_algorithms_apart(device(), types, rows, cols, [&](const Problem &problem) {
            CHECK(runner.check(problem, x, reference) == "");
          });
        }
      }
    }
  }
}

TEST_CASE("16-bit results are rounded once", "[mistakes]") {
  // exp written to the output's type and read back is rounded twice: off by up to an ulp, and a
  // subnormal f16 exp has a few bits only.
  Runner runner(device());
  for (const int pair : {1, 2, 4, 5}) {
    const TypePair &types = kTypePairs[pair];
    for (const Pattern pattern : {Pattern::kNormal1, Pattern::kNormal3}) {
      const Elements x = make_input(types.x, 256, 256, pattern, 51);
      check_everywhere(&runner, types, 256, 256, x);
    }
  }
}

TEST_CASE("sums of millions of equal terms do not stall", "[mistakes][large]") {
  // A plain f32 sum of ones stalls at 2^24, an f16 one at 2048, a bf16 one at 256.
  Runner runner(device());
  for (const int pair : {0, 1, 2, 4, 5}) {
    const TypePair &types = kTypePairs[pair];
    for (const std::int64_t cols : {1 << 17, 1 << 20, (1 << 24) + 5}) {
      if (cols > 1 << 20 && pair != 0 && pair != 2) continue;
      const Elements x = make_input(types.x, 1, cols, Pattern::kEqual, 0);
      const Reference reference = make_reference(x, 1, cols);
      over_algorithms_apart(device(), types, 1, cols, [&](const Problem &problem) {
        if (device().is_slow(problem.algo) && cols > 1 << 17) return;
        CHECK(runner.check(problem, x, reference) == "");
      });
    }
  }
}

TEST_CASE("a confident row's top entry is accurate however many small terms there are",
          "[mistakes][large]") {
  // One element 20 above a million equal ones: the rest of the sum is made of terms that each
  // vanish beside the maximum's 1.
  Runner runner(device());
  const TypePair &types = kTypePairs[0];
  for (const std::int64_t cols : {100, 1000, 10000, 100000, 1000000}) {
    for (const std::int64_t place : {std::int64_t{0}, cols / 2, cols - 1}) {
      Elements x = make_input(types.x, 1, cols, Pattern::kEqual, 0);
      x.set(place, 21.75);
      const Reference reference = make_reference(x, 1, cols);
      over_algorithms_apart(device(), types, 1, cols, [&](const Problem &problem) {
        if (device().is_slow(problem.algo) && cols > 100000) return;
        CHECK(runner.check(problem, x, reference) == "");
      });
    }
  }
}

TEST_CASE("terms below the normal range add up to a normal log-sum", "[mistakes]") {
  // Each term is a subnormal number of few digits, and together they are a normal one.
  Runner runner(device());
  const TypePair &types = kTypePairs[0];
  constexpr std::int64_t kCols = 100000;
  for (const double gap : {92.75, 97.0}) {
    Elements x(types.x, kCols);
    for (std::int64_t j = 0; j < kCols; ++j) x.set(j, j == 77777 ? gap : 0.0);
    const Reference reference = make_reference(x, 1, kCols);
    over_algorithms_apart(device(), types, 1, kCols, [&](const Problem &problem) {
      CHECK(runner.check(problem, x, reference) == "");
    });
  }
}

TEST_CASE("a slowly ascending row moves the maximum at every element", "[mistakes]") {
  Runner runner(device());
  const TypePair &types = kTypePairs[0];
  for (const std::int64_t cols : {1000, 100000}) {
    for (const double span : {0.5, 30.0, 90.0}) {
      Elements x(types.x, cols);
      for (std::int64_t j = 0; j < cols; ++j) {
        x.set(j, span * static_cast<double>(j) / static_cast<double>(cols));
      }
      check_everywhere(&runner, types, 1, cols, x);
    }
  }
}

TEST_CASE("differences that leave the range of the type are 0 or -inf", "[mistakes]") {
  Runner runner(device());
  for (const int pair : {0, 2, 3}) {
    const TypePair &types = kTypePairs[pair];
    const double huge = std::ldexp(1.5, format_of(types.x).max_exponent);
    constexpr std::int64_t kCols = 70;
    Elements x(types.x, 3 * kCols);
    for (std::int64_t j = 0; j < kCols; ++j) {
      x.set(j, j % 7 == 3 ? huge : -huge);
      x.set(kCols + j, j == 69 ? huge : 1.0);
      x.set(2 * kCols + j, j == 0 ? 0.5 : -huge);
    }
    check_everywhere(&runner, types, 3, kCols, x);
  }
}

}  // namespace softmax_test
