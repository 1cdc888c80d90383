// A row's bits depend on its values, N, the types, the algorithm and the device model alone.
#include <cstring>
#include <string>

#include "support/catch.h"
#include "support/over.h"

namespace softmax_test {
namespace {

// N around what a warp, a block or a vector divides, and where a row spreads over many threads;
// whole 16-byte words in every type and in none.
constexpr std::int64_t kColumns[] = {1,    3,    31,   33,   100,  257,  512,
                                     1000, 1025, 4096, 4097, 8192, 50257};

Elements rows_of(const Elements &x, std::int64_t cols, std::int64_t first, std::int64_t rows) {
  const std::size_t bytes = static_cast<std::size_t>(cols) * format_of(x.dtype).size_bytes;
  Elements part(x.dtype, rows * cols);
  std::memcpy(part.bytes.data(), x.bytes.data() + static_cast<std::size_t>(first) * bytes,
              static_cast<std::size_t>(rows) * bytes);
  return part;
}

// Calls body(problem, x, y) for every algorithm, types and operation, with y the whole result.
template <typename Body>
void over_results(std::int64_t rows, Body body) {
  Runner runner(device());
  for (const TypePair &types : kTypePairs) {
    for (const std::int64_t cols : kColumns) {
      const Elements x = make_input(types.x, rows, cols, Pattern::kNormal3, 21);
      over_algorithms_apart(device(), types, rows, cols, [&](const Problem &problem) {
        if (device().is_slow(problem.algo) && cols > 5000 && types.x != SOFTMAX_DTYPE_F32) return;
        std::string failure;
        const Elements y = runner.run(problem, x, &failure);
        CHECK(failure == "");
        body(&runner, problem, x, y);
      });
    }
  }
}

}  // namespace

TEST_CASE("bits are the same from run to run", "[bits]") {
  over_results(3, [](Runner *runner, const Problem &problem, const Elements &x, const Elements &y) {
    std::string failure;
    for (int run = 0; run < 3; ++run) {
      const Elements again = runner->run(problem, x, &failure);
      INFO(to_text(problem) << " " << failure);
      CHECK((failure.empty() && again.bytes == y.bytes));
    }
  });
}

TEST_CASE("bits do not depend on M or on the row's position", "[bits]") {
  constexpr std::int64_t kRows = 7;
  over_results(
      kRows, [](Runner *runner, const Problem &whole, const Elements &x, const Elements &y) {
        std::string failure;
        Problem part = whole;
        for (const std::int64_t rows : {1, 2}) {
          for (std::int64_t first = 0; first + rows <= kRows; first += 3) {
            part.rows = rows;
            const Elements some = runner->run(part, rows_of(x, whole.cols, first, rows), &failure);
            INFO(to_text(part) << ", row " << first << " " << failure);
            CHECK((failure.empty() && some.bytes == rows_of(y, whole.cols, first, rows).bytes));
          }
        }
      });
}

TEST_CASE("bits do not depend on M where one row is long", "[bits][large]") {
  Runner runner(device());
  const TypePair &types = kTypePairs[0];
  constexpr std::int64_t kCols = 1000003;
  constexpr std::int64_t kRows = 3;
  const Elements x = make_input(types.x, kRows, kCols, Pattern::kNormal3, 22);
  over_algorithms_apart(device(), types, kRows, kCols, [&](const Problem &whole) {
    if (device().is_slow(whole.algo)) return;
    std::string failure;
    const Elements y = runner.run(whole, x, &failure);
    CHECK(failure == "");
    Problem part = whole;
    part.rows = 1;
    for (std::int64_t row = 0; row < kRows; ++row) {
      const Elements one = runner.run(part, rows_of(x, kCols, row, 1), &failure);
      INFO(to_text(part) << ", row " << row << " " << failure);
      CHECK((failure.empty() && one.bytes == rows_of(y, kCols, row, 1).bytes));
    }
  });
}

TEST_CASE("equal rows have equal bits in every position", "[bits]") {
  Runner runner(device());
  for (const TypePair &types : kTypePairs) {
    for (const std::int64_t cols : {5, 37, 131, 1001}) {
      constexpr std::int64_t kRows = 333;
      const Elements one = make_input(types.x, 1, cols, Pattern::kNormal3, 23);
      Elements x(types.x, kRows * cols);
      for (std::int64_t i = 0; i < kRows; ++i) {
        std::memcpy(x.bytes.data() + static_cast<std::size_t>(i) * one.bytes.size(),
                    one.bytes.data(), one.bytes.size());
      }
      over_algorithms(device(), types, kRows, cols, [&](const Problem &problem) {
        std::string failure;
        const Elements y = runner.run(problem, x, &failure);
        CHECK(failure == "");
        const Elements first = rows_of(y, cols, 0, 1);
        int different = 0;
        for (std::int64_t i = 1; i < kRows; ++i) {
          different += rows_of(y, cols, i, 1).bytes != first.bytes ? 1 : 0;
        }
        INFO(to_text(problem));
        CHECK(different == 0);
      });
    }
  }
}

// AUTO may take the one for few rows where it takes the other for many.
TEST_CASE("bits of a row do not depend on whether one block holds it or a cluster", "[bits]") {
  const auto takes = [](softmax_algo_t algo, const TypePair &types, std::int64_t cols) {
    softmax_desc_t desc;
    softmax_choice_t choice{};
    choice.struct_size = sizeof choice;
    REQUIRE(softmax_desc_init(&desc, sizeof desc, SOFTMAX_OP_SOFTMAX, types.x, 2, cols) ==
            SOFTMAX_SUCCESS);
    desc.y_dtype = types.y;
    return softmax_select(device().handle(), algo, &desc, &choice) == SOFTMAX_SUCCESS;
  };
  if (!takes(SOFTMAX_ALGO_CLUSTER, kTypePairs[0], 16384) ||
      !takes(SOFTMAX_ALGO_BLOCK, kTypePairs[0], 16384)) {
    SOFTMAX_SKIP("this device does not take both");
  }
  Runner runner(device());
  for (const TypePair &types : kTypePairs) {
    if (types.x == SOFTMAX_DTYPE_F64) continue;  // threads hold less of a row in a cluster
    for (const std::int64_t cols : {8193, 12289, 16384, 24577, 32768, 65535, 65536}) {
      if (!takes(SOFTMAX_ALGO_BLOCK, types, cols)) continue;
      // Threads hold less of such rows in a block, and AUTO takes no cluster for them.
      if (format_of(types.x).size_bytes == 2 && cols % 8 != 0 && cols <= 16384) continue;
      const Elements x = make_input(types.x, 2, cols, Pattern::kNormal3, 24);
      for (const bool is_log : {false, true}) {
        Problem problem;
        problem.types = types;
        problem.is_log = is_log;
        problem.rows = 2;
        problem.cols = cols;
        std::string failure;
        problem.algo = SOFTMAX_ALGO_CLUSTER;
        const Elements by_cluster = runner.run(problem, x, &failure);
        CHECK(failure == "");
        problem.algo = SOFTMAX_ALGO_BLOCK;
        const Elements by_block = runner.run(problem, x, &failure);
        INFO(to_text(problem) << " " << failure);
        CHECK((failure.empty() && by_block.bytes == by_cluster.bytes));
      }
    }
  }
}

// How many blocks share a row follows M in GRID.
TEST_CASE("bits of a long row do not depend on how many blocks share it out", "[bits]") {
  Runner runner(device());
  bool is_taken = false;
  for (const TypePair &types : kTypePairs) {
    for (const std::int64_t cols : {16385, 65536, 131071, 262144}) {
      const Elements x = make_input(types.x, 6, cols, Pattern::kNormal3, 24);
      for (const softmax_algo_t algo : device().algorithms_for(types.x, types.y, cols)) {
        if (algo != SOFTMAX_ALGO_CLUSTER && algo != SOFTMAX_ALGO_GRID) continue;
        is_taken = true;
        for (const bool is_log : {false, true}) {
          Problem problem;
          problem.algo = algo;
          problem.types = types;
          problem.is_log = is_log;
          problem.rows = 6;
          problem.cols = cols;
          std::string failure;
          const Elements many = runner.run(problem, x, &failure);
          CHECK(failure == "");
          problem.rows = 1;
          for (std::int64_t i = 0; i < 6; ++i) {
            const Elements one = runner.run(problem, rows_of(x, cols, i, 1), &failure);
            INFO(to_text(problem) << " " << failure);
            CHECK((failure.empty() && one.bytes == rows_of(many, cols, i, 1).bytes));
          }
        }
      }
    }
  }
  if (!is_taken) SOFTMAX_SKIP("this device takes neither CLUSTER nor GRID");
}

TEST_CASE("bits do not depend on alignment", "[bits]") {
  over_results(3, [](Runner *runner, const Problem &aligned, const Elements &x, const Elements &y) {
    std::string failure;
    Problem shifted = aligned;
    for (const int offset : {1, 2, 3, 4, 7}) {
      shifted.x_offset = offset;
      shifted.y_offset = 8 - offset;
      const Elements again = runner->run(shifted, x, &failure);
      INFO(to_text(shifted) << " " << failure);
      CHECK((failure.empty() && again.bytes == y.bytes));
    }
  });
}

TEST_CASE("bits do not depend on the entry point", "[bits]") {
  over_results(3, [](Runner *runner, const Problem &flat, const Elements &x, const Elements &y) {
    std::string failure;
    Problem general = flat;
    general.entry = Entry::kExecute;
    const Elements again = runner->run(general, x, &failure);
    INFO(to_text(general) << " " << failure);
    CHECK((failure.empty() && again.bytes == y.bytes));
  });
}

// On CUDA a graph that is replayed; on the CPU another number of threads.
TEST_CASE("bits do not depend on graph replay or the number of threads", "[bits]") {
  over_results(3, [](Runner *runner, const Problem &problem, const Elements &x, const Elements &y) {
    std::string failure;
    const Elements again = runner->run(problem, x, &failure, true);
    INFO(to_text(problem) << " " << failure);
    CHECK((failure.empty() && again.bytes == y.bytes));
  });
}

}  // namespace softmax_test
