// TILE, CLUSTER and GRID, which take runs of rows or parts of one: every N, every address, the
// ends of tensors and of parts of rows, and schedules that must not show.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "gpu/cuda_check.h"
#include "support/catch.h"
#include "support/problem.h"

namespace softmax_test {
namespace {

constexpr int kPairs[] = {0, 2, 5};  // f32, bf16, bf16 to f32

// Beyond 2100 columns: one slab and several, even and odd numbers of bytes, a few columns more than
// fill a slab or a cluster.
constexpr std::int64_t kLongRows[] = {4099, 8193, 12289, 50257, 65537, 131073};

#define SKIP_WITHOUT_BULK_COPIES() \
  if (!device().has_bulk_copies()) SOFTMAX_SKIP("this device has no bulk copies")

// Those of the three that take rows of `cols`.
std::vector<softmax_algo_t> bulk_algorithms(const TypePair &types, std::int64_t cols) {
  std::vector<softmax_algo_t> algorithms;
  for (const softmax_algo_t algo : device().algorithms_for(types.x, types.y, cols)) {
    if (algo == SOFTMAX_ALGO_TILE || algo == SOFTMAX_ALGO_CLUSTER || algo == SOFTMAX_ALGO_GRID) {
      algorithms.push_back(algo);
    }
  }
  return algorithms;
}

Problem problem_of(softmax_algo_t algo, const TypePair &types, std::int64_t rows, std::int64_t cols,
                   bool is_log) {
  Problem problem;
  problem.algo = algo;
  problem.types = types;
  problem.rows = rows;
  problem.cols = cols;
  problem.is_log = is_log;
  return problem;
}

Elements first_rows(const Elements &x, std::int64_t cols, std::int64_t rows) {
  Elements part(x.dtype, rows * cols);
  std::memcpy(part.bytes.data(), x.bytes.data(), part.bytes.size());
  return part;
}

Elements run_or_fail(Runner *runner, const Problem &problem, const Elements &x) {
  std::string failure;
  Elements y = runner->run(problem, x, &failure);
  INFO(to_text(problem) << " " << failure);
  CHECK(failure.empty());
  return y;
}

void check_bits(Runner *runner, const Problem &problem, const Elements &x,
                const Elements &expected) {
  const Elements y = run_or_fail(runner, problem, x);
  INFO(to_text(problem));
  CHECK(y.bytes == expected.bytes);
}

// Every offset of x from a 16-byte word, in place, with y offset alike and with y offset otherwise.
template <typename Body>
void over_offsets(Problem problem, Body body) {
  const int x_last = 16 / format_of(problem.types.x).size_bytes;
  const int y_last = 16 / format_of(problem.types.y).size_bytes;
  for (int offset = 0; offset < x_last; ++offset) {
    problem.x_offset = offset;
    problem.in_place = false;
    for (const int y_offset : {offset % y_last, (offset + 1) % y_last, (3 * offset + 2) % y_last}) {
      problem.y_offset = y_offset;
      body(problem);
    }
    if (!can_be_in_place(problem.types)) continue;
    problem.in_place = true;
    body(problem);
  }
}

}  // namespace

TEST_CASE("rows in bulk are right at every N up to 2100 and at long ones", "[bulk]") {
  SKIP_WITHOUT_BULK_COPIES();
  Runner runner(device());
  std::vector<std::int64_t> columns(std::begin(kLongRows), std::end(kLongRows));
  for (std::int64_t n = 1; n <= 2100; n += n < 140 ? 1 : 7) columns.push_back(n);
  int turn = 0;
  for (const std::int64_t cols : columns) {
    const TypePair &types = kTypePairs[kPairs[turn % 3]];
    // More rows than one run of TILE's where rows are short.
    const std::int64_t rows = cols <= 64 ? 3000 : 1 + cols % 7;
    const Elements x = make_input(types.x, rows, cols, kPatterns[turn % kPatternCount], 81);
    const Reference reference = make_reference(x, rows, cols);
    for (const softmax_algo_t algo : bulk_algorithms(types, cols)) {
      for (const bool is_log : {false, true}) {
        Problem problem = problem_of(algo, types, rows, cols, is_log);
        problem.x_offset = turn % 3 == 0 ? turn % 16 : 0;
        problem.y_offset = turn % 2 == 0 ? turn % 16 : 0;
        problem.in_place = can_be_in_place(types) && turn % 4 == 1;
        CHECK(runner.check(problem, x, reference) == "");
      }
    }
    ++turn;
  }
}

TEST_CASE("rows in bulk have the same bits at every address", "[bulk][bits]") {
  SKIP_WITHOUT_BULK_COPIES();
  Runner runner(device());
  for (const int pair : kPairs) {
    const TypePair &types = kTypePairs[pair];
    for (const std::int64_t cols :
         {1, 2, 3, 5, 8, 17, 100, 255, 512, 1000, 2100, 4099, 12289, 50257}) {
      constexpr std::int64_t kRows = 7;
      const Elements x = make_input(types.x, kRows, cols, Pattern::kNormal3, 82);
      const Reference reference = make_reference(x, kRows, cols);
      for (const softmax_algo_t algo : bulk_algorithms(types, cols)) {
        for (const bool is_log : {false, true}) {
          const Problem aligned = problem_of(algo, types, kRows, cols, is_log);
          CHECK(runner.check(aligned, x, reference) == "");
          const Elements expected = run_or_fail(&runner, aligned, x);
          over_offsets(aligned,
                       [&](const Problem &problem) { check_bits(&runner, problem, x, expected); });
        }
      }
    }
  }
}

TEST_CASE("bits of rows in bulk do not depend on M", "[bulk][bits]") {
  SKIP_WITHOUT_BULK_COPIES();
  Runner runner(device());
  for (const int pair : kPairs) {
    const TypePair &types = kTypePairs[pair];
    for (const std::int64_t cols : {1, 5, 100, 500, 1000, 4099, 12289, 50257, 65537}) {
      constexpr std::int64_t kMostRows = 133;
      const Elements x = make_input(types.x, kMostRows, cols, Pattern::kNormal3, 83);
      for (const softmax_algo_t algo : bulk_algorithms(types, cols)) {
        const bool is_log = (algo + pair) % 2 == 0;
        const Elements all =
            run_or_fail(&runner, problem_of(algo, types, kMostRows, cols, is_log), x);
        for (const std::int64_t rows : {1, 2, 7}) {
          Problem part = problem_of(algo, types, rows, cols, is_log);
          part.x_offset = static_cast<int>(rows);
          check_bits(&runner, part, first_rows(x, cols, rows), first_rows(all, cols, rows));
        }
      }
    }
  }
}

// Rows of whole words, few lanes of which WARP fills: every number of lanes that shares one, all of
// whose packs are full and not, and one that TILE would not be asked for.
constexpr std::int64_t kRaggedWords[] = {3,  5,  6,  7,  9,  10, 11, 17,  20,  22,  24,
                                         33, 40, 44, 65, 72, 89, 96, 129, 160, 179, 256};

// AUTO too, which has TILE for most of them.
constexpr softmax_algo_t kTileOrAuto[] = {SOFTMAX_ALGO_TILE, SOFTMAX_ALGO_AUTO};

TEST_CASE("tiles of whole words are right, and have the same bits at every address",
          "[bulk][bits]") {
  // Many rows: the kernel for few is another. The last tile is not full, and neither are its warps.
  SKIP_WITHOUT_BULK_COPIES();
  Runner runner(device());
  for (const TypePair &types : kTypePairs) {
    const std::int64_t word = 16 / format_of(types.x).size_bytes;
    int turn = 0;
    for (const std::int64_t words : kRaggedWords) {
      const std::int64_t cols = words * word;
      const std::int64_t rows =
          device().least_many_rows(SOFTMAX_ALGO_TILE, types.x, types.y, cols) + 37 + words % 29;
      CHECK(rows > 38);
      const Elements x = make_input(types.x, rows, cols, kPatterns[turn++ % kPatternCount], 91);
      const Reference reference = make_reference(x, rows, cols);
      for (const softmax_algo_t algo : kTileOrAuto) {
        for (const bool is_log : {false, true}) {
          const Problem aligned = problem_of(algo, types, rows, cols, is_log);
          CHECK(runner.check(aligned, x, reference) == "");
          const Elements expected = run_or_fail(&runner, aligned, x);
          over_offsets(aligned, [&](const Problem &problem) {
            // One of each kind: both aligned, one of them, neither.
            if (problem.x_offset > 1 && problem.x_offset + problem.y_offset != 16) return;
            check_bits(&runner, problem, x, expected);
          });
        }
      }
    }
  }
}

TEST_CASE("bits of rows of whole words do not depend on M, whoever AUTO takes", "[bulk][bits]") {
  // Few rows, as many as are still few, and one more: other kernels, the same order of additions.
  SKIP_WITHOUT_BULK_COPIES();
  Runner runner(device());
  for (const TypePair &types : kTypePairs) {
    const std::int64_t word = 16 / format_of(types.x).size_bytes;
    for (const std::int64_t words : kRaggedWords) {
      const std::int64_t cols = words * word;
      const std::int64_t many = device().least_many_rows(SOFTMAX_ALGO_TILE, types.x, types.y, cols);
      const std::int64_t most = 4 * many + 1;
      const Elements x = make_input(types.x, most, cols, Pattern::kNormal3, 92);
      for (const softmax_algo_t algo : kTileOrAuto) {
        const bool is_log = (words + algo) % 2 == 0;
        const Elements all = run_or_fail(&runner, problem_of(algo, types, most, cols, is_log), x);
        for (const std::int64_t rows : {std::int64_t{1}, many - 1, many, 2 * many}) {
          Problem part = problem_of(algo, types, rows, cols, is_log);
          part.x_offset = static_cast<int>(rows % 2);
          check_bits(&runner, part, first_rows(x, cols, rows), first_rows(all, cols, rows));
        }
      }
    }
  }
}

TEST_CASE("special values in tiles of whole words decide as in any place", "[bulk][edge]") {
  SKIP_WITHOUT_BULK_COPIES();
  Runner runner(device());
  for (const TypePair &types : kTypePairs) {
    const std::int64_t word = 16 / format_of(types.x).size_bytes;
    for (const std::int64_t words : kRaggedWords) {
      const std::int64_t cols = words * word;
      const std::int64_t rows =
          device().least_many_rows(SOFTMAX_ALGO_TILE, types.x, types.y, cols) + 5;
      Elements x = make_input(types.x, rows, cols, Pattern::kNormal3, 93);
      for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t at = row * cols;
        const std::int64_t place = row * 7 % cols;
        switch (row % 5) {
          case 0: x.set(at + place, std::nan("")); break;
          case 1: x.set(at + place, HUGE_VAL); break;
          case 2: x.set(at + place, -HUGE_VAL); break;
          case 3:  // all but one
            for (std::int64_t j = 0; j < cols; ++j) {
              if (j != place) x.set(at + j, -HUGE_VAL);
            }
            break;
          default:  // all
            for (std::int64_t j = 0; j < cols; ++j) x.set(at + j, -HUGE_VAL);
        }
      }
      const bool empty_is_zero = words % 2 == 0;
      const Reference reference = make_reference(x, rows, cols, empty_is_zero);
      for (const bool is_log : {false, true}) {
        Problem problem = problem_of(SOFTMAX_ALGO_TILE, types, rows, cols, is_log);
        problem.empty_is_zero = empty_is_zero;
        problem.x_offset = is_log ? 1 : 0;
        CHECK(runner.check(problem, x, reference) == "");
      }
    }
  }
}

