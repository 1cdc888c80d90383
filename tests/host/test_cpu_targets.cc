// The CPU backend on every SIMD target that this machine can run, not only on its best.
#include <string>
#include <vector>

#include "cpu/backend.h"
#include "cpu/targets.h"
#include "hwy/highway.h"
#include "support/catch.h"
#include "support/problem.h"

namespace softmax_test {
namespace {

// Lets the library choose among `targets` alone for the rest of the scope.
class OnlyTarget {
 public:
  explicit OnlyTarget(std::int64_t target) { set(target); }
  ~OnlyTarget() { set(0); }
  OnlyTarget(const OnlyTarget &) = delete;
  OnlyTarget &operator=(const OnlyTarget &) = delete;

 private:
  static void set(std::int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().DeInit();
  }
};

// Whether the library follows. Some releases of Highway list the scalar fallback beside a baseline
// that is better, and compile nothing for it; every other target must be there.
bool is_in_use(std::int64_t target) {
  const bool in_use = std::string(softmax::cpu_simd_name()) == hwy::TargetName(target);
  if ((target & (HWY_SCALAR | HWY_EMU128)) == 0) CHECK(in_use);
  return in_use;
}

constexpr softmax_algo_t kSimdAlgorithms[] = {SOFTMAX_ALGO_VECTOR, SOFTMAX_ALGO_ONLINE};

// Around every width of a vector, of two (where rows stop being narrow), of a tile and of a part.
std::vector<std::int64_t> columns() {
  std::vector<std::int64_t> columns;
  for (std::int64_t n = 1; n <= 35; ++n) columns.push_back(n);
  for (const std::int64_t n : {63, 64, 65, 100, 127, 129, 1000, 2049, 4095, 4096, 4097, 12289}) {
    columns.push_back(n);
  }
  return columns;
}

TEST_CASE("On every SIMD target of this machine every result is within its bound") {
  const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  REQUIRE(!targets.empty());
  Runner runner(device());
  for (const std::int64_t target : targets) {
    const OnlyTarget only(target);
    if (!is_in_use(target)) continue;
    int turn = 0;
    for (const TypePair &types : kTypePairs) {
      for (const std::int64_t cols : columns()) {
        const std::int64_t rows = cols < 100 ? 35 : 2;  // more than the lanes of any target
        const Pattern pattern = kPatterns[turn % kPatternCount];
        const Elements x = make_input(types.x, rows, cols, pattern, 7 + turn);
        const Reference reference = make_reference(x, rows, cols);
        for (const softmax_algo_t algo : kSimdAlgorithms) {
          for (const bool is_log : {false, true}) {
            ++turn;
            Problem problem;
            problem.algo = algo;
            problem.types = types;
            problem.is_log = is_log;
            problem.in_place = can_be_in_place(types) && turn % 2 == 0;
            problem.rows = rows;
            problem.cols = cols;
            problem.x_offset = turn % 3;
            problem.y_offset = turn % 2;
            INFO(hwy::TargetName(target) << ", " << pattern_name(pattern));
            CHECK(runner.check(problem, x, reference) == "");
          }
        }
      }
    }
  }
}

// In each row one thing that a row may hold besides numbers, among rows that hold none.
Elements edge_input(softmax_dtype_t dtype, std::int64_t rows, std::int64_t cols) {
  constexpr double kInfinity = HUGE_VAL;
  Elements x = make_input(dtype, rows, cols, Pattern::kNormal3, 11);
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t row = i * cols;
    const std::int64_t somewhere = row + (i * 7) % cols;
    switch (i % 6) {
      case 0: break;
      case 1: x.set(somewhere, kInfinity - kInfinity); break;
      case 2: x.set(somewhere, kInfinity); break;
      case 3:
        for (std::int64_t j = 0; j < cols; ++j) x.set(row + j, -kInfinity);
        break;
      case 4:
        for (std::int64_t j = 0; j < cols; ++j) x.set(row + j, -kInfinity);
        x.set(somewhere, kInfinity - kInfinity);
        break;
      case 5:
        for (std::int64_t j = 0; j < cols; ++j) {
          if (row + j != somewhere) x.set(row + j, -kInfinity);
        }
        break;
    }
  }
  return x;
}

TEST_CASE("On every SIMD target NaN, infinities and empty rows come out as promised") {
  Runner runner(device());
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const OnlyTarget only(target);
    if (!is_in_use(target)) continue;
    for (const TypePair &types : kTypePairs) {
      for (const std::int64_t cols : {1, 2, 5, 8, 16, 31, 40, 100, 4097, 8200}) {
        const std::int64_t rows = 36;
        const Elements x = edge_input(types.x, rows, cols);
        for (const bool empty_is_zero : {false, true}) {
          const Reference reference = make_reference(x, rows, cols, empty_is_zero);
          for (const softmax_algo_t algo : kSimdAlgorithms) {
            for (const bool is_log : {false, true}) {
              Problem problem;
              problem.algo = algo;
              problem.types = types;
              problem.is_log = is_log;
              problem.in_place = can_be_in_place(types) && cols % 2 == 0;
              problem.rows = rows;
              problem.cols = cols;
              problem.empty_is_zero = empty_is_zero;
              problem.entry = Entry::kExecute;
              INFO(hwy::TargetName(target));
              CHECK(runner.check(problem, x, reference) == "");
            }
          }
        }
      }
    }
  }
}

// One element is far above the others, of which nothing is left beside it.
TEST_CASE("On every SIMD target a row that is one term is exactly 1 there, whatever its maximum") {
  Runner runner(device());
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const OnlyTarget only(target);
    if (!is_in_use(target)) continue;
    for (const TypePair &types : kTypePairs) {
      for (const std::int64_t cols : {1, 2, 9, 33, 200, 5000}) {
        const std::int64_t rows = 64;
        Elements x(types.x, rows * cols);
        for (std::int64_t i = 0; i < rows; ++i) {
          const double max = 40.0 * normal(29, static_cast<std::uint64_t>(i));
          for (std::int64_t j = 0; j < cols; ++j) x.set(i * cols + j, max - 2000.0);
          x.set(i * cols + i % cols, max);
        }
        for (const softmax_algo_t algo : kSimdAlgorithms) {
          Problem problem;
          problem.algo = algo;
          problem.types = types;
          problem.rows = rows;
          problem.cols = cols;
          std::string failure;
          const Elements y = runner.run(problem, x, &failure);
          REQUIRE(failure == "");
          INFO(hwy::TargetName(target) << ", " << to_text(problem));
          std::int64_t wrong = 0;
          for (std::int64_t i = 0; i < rows * cols; ++i) {
            wrong += y[i] != (i % cols == (i / cols) % cols ? 1.0 : 0.0);
          }
          CHECK(wrong == 0);
        }
      }
    }
  }
}

TEST_CASE("The CPU's description names the SIMD target and the threads") {
  softmax::DeviceCaps caps;
  softmax::cpu_open(&caps);
  const std::string text = caps.description;
  CHECK(!caps.is_cuda);
  CHECK(text.rfind("CPU (", 0) == 0);
  CHECK(text.find(std::string(softmax::cpu_simd_name()) + ")") != std::string::npos);
  CHECK(text.find(std::to_string(softmax::cpu_threads()) + " thread") != std::string::npos);
}

}  // namespace
}  // namespace softmax_test
