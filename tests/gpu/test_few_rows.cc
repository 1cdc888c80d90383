// WARP, BLOCK, TILE, CLUSTER and GRID for few rows: another kernel than for many, and the same
// bits.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/problem.h"

namespace softmax_test {
namespace {

constexpr std::int64_t kFew = 3;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What becomes of a normal row.
enum class RowKind {
  kNormal,
  kFar,       // its maximum is far from 0 in every type
  kFarBelow,  // the same below 0
  kSteep,     // runs of 128 elements fall by 40 each: sums a warp takes are far apart
  kFarSteps,  // of which some maxima are far from 0 and some are not
  kInfRuns,   // every second run of 512 elements is -inf
  kEqual,
  kEmpty,  // -inf throughout
  kNaN,
  kInf,  // an element is +inf
  kCount
};

double element_of(RowKind kind, double normal, std::int64_t col, std::int64_t cols) {
  switch (kind) {
    case RowKind::kFar: return 20000 + 64 * normal;
    case RowKind::kFarBelow: return -20000 + 64 * normal;
    case RowKind::kSteep: return normal - 40.0 * static_cast<double>(col / 128);
    case RowKind::kFarSteps: return 16360 + 16 * static_cast<double>(col / 128) + normal;
    case RowKind::kInfRuns: return col / 512 % 2 == 0 && cols > 512 ? -kInfinity : normal;
    case RowKind::kEqual: return 1.5;
    case RowKind::kEmpty: return -kInfinity;
    case RowKind::kNaN: return col == cols / 2 ? std::numeric_limits<double>::quiet_NaN() : normal;
    case RowKind::kInf: return col == cols / 3 ? kInfinity : normal;
    default: return normal;
  }
}

// Three rows of the kinds from `kind` on, and normal ones.
Elements make_rows(softmax_dtype_t dtype, std::int64_t rows, std::int64_t cols, int kind) {
  Elements x = make_input(dtype, rows, cols, Pattern::kNormal3, 37);
  for (std::int64_t k = 0; k < kFew * cols; ++k) {
    const int of_row = (kind + static_cast<int>(k / cols)) % static_cast<int>(RowKind::kCount);
    x.set(k, element_of(static_cast<RowKind>(of_row), x[k], k % cols, cols));
  }
  return x;
}

Elements first_rows(const Elements &x, std::int64_t cols) {
  Elements first(x.dtype, kFew * cols);
  std::copy_n(x.bytes.begin(), first.bytes.size(), first.bytes.begin());
  return first;
}

// A float64 NaN has the payload of some operand, and of which one is nobody's promise.
Elements with_one_nan(Elements y) {
  if (y.dtype != SOFTMAX_DTYPE_F64) return y;
  for (std::size_t k = 0; k < y.bytes.size() / sizeof(double); ++k) {
    const auto at = static_cast<std::int64_t>(k);
    if (std::isnan(y[at])) y.set(at, std::numeric_limits<double>::quiet_NaN());
  }
  return y;
}

// Those whose kernel for few rows has a row a block.
bool has_row_a_block(softmax_algo_t algo) {
  return algo == SOFTMAX_ALGO_WARP || algo == SOFTMAX_ALGO_BLOCK || algo == SOFTMAX_ALGO_TILE;
}

// The rows as few, by two kernels: both operations, aligned and not, apart and in place.
void check_few(Runner &runner, const TypePair &types, softmax_algo_t algo, std::int64_t cols,
               int turn) {
  const std::int64_t many = device().least_many_rows(algo, types.x, types.y, cols);
  if (many <= kFew) return;
  const Elements x = make_rows(types.x, many, cols, kFew * turn);
  const Elements few_x = first_rows(x, cols);
  for (const bool is_log : {false, true}) {
    Problem problem;
    problem.algo = algo;
    problem.types = types;
    problem.is_log = is_log;
    problem.cols = cols;
    problem.empty_is_zero = turn % 2 == 0;
    problem.rows = many;
    std::string failure;
    const Elements expected = with_one_nan(first_rows(runner.run(problem, x, &failure), cols));
    CHECK(failure == "");
    problem.rows = kFew;
    for (int way = 0; way < 4; ++way) {
      problem.x_offset = way % 2;
      problem.y_offset = way == 1 ? 1 : 0;
      problem.in_place = way > 1;
      if (problem.in_place && !can_be_in_place(types)) continue;
      const Elements y = with_one_nan(runner.run(problem, few_x, &failure));
      INFO(to_text(problem) << ", rows of kind " << kFew * turn << " " << failure);
      CHECK((failure.empty() && y.bytes == expected.bytes));
    }
  }
}

}  // namespace

TEST_CASE("a row has the same bits among few rows as among many", "[few][bits]") {
  // Every number of lanes and packs that a row is shared by in WARP and TILE, and of BLOCK's runs.
  Runner runner(device());
  int turn = 0;
  for (const TypePair &types : kTypePairs) {
    std::vector<std::int64_t> lengths;
    for (std::int64_t cols = 1; cols <= 1100; cols += cols < 140 ? 1 : 17) lengths.push_back(cols);
    const std::int64_t word = 16 / format_of(types.x).size_bytes;
    for (const std::int64_t words : {17, 20, 24, 33, 40, 65, 72, 89, 129, 160, 256}) {
      lengths.push_back(words * word);
    }
    for (const std::int64_t about : {512, 1024, 2048, 4096, 8192}) {
      for (const std::int64_t more : {-9, -1, 0, 1, 100}) lengths.push_back(about + more);
    }
    for (const std::int64_t cols : lengths) {
      for (const softmax_algo_t algo : device().algorithms_for(types.x, types.y, cols)) {
        if (!has_row_a_block(algo)) continue;
        check_few(runner, types, algo, cols, turn++);
      }
    }
  }
  CHECK(turn > 1000);
}

TEST_CASE("every kind of row has the same bits among few rows as among many", "[few][bits]") {
  Runner runner(device());
  for (const TypePair &types : kTypePairs) {
    for (const std::int64_t cols : {3, 20, 24, 50, 72, 120, 264, 300, 500, 777, 1500, 2048, 4096}) {
      for (const softmax_algo_t algo : device().algorithms_for(types.x, types.y, cols)) {
        if (!has_row_a_block(algo)) continue;
        for (int turn = 0; turn < static_cast<int>(RowKind::kCount); ++turn) {
          check_few(runner, types, algo, cols, turn);
        }
      }
    }
  }
}

TEST_CASE("a row over a cluster has the same bits among few rows as among many", "[few][bits]") {
  // Of one run more than a slab, odd and even, of an incomplete last run, of warps without a run,
  // of so many runs that a block has half of them or all, and of numbers of runs for which teams
  // that are no clusters take many rows.
  if (!device().has_bulk_copies()) SOFTMAX_SKIP("this device has no clusters");
  Runner runner(device());
  int turn = 0;
  for (const TypePair &types : kTypePairs) {
    for (const std::int64_t cols :
         {4100, 4101, 9000, 16387, 40000, 66001, 85000, 92001, 131080, 196613}) {
      for (const softmax_algo_t algo : device().algorithms_for(types.x, types.y, cols)) {
        if (algo == SOFTMAX_ALGO_CLUSTER) check_few(runner, types, algo, cols, turn++);
      }
    }
  }
  CHECK(turn >= 40);
}

TEST_CASE("a row over the device has the same bits among few rows as among many", "[few][bits]") {
  // Of two slabs and several, odd and even, of an incomplete last run, and of warps without a run.
  if (!device().has_bulk_copies()) SOFTMAX_SKIP("this device has no bulk copies");
  Runner runner(device());
  int turn = 0;
  for (const TypePair &types : kTypePairs) {
    for (const std::int64_t cols : {33000, 33001, 66001, 131080, 300001}) {
      check_few(runner, types, SOFTMAX_ALGO_GRID, cols, turn++);
    }
  }
}

TEST_CASE("few rows are right, whatever is in them", "[few]") {
  Runner runner(device());
  int turn = 0;
  for (const TypePair &types : kTypePairs) {
    for (const std::int64_t cols :
         {1, 7, 24, 31, 100, 255, 264, 400, 513, 1024, 1500, 2047, 4096}) {
      for (const softmax_algo_t algo : device().algorithms_for(types.x, types.y, cols)) {
        if (!has_row_a_block(algo)) continue;
        Problem problem;
        problem.algo = algo;
        problem.types = types;
        problem.rows = kFew;
        problem.cols = cols;
        for (const bool is_log : {false, true}) {
          problem.is_log = is_log;
          const Pattern pattern = kPatterns[turn++ % kPatternCount];
          const Elements x = make_input(types.x, kFew, cols, pattern, 38);
          CHECK(runner.check(problem, x, make_reference(x, kFew, cols)) == "");
        }
      }
    }
  }
}

}  // namespace softmax_test