TEST_CASE("a last run of rows that is shorter than a 16-byte word is right", "[bulk]") {
  // The run before it ends within the tensor's last word, which no bulk copy may bring: runs are
  // a power of two of bytes here, and the rows are a few more than make 3 of the longest.
  SKIP_WITHOUT_BULK_COPIES();
  Runner runner(device());
  for (const int pair : kPairs) {
    const TypePair &types = kTypePairs[pair];
    const std::int64_t size = format_of(types.x).size_bytes;
    for (const std::int64_t cols : {1, 2}) {
      for (std::int64_t more = 1; more * cols * size < 16; ++more) {
        const std::int64_t rows = 3 * (std::int64_t{128} << 10) / (cols * size) + more;
        const Elements x = make_input(types.x, rows, cols, Pattern::kNormal3, 84);
        const Reference reference = make_reference(x, rows, cols);
        for (const softmax_algo_t algo : bulk_algorithms(types, cols)) {
          Problem problem = problem_of(algo, types, rows, cols, more % 2 == 0);
          problem.x_offset = 1;
          problem.y_offset = static_cast<int>(more % 3);
          CHECK(runner.check(problem, x, reference) == "");
        }
      }
    }
  }
}

TEST_CASE("special values at either end of a row in bulk decide as in any place", "[bulk][edge]") {
  // In the first and the last slab, and with slabs of -inf alone beside others.
  SKIP_WITHOUT_BULK_COPIES();
  Runner runner(device());
  constexpr double kInf = HUGE_VAL;
  for (const int pair : kPairs) {
    const TypePair &types = kTypePairs[pair];
    for (const std::int64_t cols : {3, 100, 500, 3000, 12289, 50257, 131073}) {
      constexpr std::int64_t kRows = 14;
      Elements x = make_input(types.x, kRows, cols, Pattern::kNormal3, 85);
      const auto put = [&](std::int64_t row, std::int64_t begin, std::int64_t end, double value) {
        for (std::int64_t j = begin; j < end; ++j) x.set(row * cols + j, value);
      };
      const std::int64_t quarter = cols / 4;
      put(0, 0, 1, std::nan(""));
      put(1, cols - 1, cols, std::nan(""));
      put(2, 0, 1, kInf);
      put(3, cols - 1, cols, kInf);
      put(4, 0, 1, -kInf);
      put(5, cols - 1, cols, -kInf);
      put(6, 0, cols - 1 - quarter, -kInf);  // the first three quarters
      put(7, quarter + 1, cols, -kInf);      // the last three
      put(8, 0, cols, -kInf);                // all
      put(9, 0, cols - 1, -kInf);            // all but the last
      put(10, 1, cols, -kInf);               // all but the first
      put(11, 0, cols, -kInf);               // all but a NaN in the last place
      put(11, cols - 1, cols, std::nan(""));
      for (std::int64_t j = 0; j < cols; ++j) {  // runs of 4096 in turn
        if (j / 4096 % 2 == 0 && j + 1 < cols) put(12, j, j + 1, -kInf);
      }
      for (const bool empty_is_zero : {false, true}) {
        const Reference reference = make_reference(x, kRows, cols, empty_is_zero);
        for (const softmax_algo_t algo : bulk_algorithms(types, cols)) {
          for (const bool is_log : {false, true}) {
            Problem problem = problem_of(algo, types, kRows, cols, is_log);
            problem.empty_is_zero = empty_is_zero;
            problem.x_offset = empty_is_zero ? 1 : 0;
            CHECK(runner.check(problem, x, reference) == "");
          }
        }
      }
    }
  }
}

