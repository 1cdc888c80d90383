// A row's bits on the CPU depend on its values, N, the types and the algorithm alone.
#include <omp.h>

#include <cstring>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/problem.h"

namespace softmax_test {
namespace {

class Threads {
 public:
  explicit Threads(int count) : before_(omp_get_max_threads()) { omp_set_num_threads(count); }
  ~Threads() { omp_set_num_threads(before_); }
  Threads(const Threads &) = delete;
  Threads &operator=(const Threads &) = delete;

 private:
  int before_;
};

constexpr softmax_algo_t kAlgorithms[] = {SOFTMAX_ALGO_AUTO, SOFTMAX_ALGO_NAIVE,
                                          SOFTMAX_ALGO_VECTOR, SOFTMAX_ALGO_ONLINE,
                                          SOFTMAX_ALGO_REFERENCE};

bool is_slow(softmax_algo_t algo) {
  return algo == SOFTMAX_ALGO_NAIVE || algo == SOFTMAX_ALGO_REFERENCE;
}

Elements run(Runner *runner, const Problem &problem, const Elements &x) {
  std::string failure;
  Elements y = runner->run(problem, x, &failure);
  CHECK(failure == "");
  return y;
}

Elements rows_of(const Elements &all, std::int64_t cols, std::int64_t first, std::int64_t count) {
  Elements some(all.dtype, count * cols);
  const std::size_t row_bytes = some.bytes.size() / static_cast<std::size_t>(count);
  std::memcpy(some.bytes.data(), all.bytes.data() + row_bytes * static_cast<std::size_t>(first),
              some.bytes.size());
  return some;
}

// Every row's result from one call for all of them, then in calls that differ in all that must not
// matter.
void check_bits(const TypePair &types, std::int64_t rows, std::int64_t cols) {
  Runner runner(device());
  const Elements x = make_input(types.x, rows, cols, Pattern::kNormal3, 5);
  for (const softmax_algo_t algo : kAlgorithms) {
    if (is_slow(algo) && rows * cols > 200000) continue;
    for (const bool is_log : {false, true}) {
      Problem problem;
      problem.algo = algo;
      problem.types = types;
      problem.is_log = is_log;
      problem.rows = rows;
      problem.cols = cols;
      const Elements expected = [&] {
        const Threads one(1);
        return run(&runner, problem, x);
      }();
      for (const int threads : {1, 2, 3}) {
        const Threads some(threads);
        INFO(to_text(problem) << ", " << threads << " threads");
        CHECK(run(&runner, problem, x).bytes == expected.bytes);
        Problem moved = problem;
        moved.in_place = can_be_in_place(types);
        moved.x_offset = 1;
        moved.y_offset = 3;
        CHECK(run(&runner, moved, x).bytes == expected.bytes);
        // Few rows take other ways through the code than many: split over the threads, or without
        // scratch.
        for (const std::int64_t count : {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}}) {
          const std::int64_t first = rows - count;
          if (first < 0) continue;
          moved.rows = count;
          CHECK(run(&runner, moved, rows_of(x, cols, first, count)).bytes ==
                rows_of(expected, cols, first, count).bytes);
        }
      }
    }
  }
}

TEST_CASE("Bits of short rows do not depend on threads, M, alignment or place") {
  for (const TypePair &types : kTypePairs) {
    for (const std::int64_t cols : {1, 7, 16, 17, 32, 33, 100, 1000}) {
      check_bits(types, 20000 / cols + 3, cols);
    }
  }
}

TEST_CASE("Bits of long rows do not depend on threads, M, alignment or place") {
  for (const TypePair &types : kTypePairs) {
    for (const std::int64_t cols : {2047, 2049, 4097, 9001, 40000}) check_bits(types, 27, cols);
  }
}

TEST_CASE("Bits of rows beyond the cache do not depend on threads, M, alignment or place") {
  for (const TypePair &types : kTypePairs) {
    check_bits(types, 3, 300001);
    if (types.y == SOFTMAX_DTYPE_F32) check_bits(types, 2, (1 << 20) + 1);
  }
}

TEST_CASE("One row without memory to spare has the bits that it has among many") {
  // 16-bit results keep a row's terms in scratch where many rows pay for it, and compute them twice
  // where few do not.
  check_bits(kTypePairs[1], 40, 6000);
  check_bits(kTypePairs[2], 40, 6000);
}

}  // namespace
}  // namespace softmax_test
