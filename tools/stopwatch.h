// Times softmax and a plain copy of the same bytes, on the CPU or on a CUDA device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device.h"

namespace tool {

// Buffers for one shape, filled with random logits, and the timing of calls on them.
class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  // Computes once, out of place.
  virtual void run_once(const Operation &operation) = 0;
  // The input and the last run_once's output, in host memory.
  virtual const void *host_x() = 0;
  virtual const void *host_y() = 0;
  // Median seconds of one call.
  virtual double time_softmax(const Operation &operation) = 0;
  virtual double time_copy() = 0;
  // How time_copy copied: "parallel memcpy, 2 threads".
  virtual std::string copy_method() const = 0;
};

// min_seconds is how long each measurement goes on at least.
std::unique_ptr<Stopwatch> make_stopwatch(const Device &device, const Dtype &dtype,
                                          std::int64_t rows, std::int64_t cols, double min_seconds);

}  // namespace tool
