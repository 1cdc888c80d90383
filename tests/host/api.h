// Small helpers of the interface tests.
#pragma once

#include <cstring>
#include <string>

#include "softmax.h"
#include "support/catch.h"

namespace softmax_test {

inline std::string last_error() {
  char text[1024];
  softmax_last_error(text, sizeof text);
  return text;
}

// A CPU handle that frees itself.
class CpuHandle {
 public:
  CpuHandle() { REQUIRE(softmax_create(&handle_, SOFTMAX_DEVICE_CPU) == SOFTMAX_SUCCESS); }
  ~CpuHandle() { softmax_destroy(handle_); }
  CpuHandle(const CpuHandle &) = delete;
  CpuHandle &operator=(const CpuHandle &) = delete;
  operator softmax_handle_t() const { return handle_; }

 private:
  softmax_handle_t handle_ = nullptr;
};

inline softmax_desc_t make_desc(int64_t rows = 4, int64_t cols = 25,
                                int32_t op = SOFTMAX_OP_SOFTMAX,
                                softmax_dtype_t dtype = SOFTMAX_DTYPE_F32) {
  softmax_desc_t desc;
  REQUIRE(softmax_desc_init(&desc, sizeof desc, op, dtype, rows, cols) == SOFTMAX_SUCCESS);
  return desc;
}

inline softmax_args_t make_args(const void *x, void *y) {
  softmax_args_t args;
  std::memset(&args, 0, sizeof args);
  args.struct_size = sizeof args;
  args.x = x;
  args.y = y;
  return args;
}

// Every algorithm number that has a name.
constexpr softmax_algo_t kEveryAlgorithm[] = {
    SOFTMAX_ALGO_AUTO,   SOFTMAX_ALGO_NAIVE,    SOFTMAX_ALGO_SHARED,      SOFTMAX_ALGO_SHUFFLE,
    SOFTMAX_ALGO_VECTOR, SOFTMAX_ALGO_ONLINE,   SOFTMAX_ALGO_WARP_ONLINE, SOFTMAX_ALGO_WARP,
    SOFTMAX_ALGO_BLOCK,  SOFTMAX_ALGO_TILE,     SOFTMAX_ALGO_CLUSTER,     SOFTMAX_ALGO_GRID,
    SOFTMAX_ALGO_COLUMN, SOFTMAX_ALGO_REFERENCE};

}  // namespace softmax_test
