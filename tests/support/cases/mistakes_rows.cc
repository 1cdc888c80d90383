// Where published softmax kernels go wrong with rows: barriers, grids, offsets, tails, alignment,
// in place, and the sizes of thread blocks. One test a mistake.
#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "support/catch.h"
#include "support/over.h"

namespace softmax_test {
namespace {

softmax_choice_t choice_of(softmax_algo_t algo, const TypePair &types, std::int64_t rows,
                           std::int64_t cols) {
  softmax_desc_t desc;
  REQUIRE(softmax_desc_init(&desc, sizeof desc, SOFTMAX_OP_SOFTMAX, types.x, rows, cols) ==
          SOFTMAX_SUCCESS);
  desc.y_dtype = types.y;
  softmax_choice_t choice = {};
  choice.struct_size = sizeof choice;
  REQUIRE(softmax_select(device().handle(), algo, &desc, &choice) == SOFTMAX_SUCCESS);
  return choice;
}

}  // namespace

TEST_CASE("rows that do not fill the last block are computed and end", "[mistakes]") {
  // A thread that returns before a block barrier leaves the others waiting, or without its part.
  Runner runner(device());
  const TypePair &types = kTypePairs[0];
  for (const std::int64_t cols : {5, 37, 130, 600}) {
    for (const softmax_algo_t algo : device().algorithms_for(types.x, types.y, cols)) {
      const std::int64_t many = device().least_many_rows(algo, types.x, types.y, cols);
      const int per_block = choice_of(algo, types, many, cols).rows_per_block;
      const std::int64_t last = many + 2 * (per_block > 0 ? per_block : 4);
      const Elements all = make_input(types.x, last, cols, Pattern::kNormal3, 11);
      for (std::int64_t rows = 1; rows <= last; ++rows) {
        if (rows > 3 && rows < many) continue;  // one kernel, a block a row
        Elements x(types.x, rows * cols);
        std::copy_n(all.bytes.begin(), x.bytes.size(), x.bytes.begin());
        Problem problem;
        problem.algo = algo;
        problem.rows = rows;
        problem.cols = cols;
        problem.in_place = rows % 2 == 0;
        CHECK(runner.check(problem, x, make_reference(x, rows, cols)) == "");
      }
    }
  }
}

TEST_CASE("row counts around 65535 are computed in full", "[mistakes]") {
  // Rows on grid.y or grid.z end at 65535.
  Runner runner(device());
  for (const std::int64_t rows : {65535, 65536, 65537, 70000, 131072}) {
    for (const std::int64_t cols : {3, 5}) {
      const TypePair &types = kTypePairs[cols == 3 ? 0 : 2];
      const Elements x = make_input(types.x, rows, cols, Pattern::kNormal3, 65535);
      const Reference reference = make_reference(x, rows, cols);
      over_algorithms(device(), types, rows, cols, [&](const Problem &problem) {
        if (problem.is_log == (rows % 2 == 0)) CHECK(runner.check(problem, x, reference) == "");
      });
    }
  }
}

TEST_CASE("the tail is computed where N is no multiple of a vector", "[mistakes]") {
  // Every remainder of 4, 8 and 16 elements, around sizes that a warp or a block divides evenly;
  // the last element is the maximum, so that losing it changes the whole row.
  Runner runner(device());
  for (const TypePair &types : kTypePairs) {
    for (const std::int64_t base : {0, 128, 1024, 2048}) {
      for (std::int64_t cols = base + 1; cols <= base + 17; ++cols) {
        const Elements x = make_input(types.x, 3, cols, Pattern::kMaxLast, 4);
        const Reference reference = make_reference(x, 3, cols);
        over_algorithms(device(), types, 3, cols, [&](const Problem &problem) {
          if (problem.is_log == (cols % 2 == 0)) CHECK(runner.check(problem, x, reference) == "");
        });
      }
    }
  }
}

TEST_CASE("rows whose bytes are no multiple of 16 are right at every offset", "[mistakes]") {
  // A 16-byte load of a misaligned row faults, or reads the neighbour.
  Runner runner(device());
  for (const TypePair &types : kTypePairs) {
    for (const std::int64_t cols : {7, 100, 1001}) {
      const Elements x = make_input(types.x, 5, cols, Pattern::kNormal3, 16);
      const Reference reference = make_reference(x, 5, cols);
      for (int offset = 0; offset < 16; ++offset) {
        over_algorithms(device(), types, 5, cols, [&](Problem problem) {
          if (problem.is_log != (offset % 2 == 0)) return;
          problem.x_offset = offset;
          problem.y_offset = (offset * 5 + 3) % 16;
          CHECK(runner.check(problem, x, reference) == "");
        });
      }
    }
  }
}

TEST_CASE("in place gives the bits of out of place", "[mistakes][bits]") {
  // A pass that reads what another thread has already overwritten.
  Runner runner(device());
  for (int t = 0; t < 4; ++t) {
    const TypePair &types = kTypePairs[t];
    for (const std::int64_t cols : {1, 2, 31, 33, 257, 1000, 1025, 4097, 50257}) {
      const std::int64_t rows = cols < 2000 ? 67 : 5;
      const Elements x = make_input(types.x, rows, cols, Pattern::kNormal3, 99);
      over_algorithms_apart(device(), types, rows, cols, [&](Problem problem) {
        std::string failure;
        const Elements apart = runner.run(problem, x, &failure);
        CHECK(failure == "");
        problem.in_place = true;
        const Elements in_place = runner.run(problem, x, &failure);
        CHECK(failure == "");
        INFO(to_text(problem));
        CHECK(in_place.bytes == apart.bytes);
      });
    }
  }
}

TEST_CASE("every thread shape that the selector names is right", "[mistakes]") {
  // Shared memory for one value a warp, or for every thread, whatever the block's shape is.
  Runner runner(device());
  for (const TypePair &types : kTypePairs) {
    for (const softmax_algo_t algo : device().algorithms_for(types.x, types.y, 1)) {
      std::set<std::tuple<int, int, std::int64_t>> seen;
      for (std::int64_t cols = 1; cols <= 70000; cols = cols < 64 ? cols + 1 : cols + cols / 16) {
        const auto taking = device().algorithms_for(types.x, types.y, cols);
        if (std::find(taking.begin(), taking.end(), algo) == taking.end()) break;
        // Of few rows; or, where a block then has one, in turn of many. Of long rows, of which
        // CLUSTER's many would be hundreds, test_few_rows.cc compares the two.
        const std::int64_t many = cols % 2 == 0 || cols > 4096
                                      ? 1
                                      : device().least_many_rows(algo, types.x, types.y, cols);
        const softmax_choice_t choice = choice_of(algo, types, many, cols);
        if (!seen.insert({choice.rows_per_block, choice.threads, choice.smem_bytes}).second) {
          continue;
        }
        const std::int64_t rows = std::max<std::int64_t>(many, 2 * choice.rows_per_block + 1);
        for (const Pattern pattern : {Pattern::kMaxLast, Pattern::kNormal10}) {
          const Elements x = make_input(types.x, rows, cols, pattern, 7);
          const Reference reference = make_reference(x, rows, cols);
          for (const bool is_log : {false, true}) {
            Problem problem;
            problem.algo = algo;
            problem.types = types;
            problem.is_log = is_log;
            problem.rows = rows;
            problem.cols = cols;
            CHECK(runner.check(problem, x, reference) == "");
          }
        }
      }
    }
  }
}

}  // namespace softmax_test
