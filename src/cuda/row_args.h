// The one argument of every row kernel, as host and device see it.
#pragma once

#include <cstdint>

namespace softmax {

// Offsets are 64-bit throughout.
struct RowArgs {
  const void *x;
  void *y;
  std::int64_t rows;
  std::int64_t cols;
  bool is_log;
  bool empty_is_zero;
};

}  // namespace softmax
