// A device chosen by name, and softmax over rows in host memory on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "device_memory.h"
#include "dtype.h"
#include "softmax.h"

namespace tool {

// "auto", "cpu" or "cuda:K" as softmax_create takes it; fails on anything else.
std::int32_t device_from_name(const std::string &name);

softmax_algo_t algo_from_name(const std::string &name);

// A handle, freed at the end.
class Device {
 public:
  explicit Device(std::int32_t device);
  ~Device() { softmax_destroy(handle_); }
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  softmax_handle_t handle() const { return handle_; }
  bool is_cuda() const { return ordinal_ >= 0; }
  std::string description() const;

 private:
  softmax_handle_t handle_ = nullptr;
  std::int32_t ordinal_ = SOFTMAX_DEVICE_CPU;
};

// What to compute, without the rows.
struct Operation {
  softmax_algo_t algo = SOFTMAX_ALGO_AUTO;
  bool is_log = false;
  const Dtype *x_dtype = nullptr;
  const Dtype *y_dtype = nullptr;
};

// Enqueues it on memory of the device; on the CPU it is done when this returns.
void enqueue_softmax(const Device &device, const Operation &operation, const void *x, void *y,
                     std::int64_t rows, std::int64_t cols, softmax_stream_t stream);

// Computes blocks of rows that lie in host memory, wherever the device's own memory is.
class RowComputer {
 public:
  // For blocks of at most max_elements. Fails where the device cannot do the operation at all.
  RowComputer(const Device &device, const Operation &operation, std::int64_t max_elements);

  // x and y may be the same buffer if their types are.
  void compute(const void *x, void *y, std::int64_t rows, std::int64_t cols);

 private:
  const Device &device_;
  const Operation operation_;
  std::optional<DeviceBuffer> x_, y_;  // on a CUDA device
};

}  // namespace tool
