// Calls of the general call by hand: arrays in device memory, and short ways to a descriptor.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "gpu/cuda_check.h"
#include "support/device.h"

namespace softmax_test {

// An array in device memory.
template <typename T>
class Array {
 public:
  explicit Array(const std::vector<T> &values) : count_(values.size()) {
    must(cudaMalloc(&memory_, count_ * sizeof(T)));
    to_device(memory_, values.data(), count_ * sizeof(T));
  }
  Array(std::size_t count, T value) : Array(std::vector<T>(count, value)) {}
  ~Array() { must(cudaFree(memory_)); }
  Array(const Array &) = delete;
  Array &operator=(const Array &) = delete;
  T *data() const { return static_cast<T *>(memory_); }
  std::vector<T> get() const {
    std::vector<T> values(count_);
    must(cudaDeviceSynchronize());
    must(cudaMemcpy(values.data(), memory_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  std::size_t count_;
  void *memory_ = nullptr;
};

inline softmax_desc_t matrix(std::int64_t rows, std::int64_t cols,
                             int32_t op = SOFTMAX_OP_SOFTMAX) {
  softmax_desc_t desc;
  softmax_desc_init(&desc, sizeof desc, op, SOFTMAX_DTYPE_F32, rows, cols);
  return desc;
}

inline softmax_args_t no_args() {
  softmax_args_t args = {};
  args.struct_size = sizeof args;
  return args;
}

inline softmax_status_t execute(const softmax_desc_t &desc, const softmax_args_t &args,
                                softmax_algo_t algo = SOFTMAX_ALGO_AUTO) {
  return softmax_execute(device().handle(), algo, &desc, &args, device().stream());
}

inline std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>((i * 37 % 101) * 0.07);
  return values;
}

}  // namespace softmax_test