TEST_CASE("a slab far below the rest of its row is as right as the rest", "[bulk]") {
  SKIP_WITHOUT_BULK_COPIES();
  Runner runner(device());
  for (const int pair : {0, 3, 5}) {
    const TypePair &types = kTypePairs[pair];
    for (const std::int64_t cols : {12289, 50257}) {
      for (const std::int64_t run : {1000, 8192}) {
        constexpr std::int64_t kRows = kRowsOfRunsBelow;
        const Elements x = make_runs_below(types.x, cols, run, 86);
        const Reference reference = make_reference(x, kRows, cols);
        for (const softmax_algo_t algo : bulk_algorithms(types, cols)) {
          for (const bool is_log : {false, true}) {
            CHECK(runner.check(problem_of(algo, types, kRows, cols, is_log), x, reference) == "");
          }
        }
      }
    }
  }
}

TEST_CASE("confident rows in bulk keep their log-softmax to 4 ulp", "[bulk][accuracy]") {
  SKIP_WITHOUT_BULK_COPIES();
  Runner runner(device());
  REQUIRE(promised_bound(SOFTMAX_DTYPE_F32).ulps <= 4);
  for (const int pair : {0, 3, 5}) {
    const TypePair &types = kTypePairs[pair];
    for (const std::int64_t cols : {100, 500, 1000, 8192, 50257, 131073}) {
      for (const Pattern pattern : {Pattern::kConfident, Pattern::kCertain}) {
        const Elements x = make_input(types.x, 9, cols, pattern, 87);
        const Reference reference = make_reference(x, 9, cols);
        for (const softmax_algo_t algo : bulk_algorithms(types, cols)) {
          CHECK(runner.check(problem_of(algo, types, 9, cols, true), x, reference) == "");
        }
      }
    }
  }
}

