// The ladder's command line.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "softmax.h"

namespace bench {

struct Options {
  bool quick = false;
  bool profile = false;
  bool info = false;
  bool help = false;
  int device = 0;
  std::string json;
  // Cells of the caller's choice instead of the ladder's own, where cols are given.
  std::vector<std::int64_t> cols;
  std::vector<std::int64_t> rows;  // empty: cold, as many rows as make 2^26 elements
  std::vector<softmax_dtype_t> dtypes = {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_BF16};
  std::vector<softmax_algo_t> algos;
};

extern const char kUsage[];

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Options parse(int argc, char **argv);

}  // namespace bench
