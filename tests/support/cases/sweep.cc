// Every algorithm x types x operation against the reference, over every N of the list.
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/problem.h"

namespace softmax_test {
namespace {

std::vector<std::int64_t> sweep_columns() {
  std::vector<std::int64_t> columns;
  for (std::int64_t n = 1; n <= 257; ++n) columns.push_back(n);
  // The capacities of a warp (4 KB of input) and of a block (32 KB and 64 KB of widened types, 128
  // KB), and where a block's threads change what they hold; the powers of two are below.
  for (const std::int64_t n : {255, 769, 2040, 2041, 3000, 5120, 8191, 8192, 8193, 16376, 16384,
                               16385, 24576, 32760, 32768, 65528, 65536}) {
    columns.push_back(n);
  }
  for (const std::int64_t n : {511, 512, 513, 1000, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096,
                               4097, 12289, 24577, 32769, 50257, 65537, 131073}) {
    columns.push_back(n);
  }
  return columns;
}

constexpr int kOffsets[] = {0, 1, 3};

// Runs every algorithm and both operations over one input. `turn` moves through offsets and entry
// points, so that neighbouring problems differ in them. Both in and out of place, or, with
// `one_place`, the one or the other in turn.
void check_all(Runner *runner, const TypePair &types, std::int64_t rows, std::int64_t cols,
               const Elements &x, const Reference &reference, int turn, bool one_place) {
  bool place_in_turn = turn % 2 != 0;
  for (const softmax_algo_t algo : runner->device().algorithms_for(types.x, types.y, cols)) {
    for (const bool is_log : {false, true}) {
      place_in_turn = !place_in_turn;
      for (const bool in_place : {false, true}) {
        if (in_place && !can_be_in_place(types)) continue;
        if (one_place && can_be_in_place(types) && in_place != place_in_turn) continue;
        ++turn;
        Problem problem;
        problem.algo = algo;
        problem.types = types;
        problem.is_log = is_log;
        problem.in_place = in_place;
        problem.rows = rows;
        problem.cols = cols;
        problem.x_offset = kOffsets[turn % 3];
        problem.y_offset = kOffsets[turn / 3 % 3];
        problem.entry = turn % 5 == 0 ? Entry::kExecute : Entry::kFlat;
        CHECK(runner->check(problem, x, reference) == "");
      }
    }
  }
}

void sweep(const TypePair &types) {
  Runner runner(device());
  int turn = 0;
  for (const std::int64_t cols : sweep_columns()) {
    // Short rows: each number of rows with a pattern of its own. Long rows: one, in turn.
    const bool long_rows = cols > 257;
    const int first = long_rows ? 1 + turn % 3 : 1;
    const int last = long_rows ? first : 3;
    for (int rows = first; rows <= last; ++rows, ++turn) {
      const Pattern pattern = kPatterns[turn % kPatternCount];
      INFO("input " << pattern_name(pattern) << ", seed " << turn);
      const Elements x = make_input(types.x, rows, cols, pattern, static_cast<std::uint64_t>(turn));
      check_all(&runner, types, rows, cols, x, make_reference(x, rows, cols), turn, long_rows);
    }
  }
  // Many rows. 70000 exceeds what a grid has in y and z.
  for (const std::int64_t cols : {1, 3, 8, 17}) {
    constexpr std::int64_t kRows = 70000;
    const Pattern pattern = cols == 8 ? Pattern::kMinusInf : Pattern::kNormal3;
    INFO("input " << pattern_name(pattern) << ", seed " << cols);
    const Elements x = make_input(types.x, kRows, cols, pattern, static_cast<std::uint64_t>(cols));
    check_all(&runner, types, kRows, cols, x, make_reference(x, kRows, cols), turn++, true);
  }
}

}  // namespace

TEST_CASE("every algorithm is within the promised error at every N in f32", "[sweep]") {
  sweep(kTypePairs[0]);
}
TEST_CASE("every algorithm is within the promised error at every N in f16", "[sweep]") {
  sweep(kTypePairs[1]);
}
TEST_CASE("every algorithm is within the promised error at every N in bf16", "[sweep]") {
  sweep(kTypePairs[2]);
}
TEST_CASE("every algorithm is within the promised error at every N in f64", "[sweep]") {
  sweep(kTypePairs[3]);
}
TEST_CASE("every algorithm is within the promised error at every N from f16 to f32", "[sweep]") {
  sweep(kTypePairs[4]);
}
TEST_CASE("every algorithm is within the promised error at every N from bf16 to f32", "[sweep]") {
  sweep(kTypePairs[5]);
}

}  // namespace softmax_test