TEST_CASE("a captured call on rows in bulk replays to the same bits", "[bulk][graphs]") {
  SKIP_WITHOUT_BULK_COPIES();
  const Stream stream;
  for (const std::int64_t cols : {500, 260, 12289, 131073, 1000003}) {
    const TypePair &types = kTypePairs[0];
    const std::int64_t rows = cols == 260 ? 1000 : 3;  // tiles of whole words are of many rows
    const Elements x = make_input(types.x, rows, cols, Pattern::kNormal3, 88);
    const Reference reference = make_reference(x, rows, cols);
    DeviceFloats from(rows * cols), to(rows * cols);
    to_device(from.data(), x.bytes.data(), x.bytes.size());
    for (const softmax_algo_t algo : bulk_algorithms(types, cols)) {
      const Problem problem = problem_of(algo, types, rows, cols, false);
      const auto enqueue = [&] {
        return call(device().handle(), problem, from.data(), to.data(), stream);
      };
      Elements y[3] = {x, x, x};
      Graph graph;
      CHECK(graph.capture(stream, enqueue) == SOFTMAX_SUCCESS);
      for (int run = 0; run < 3; ++run) {
        must(cudaMemsetAsync(to.data(), 0x5a, to.bytes(), stream));
        if (run == 0) {
          CHECK(enqueue() == SOFTMAX_SUCCESS);
        } else {
          graph.launch(stream);
        }
        must(cudaMemcpyAsync(y[run].bytes.data(), to.data(), to.bytes(), cudaMemcpyDeviceToHost,
                             stream));
        stream.synchronize();
      }
      INFO(to_text(problem));
      CHECK(compare(y[0], reference, false, cols, promised_bound(types.y)).failure == "");
      CHECK(y[1].bytes == y[0].bytes);
      CHECK(y[2].bytes == y[0].bytes);
    }
  }
}

