// WARP and BLOCK, which hold a row in registers, and CLUSTER and GRID, which spread it over those
// of several blocks: every N, every address, and parts of a row that are far below the rest of it.
#include <algorithm>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/problem.h"

namespace softmax_test {
namespace {

// Those of the two that take rows of `cols`.
std::vector<softmax_algo_t> holding(const TypePair &types, std::int64_t cols) {
  std::vector<softmax_algo_t> algorithms;
  for (const softmax_algo_t algo : device().algorithms_for(types.x, types.y, cols)) {
    if (algo == SOFTMAX_ALGO_WARP || algo == SOFTMAX_ALGO_BLOCK) algorithms.push_back(algo);
  }
  return algorithms;
}

// Rows that fill `words` 16-byte words but for a few elements, or by one more than they hold: those
// whose words, where they begin elsewhere in one, are one more.
std::vector<std::int64_t> cols_about(const TypePair &types, std::int64_t words) {
  const std::int64_t word_cols = 16 / format_of(types.x).size_bytes;
  std::vector<std::int64_t> cols;
  for (std::int64_t n = (words - 1) * word_cols + 1; n <= words * word_cols + 1; ++n) {
    cols.push_back(n);
  }
  return cols;
}

// x and y at offsets from a word, y a few after x's and in place: the bits are those of aligned
// buffers.
void check_every_address(Runner &runner, Problem problem, const Elements &x, int y_turns) {
  const int x_last = 16 / format_of(problem.types.x).size_bytes;
  const int y_last = 16 / format_of(problem.types.y).size_bytes;
  std::string failure;
  const Elements aligned = runner.run(problem, x, &failure);
  CHECK(failure == "");
  const auto check_same = [&] {
    const Elements y = runner.run(problem, x, &failure);
    INFO(to_text(problem) << " " << failure);
    CHECK((failure.empty() && y.bytes == aligned.bytes));
  };
  for (problem.x_offset = 0; problem.x_offset < x_last; ++problem.x_offset) {
    // Outputs that lie in their words as inputs do, and others.
    for (int turn = 0; turn < std::min(y_turns, y_last); ++turn) {
      problem.y_offset = (problem.x_offset + turn) % y_last;
      check_same();
    }
    problem.in_place = true;
    if (can_be_in_place(problem.types)) check_same();
    problem.in_place = false;
  }
}

// A few rows, for which WARP and BLOCK may have another kernel, and, if they have, so many that
// they take the one for many.
std::vector<std::int64_t> few_and_many(softmax_algo_t algo, const TypePair &types,
                                       std::int64_t cols, std::int64_t few) {
  const std::int64_t many = device().least_many_rows(algo, types.x, types.y, cols);
  return many <= few ? std::vector<std::int64_t>{few} : std::vector<std::int64_t>{few, many};
}

Problem problem_of(softmax_algo_t algo, const TypePair &types, std::int64_t rows,
                   std::int64_t cols) {
  Problem problem;
  problem.algo = algo;
  problem.types = types;
  problem.rows = rows;
  problem.cols = cols;
  return problem;
}

}  // namespace

TEST_CASE("a row in registers is right at every N up to 2100", "[held]") {
  Runner runner(device());
  int turn = 0;
  for (std::int64_t cols = 1; cols <= 2100; cols += cols < 300 ? 1 : 3) {
    const TypePair &types = kTypePairs[cols % 6];
    // More rows than a block of WARP takes where rows are short.
    const std::int64_t rows = cols <= 64 ? 600 : 1 + cols % 7;
    const Elements x = make_input(types.x, rows, cols, kPatterns[cols % kPatternCount], 31);
    const Reference reference = make_reference(x, rows, cols);
    for (const softmax_algo_t algo : holding(types, cols)) {
      for (const bool is_log : {false, true}) {
        Problem problem = problem_of(algo, types, rows, cols);
        problem.is_log = is_log;
        problem.x_offset = turn % 5 == 0 ? turn % 16 : 0;
        problem.y_offset = turn % 3 == 0 ? turn % 16 : 0;
        problem.in_place = can_be_in_place(types) && turn % 4 == 1;
        ++turn;
        CHECK(runner.check(problem, x, reference) == "");
      }
    }
  }
}

TEST_CASE("a row in registers has the same bits at every address", "[held][bits]") {
  // Input and output each at every offset from a word, on N that are whole words and others, among
  // them the least and the most that a number of packs takes.
  Runner runner(device());
  for (const TypePair &types : kTypePairs) {
    for (const std::int64_t cols :
         {2, 5, 8, 16, 40, 99, 128, 256, 511, 512, 1024, 1025, 2047, 2048, 4095, 4096}) {
      for (const softmax_algo_t algo : holding(types, cols)) {
        for (const std::int64_t rows : few_and_many(algo, types, cols, 21)) {
          const Elements x = make_input(types.x, rows, cols, Pattern::kNormal3, 32);
          for (const bool is_log : {false, true}) {
            Problem problem = problem_of(algo, types, rows, cols);
            problem.is_log = is_log;
            check_every_address(runner, problem, x, cols <= 128 ? 8 : 2);
          }
        }
      }
    }
  }
}

TEST_CASE("a row that nearly fills its lanes has the same bits at every address", "[held][bits]") {
  // Lanes times packs of WARP, and whole runs of BLOCK's warps: the words that such a row touches
  // may be one more than its lanes hold.
  Runner runner(device());
  int turn = 0;
  for (const TypePair &types : kTypePairs) {
    for (const std::int64_t words : {1, 2, 4, 8, 16, 32, 64, 128, 256, 384, 512, 2560}) {
      for (const std::int64_t cols : cols_about(types, words)) {
        const Pattern pattern = turn % 5 == 0 ? Pattern::kShifted : Pattern::kNormal3;
        for (const softmax_algo_t algo : holding(types, cols)) {
          const std::int64_t rows = few_and_many(algo, types, cols, 9).back();
          const Elements x = make_input(types.x, rows, cols, pattern, 35);
          Problem problem = problem_of(algo, types, rows, cols);
          problem.is_log = turn++ % 2 == 0;
          check_every_address(runner, problem, x, 2);
        }
      }
    }
  }
}

TEST_CASE("a row spread over blocks has the same bits at every address", "[held][bits]") {
  Runner runner(device());
  int turn = 0;
  for (const TypePair &types : kTypePairs) {
    for (const std::int64_t cols : {3, 2047, 2048, 4097, 20011, 32767, 32768, 70001}) {
      constexpr std::int64_t kRows = 5;
      const Elements x = make_input(types.x, kRows, cols, Pattern::kNormal3, 36);
      for (const softmax_algo_t algo : device().algorithms_for(types.x, types.y, cols)) {
        if (algo != SOFTMAX_ALGO_CLUSTER && algo != SOFTMAX_ALGO_GRID) continue;
        Problem problem = problem_of(algo, types, kRows, cols);
        problem.is_log = turn++ % 2 == 0;
        check_every_address(runner, problem, x, 2);
      }
    }
  }
}

TEST_CASE("a row in registers has the same bits wherever it is among others", "[held][bits]") {
  // The first and the last row of a tensor are read with more care than those between; a warp's and
  // a block's rows are counted in several ways.
  Runner runner(device());
  for (const TypePair &types : kTypePairs) {
    for (const std::int64_t cols : {3, 7, 9, 33, 65, 129, 250, 515, 769, 1027, 2047, 3001}) {
      constexpr std::int64_t kFew = 9;
      const auto rows_of = [&](const Elements &from, std::int64_t first, std::int64_t count) {
        Elements rows(from.dtype, count * cols);
        for (std::int64_t k = 0; k < count * cols; ++k) rows.set(k, from[first * cols + k]);
        return rows;
      };
      for (const softmax_algo_t algo : holding(types, cols)) {
        // A part of many rows that is as many itself, and one of few.
        const std::int64_t many = few_and_many(algo, types, cols, kFew).back() + kFew;
        const Elements x = make_input(types.x, many, cols, Pattern::kNormal3, 34);
        Problem problem = problem_of(algo, types, many, cols);
        problem.is_log = cols % 2 == 0;
        std::string failure;
        const Elements all = runner.run(problem, x, &failure);
        CHECK(failure == "");
        for (const std::int64_t first : {0, 1, 4, 8}) {
          for (const std::int64_t count : {std::int64_t{1}, std::int64_t{2}, many - kFew}) {
            problem.rows = count;
            const Elements some = runner.run(problem, rows_of(x, first, count), &failure);
            INFO(to_text(problem) << " row " << first << " " << failure);
            CHECK((failure.empty() && some.bytes == rows_of(all, first, count).bytes));
          }
        }
      }
    }
  }
}

TEST_CASE("results wider than elements are right, and nothing beside them is written", "[held]") {
  // Neighbouring lanes store for each other: rows of an odd number of words, warps that lack rows,
  // and clusters and teams that lack runs.
  Runner runner(device());
  const auto takes = [](softmax_algo_t algo, std::int64_t cols) {
    switch (algo) {
      case SOFTMAX_ALGO_WARP:
      case SOFTMAX_ALGO_BLOCK:
      case SOFTMAX_ALGO_TILE: return true;
      case SOFTMAX_ALGO_CLUSTER: return cols > 4000;
      case SOFTMAX_ALGO_GRID: return cols > 100000;
      default: return false;
    }
  };
  for (const int pair : {4, 5}) {
    const TypePair &types = kTypePairs[pair];
    for (const std::int64_t cols :
         {8,    16,   24,   40,   64,    72,    120,   128,    256,    264,    520,   1000,
          1032, 2048, 4104, 8200, 16392, 24584, 33000, 100000, 128256, 151936, 300008}) {
      for (const softmax_algo_t algo : device().algorithms_for(types.x, types.y, cols)) {
        if (!takes(algo, cols)) continue;
        const std::int64_t rows = few_and_many(algo, types, cols, 3).back() + 3;
        const Elements x = make_input(types.x, rows, cols, Pattern::kNormal3, 38);
        const Reference reference = make_reference(x, rows, cols);
        for (const bool is_log : {false, true}) {
          Problem problem = problem_of(algo, types, rows, cols);
          problem.is_log = is_log;
          CHECK(runner.check(problem, x, reference) == "");
        }
      }
    }
  }
}

TEST_CASE("a part of a row far below the rest is as right as the rest", "[held]") {
  // A warp's terms are taken against its own maximum and brought to the row's later: from 2^-40 of
  // it on in another scale, down to results below the normal range; and a warp of -inf alone.
  Runner runner(device());
  for (const TypePair &types : kTypePairs) {
    for (const std::int64_t cols : {256, 1024, 4096, 8000}) {
      for (const std::int64_t run : {64, 256, 1024}) {
        if (run >= cols) continue;
        constexpr std::int64_t kRows = kRowsOfRunsBelow;
        const Elements x = make_runs_below(types.x, cols, run, 33);
        const Reference reference = make_reference(x, kRows, cols);
        for (const softmax_algo_t algo : holding(types, cols)) {
          for (const bool is_log : {false, true}) {
            Problem problem = problem_of(algo, types, kRows, cols);
            problem.is_log = is_log;
            CHECK(runner.check(problem, x, reference) == "");
          }
        }
      }
    }
  }
}

TEST_CASE("a maximum far from 0 is as right as one near it", "[held]") {
  // The exponential has a way of its own from 2^14 on.
  Runner runner(device());
  for (const int pair : {0, 3, 4, 5}) {
    const TypePair &types = kTypePairs[pair];
    for (const std::int64_t cols : {3, 100, 700, 3000}) {
      constexpr std::int64_t kRows = 4;
      const double maxima[kRows] = {16383.5, 16384, -40000, 5};
      Elements x(types.x, kRows * cols);
      for (std::int64_t k = 0; k < kRows * cols; ++k) {
        x.set(k, maxima[k / cols] - 32 * static_cast<double>(k % cols * 7 % 3));
      }
      const Reference reference = make_reference(x, kRows, cols);
      for (const softmax_algo_t algo : holding(types, cols)) {
        for (const bool is_log : {false, true}) {
          Problem problem = problem_of(algo, types, kRows, cols);
          problem.is_log = is_log;
          CHECK(runner.check(problem, x, reference) == "");
        }
      }
    }
  }
}

}  // namespace softmax_test
