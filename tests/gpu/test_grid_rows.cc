// GRID for many rows, and CLUSTER where teams that are no clusters take them, whose next ones are
// on their way while a row's parts meet: the bits are those of few rows, wherever a row's runs wait
// meanwhile.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "gpu/cuda_check.h"
#include "support/catch.h"
#include "support/problem.h"

namespace softmax_test {
namespace {

constexpr std::int64_t kFew = 3;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A multiple of a run's columns in every type, and so many runs as make `slabs` slabs of 64 KB, or
// of 32 KB where results are wider.
std::int64_t cols_of_slabs(const TypePair &types, std::int64_t slabs) {
  const std::int64_t size = format_of(types.x).size_bytes;
  const bool has_half = size == 8 || format_of(types.y).size_bytes > size;
  return slabs * ((std::int64_t{1} << (has_half ? 15 : 16)) / size);
}

Elements rows_of(const Elements &x, std::int64_t cols, std::int64_t first, std::int64_t rows) {
  Elements part(x.dtype, rows * cols);
  const auto bytes = static_cast<std::ptrdiff_t>(part.bytes.size());
  std::copy_n(x.bytes.begin() + first * (bytes / rows), bytes, part.bytes.begin());
  return part;
}

// All rows by the kernel for many, then the first and the last few by the one for few: both
// operations, apart and in place, aligned and one element off.
void check_many(Runner &runner, const TypePair &types, std::int64_t cols, const Elements &x,
                std::int64_t rows, softmax_algo_t algo = SOFTMAX_ALGO_GRID, int ways = 4) {
  for (const bool is_log : {false, true}) {
    if (ways == 1 && is_log) continue;
    Problem problem;
    problem.algo = algo;
    problem.types = types;
    problem.is_log = is_log;
    problem.cols = cols;
    problem.rows = kFew;
    std::string failure;
    const Elements first = runner.run(problem, rows_of(x, cols, 0, kFew), &failure);
    CHECK(failure == "");
    const Elements last = runner.run(problem, rows_of(x, cols, rows - kFew, kFew), &failure);
    CHECK(failure == "");
    problem.rows = rows;
    for (int way = 0; way < ways; ++way) {
      problem.x_offset = way % 2;
      problem.y_offset = way == 1 ? 1 : 0;
      problem.in_place = way > 1;
      if (problem.in_place && !can_be_in_place(types)) continue;
      const Elements y = runner.run(problem, x, &failure);
      INFO(to_text(problem) << " " << failure);
      CHECK((failure.empty() && rows_of(y, cols, 0, kFew).bytes == first.bytes));
      CHECK((failure.empty() && rows_of(y, cols, rows - kFew, kFew).bytes == last.bytes));
    }
  }
}

// A device whose table says which row lengths take teams.
bool has_measured_shapes() {
  cudaDeviceProp properties;
  must(cudaGetDeviceProperties(&properties, 0));
  return properties.major == 9 && properties.minor == 0 && properties.multiProcessorCount == 132;
}

bool takes_teams(const TypePair &types, std::int64_t rows, std::int64_t cols) {
  softmax_desc_t desc;
  softmax_desc_init(&desc, sizeof desc, SOFTMAX_OP_SOFTMAX, types.x, rows, cols);
  desc.y_dtype = types.y;
  softmax_choice_t choice = {};
  choice.struct_size = sizeof choice;
  return softmax_select(device().handle(), SOFTMAX_ALGO_CLUSTER, &desc, &choice) ==
             SOFTMAX_SUCCESS &&
         choice.cluster == 0 && choice.stages > 2 && choice.workspace_bytes > 0;
}

// Two for every team at least, and more for some of them.
std::int64_t many_rows(const TypePair &types, std::int64_t cols) {
  const std::int64_t many = device().least_many_rows(SOFTMAX_ALGO_GRID, types.x, types.y, cols);
  return many < 8 ? many : 2 * many + 3;
}

}  // namespace

TEST_CASE("GRID gives many rows the bits of few", "[bulk][bits]") {
  if (!device().has_bulk_copies()) SOFTMAX_SKIP("this device has no bulk copies");
  Runner runner(device());
  for (const int pair : {0, 2, 5}) {  // f32, bf16, bf16 to f32
    const TypePair &types = kTypePairs[pair];
    for (const std::int64_t cols : {300001, 524288, 1048576}) {
      const std::int64_t rows = many_rows(types, cols);
      const Elements x = make_input(types.x, rows, cols, Pattern::kNormal3, 92);
      check_many(runner, types, cols, x, rows);
    }
  }
}

TEST_CASE("rows of GRID have their bits when all that is used in turn is used again",
          "[bulk][bits]") {
  // Eight rows' messages are most of it: ten rows and more for each of four teams and of one.
  if (!device().has_bulk_copies()) SOFTMAX_SKIP("this device has no bulk copies");
  Runner runner(device());
  const struct { std::int64_t cols, rows; } cases[] = {{524288, 43}, {2000003, 11}};
  for (const auto &c : cases) {
    const Elements x = make_input(kTypePairs[0].x, c.rows, c.cols, Pattern::kNormal3, 97);
    check_many(runner, kTypePairs[0], c.cols, x, c.rows, SOFTMAX_ALGO_GRID, 1);
  }
}

TEST_CASE("CLUSTER gives many rows the bits of few where it has teams for clusters",
          "[bulk][bits]") {
  if (!device().has_bulk_copies()) SOFTMAX_SKIP("this device has no bulk copies");
  Runner runner(device());
  // Numbers of runs with which all slabs are full, with which the last one lacks some, and with
  // which its last run is a column.
  const struct {
    int pair;
    std::int64_t cols;
  } cases[] = {{0, 85000}, {0, 204801}, {2, 151936}, {2, 97919}, {5, 203201}};
  for (const auto &c : cases) {
    const TypePair &types = kTypePairs[c.pair];
    const std::int64_t many =
        device().least_many_rows(SOFTMAX_ALGO_CLUSTER, types.x, types.y, c.cols);
    const std::int64_t rows = many + 1;
    INFO(c.cols << " columns");
    CHECK((!has_measured_shapes() || takes_teams(types, rows, c.cols)));
    const Elements x = make_input(types.x, rows, c.cols, Pattern::kNormal3, 96);
    check_many(runner, types, c.cols, x, rows, SOFTMAX_ALGO_CLUSTER, 2);
  }
}

TEST_CASE("CLUSTER gives many rows with wider results the bits of few", "[bulk][bits]") {
  if (!device().has_bulk_copies()) SOFTMAX_SKIP("this device has no bulk copies");
  Runner runner(device());
  const TypePair &types = kTypePairs[5];
  // On an H200 clusters of 3, 2, 6, 8, 10 and 16 blocks; then odd lengths.
  for (const std::int64_t cols :
       {16392, 20480, 24576, 32768, 100352, 128256, 20481, 32769, 50257, 100353}) {
    const std::int64_t rows =
        device().least_many_rows(SOFTMAX_ALGO_CLUSTER, types.x, types.y, cols) + 3;
    const Elements x = make_input(types.x, rows, cols, Pattern::kNormal10, 98);
    check_many(runner, types, cols, x, rows, SOFTMAX_ALGO_CLUSTER, 2);
  }
}

TEST_CASE("GRID gives the same bits whatever slabs of a row a block has", "[bulk][bits]") {
  // On 132 multiprocessors: 24 blocks of three slabs or two, 128 of two or but one, 100 of four, of
  // which one is read again. Odd lengths end in an incomplete run. With a slab a block 19, and 130
  // whose parts one warp does not merge alone.
  if (!device().has_bulk_copies()) SOFTMAX_SKIP("this device has no bulk copies");
  Runner runner(device());
  const struct {
    int pair;
    std::int64_t slabs;
  } cases[] = {{0, 19}, {0, 70}, {0, 130}, {0, 397}, {2, 19}, {2, 255}};
  for (const auto &c : cases) {
    const TypePair &types = kTypePairs[c.pair];
    const std::int64_t cols = cols_of_slabs(types, c.slabs) - (c.slabs % 4 == 0 ? 0 : 5001);
    const std::int64_t rows = many_rows(types, cols);
    const Elements x = make_input(types.x, rows, cols, Pattern::kNormal10, 93);
    check_many(runner, types, cols, x, rows);
  }
}

TEST_CASE("special values in rows of GRID decide among many as they do in one", "[bulk][edge]") {
  if (!device().has_bulk_copies()) SOFTMAX_SKIP("this device has no bulk copies");
  Runner runner(device());
  // A slab a block, and on 132 multiprocessors three.
  const struct {
    int pair;
    std::int64_t slabs;
  } cases[] = {{0, 19}, {2, 70}, {5, 19}};
  for (const auto &c : cases) {
    const TypePair &types = kTypePairs[c.pair];
    const std::int64_t cols = cols_of_slabs(types, c.slabs) - 7;
    const std::int64_t rows = std::max<std::int64_t>(many_rows(types, cols), 12);
    Elements x = make_input(types.x, rows, cols, Pattern::kNormal3, 94);
    const auto put = [&](std::int64_t row, std::int64_t begin, std::int64_t end, double value) {
      for (std::int64_t j = begin; j < end; ++j) x.set(row * cols + j, value);
    };
    put(0, cols / 2, cols / 2 + 1, std::nan(""));
    put(1, 0, cols, -kInfinity);
    put(2, cols - 1, cols, std::nan(""));
    put(3, 0, 1, kInfinity);
    put(4, 0, cols - 1, -kInfinity);                      // all but the last
    put(5, cols / 3, cols, -kInfinity);                   // slabs of nothing else
    put(rows - 3, 0, cols, -kInfinity);                   // after rows that are not empty
    put(rows - 2, cols / 4, cols / 4 + 1, std::nan(""));  // and one after that
    for (const bool empty_is_zero : {false, true}) {
      const Reference reference = make_reference(x, rows, cols, empty_is_zero);
      for (const bool is_log : {false, true}) {
        Problem problem;
        problem.algo = SOFTMAX_ALGO_GRID;
        problem.types = types;
        problem.is_log = is_log;
        problem.rows = rows;
        problem.cols = cols;
        problem.empty_is_zero = empty_is_zero;
        problem.x_offset = is_log ? 1 : 0;
        problem.in_place = empty_is_zero && can_be_in_place(types);
        CHECK(runner.check(problem, x, reference) == "");
      }
    }
  }
}

TEST_CASE("one call of GRID after another finds no message of the one before", "[bulk][streams]") {
  // In the same memory: a part that is taken for the coming row's would show in the row's sum.
  if (!device().has_bulk_copies()) SOFTMAX_SKIP("this device has no bulk copies");
  Runner runner(device());
  const TypePair &types = kTypePairs[0];
  const std::int64_t cols = 1048576;
  const std::int64_t rows = many_rows(types, cols);
  Problem problem;
  problem.algo = SOFTMAX_ALGO_GRID;
  problem.types = types;
  problem.rows = rows;
  problem.cols = cols;
  const Elements inputs[2] = {make_input(types.x, rows, cols, Pattern::kNormal3, 95),
                              make_input(types.x, rows, cols, Pattern::kNormal10, 96)};
  std::string failure;
  const Elements expected[2] = {runner.run(problem, inputs[0], &failure),
                                runner.run(problem, inputs[1], &failure)};
  CHECK(runner.check(problem, inputs[0], make_reference(inputs[0], rows, cols)) == "");
  for (int call = 0; call < 20; ++call) {
    const Elements y = runner.run(problem, inputs[call % 2], &failure, call % 4 == 3);
    INFO("call " << call << " " << failure);
    CHECK((failure.empty() && y.bytes == expected[call % 2].bytes));
  }
}

}  // namespace softmax_test