TEST_CASE("two streams at once may have rows that fill the card", "[bulk][streams]") {
  // Blocks that share a row wait for each other: were those of two launches resident in part only,
  // both would wait for ever. And each call's sums must be its own.
  SKIP_WITHOUT_BULK_COPIES();
  constexpr int kCalls = 20;
  constexpr std::int64_t kRows = 3;
  const TypePair &types = kTypePairs[0];
  for (const std::int64_t cols : {131073, 1 << 21}) {
    const Stream streams[2];
    const Elements inputs[2] = {make_input(types.x, kRows, cols, Pattern::kNormal3, 89),
                                make_input(types.x, kRows, cols, Pattern::kNormal10, 90)};
    DeviceFloats from[2] = {DeviceFloats(kRows * cols), DeviceFloats(kRows * cols)};
    DeviceFloats to[2] = {DeviceFloats(kRows * cols), DeviceFloats(kRows * cols)};
    const Problem problem = problem_of(SOFTMAX_ALGO_GRID, types, kRows, cols, false);
    for (int i = 0; i < 2; ++i) {
      to_device(from[i].data(), inputs[i].bytes.data(), from[i].bytes());
      must(cudaMemset(to[i].data(), 0x5a, to[i].bytes()));
    }
    must(cudaDeviceSynchronize());
    int refused = 0;
    for (int n = 0; n < kCalls; ++n) {
      for (int i = 0; i < 2; ++i) {
        refused += call(device().handle(), problem, from[i].data(), to[i].data(), streams[i]) !=
                   SOFTMAX_SUCCESS;
      }
    }
    CHECK(refused == 0);
    for (int i = 0; i < 2; ++i) {
      streams[i].synchronize();
      Elements y(types.y, kRows * cols);
      must(cudaMemcpy(y.bytes.data(), to[i].data(), to[i].bytes(), cudaMemcpyDeviceToHost));
      INFO("stream " << i << ", N = " << cols);
      CHECK(compare(y, make_reference(inputs[i], kRows, cols), false, cols, promised_bound(types.y))
                .failure == "");
    }
  }
}

}  // namespace softmax_test
