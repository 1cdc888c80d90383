// The cases of the accuracy table: what the field reaches, and what this library must.
#include <algorithm>
#include <cstdio>
#include <string>

#include "support/catch.h"
#include "support/problem.h"

namespace softmax_test {
namespace {

struct AccuracyCase {
  const char *name;
  std::int64_t rows;
  std::int64_t cols;
  Pattern pattern;
  bool is_log;
  double ulps;  // in f32; the 16-bit types and f64 have their own
};

constexpr AccuracyCase kCases[] = {
    {"softmax 4096 x 64, sigma 1", 4096, 64, Pattern::kNormal1, false, 4},
    {"softmax 32 x 128256, sigma 10", 32, 128256, Pattern::kNormal10, false, 4},
    {"softmax 2 x 4194304, sigma 3", 2, 4194304, Pattern::kNormal3, false, 4},
    {"log-softmax 4096 x 64, sigma 1", 4096, 64, Pattern::kNormal1, true, 2},
    {"log-softmax 512 x 1000, sigma 10", 512, 1000, Pattern::kNormal10, true, 4},
    {"log-softmax 512 x 1000, confident", 512, 1000, Pattern::kConfident, true, 4},
    {"log-softmax 8 x 131072, certain", 8, 131072, Pattern::kCertain, true, 4},
};

// Rows that WARP and BLOCK take, too: the table's are mostly longer.
constexpr AccuracyCase kShorterCases[] = {
    {"softmax 256 x 1000, sigma 10", 256, 1000, Pattern::kNormal10, false, 4},
    {"softmax 32 x 8192, sigma 10", 32, 8192, Pattern::kNormal10, false, 4},
    {"softmax 64 x 4099, ascending", 64, 4099, Pattern::kAscending, false, 4},
    {"log-softmax 64 x 8192, sigma 10", 64, 8192, Pattern::kNormal10, true, 4},
    {"log-softmax 64 x 8191, confident", 64, 8191, Pattern::kConfident, true, 4},
    {"log-softmax 64 x 8192, certain", 64, 8192, Pattern::kCertain, true, 4},
};

// One line a case and type: the largest error of each algorithm, in ulp of the output.
void run_case(const AccuracyCase &c, const TypePair &types) {
  Runner runner(device());
  const Elements x = make_input(types.x, c.rows, c.cols, c.pattern, 2026);
  const Reference reference = make_reference(x, c.rows, c.cols);
  std::string line;
  for (const softmax_algo_t algo : device().algorithms_for(types.x, types.y, c.cols)) {
    // One thread a row: seconds a row.
    if (device().is_slow(algo) && c.cols > 1000000) continue;
    Problem problem;
    problem.algo = algo;
    problem.types = types;
    problem.is_log = c.is_log;
    problem.rows = c.rows;
    problem.cols = c.cols;
    Bound bound = promised_bound(types.y);
    if (types.y == SOFTMAX_DTYPE_F32) bound.ulps = c.ulps;
    double worst = 0;
    CHECK(runner.check(problem, x, reference, bound, &worst) == "");
    char text[64];
    std::snprintf(text, sizeof text, "  %s %.3f", softmax_algo_name(algo), worst);
    line += text;
  }
  std::printf("max ulp, %s, %s:%s\n", c.name, types.name, line.c_str());
}

}  // namespace

TEST_CASE("the accuracy table holds in f32", "[accuracy]") {
  for (const AccuracyCase &c : kCases) run_case(c, kTypePairs[0]);
  for (const AccuracyCase &c : kShorterCases) run_case(c, kTypePairs[0]);
}
TEST_CASE("the accuracy table holds in 16-bit types", "[accuracy]") {
  for (const AccuracyCase &c : kCases) {
    if (c.cols > 1000000) continue;  // the accumulation is f32's, which the case above covers
    run_case(c, kTypePairs[1]);
    run_case(c, kTypePairs[2]);
  }
  for (const AccuracyCase &c : kShorterCases) {
    for (const int pair : {1, 2, 4, 5}) run_case(c, kTypePairs[pair]);
  }
}
TEST_CASE("the accuracy table holds in f64", "[accuracy]") {
  for (const AccuracyCase &c : kCases) {
    if (c.cols <= 1000000) run_case(c, kTypePairs[3]);
  }
  for (const AccuracyCase &c : kShorterCases) run_case(c, kTypePairs[3]);
}

TEST_CASE("softmax of 2^24 columns is as accurate as of 64", "[accuracy][large]") {
  Runner runner(device());
  constexpr std::int64_t kCols = std::int64_t{1} << 24;
  const Elements x = make_input(SOFTMAX_DTYPE_F32, 1, kCols, Pattern::kNormal3, 24);
  const Reference reference = make_reference(x, 1, kCols);
  std::string line;
  for (const softmax_algo_t algo :
       device().algorithms_for(SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F32, kCols)) {
    if (device().is_slow(algo)) continue;  // one thread a row; 2^20 columns below
    for (const bool is_log : {false, true}) {
      Problem problem;
      problem.algo = algo;
      problem.is_log = is_log;
      problem.rows = 1;
      problem.cols = kCols;
      double worst = 0;
      CHECK(runner.check(problem, x, reference, &worst) == "");
      char text[64];
      std::snprintf(text, sizeof text, "  %s%s %.3f", is_log ? "log " : "", softmax_algo_name(algo),
                    worst);
      line += text;
    }
  }
  std::printf("max ulp, 1 x 2^24, sigma 3, f32:%s\n", line.c_str());
}

TEST_CASE("the one-thread-a-row algorithms are accurate at 2^20 columns", "[accuracy][large]") {
  Runner runner(device());
  constexpr std::int64_t kCols = std::int64_t{1} << 20;
  const Elements x = make_input(SOFTMAX_DTYPE_F32, 1, kCols, Pattern::kNormal3, 20);
  const Reference reference = make_reference(x, 1, kCols);
  for (const softmax_algo_t algo : {SOFTMAX_ALGO_NAIVE, SOFTMAX_ALGO_REFERENCE}) {
    for (const bool is_log : {false, true}) {
      Problem problem;
      problem.algo = algo;
      problem.is_log = is_log;
      problem.rows = 1;
      problem.cols = kCols;
      CHECK(runner.check(problem, x, reference) == "");
    }
  }
}

}  // namespace softmax_test
