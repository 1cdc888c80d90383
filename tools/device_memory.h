// Memory, copies and timing on a CUDA device: all that the program itself asks of the CUDA runtime.
// In a build without CUDA there is never a CUDA handle, and every function here fails.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include "softmax.h"

namespace tool {

// Makes the device current for the calling thread.
void use_cuda_device(int ordinal);

struct DeviceLimits {
  std::size_t l2_bytes;
  std::size_t free_bytes;
};
DeviceLimits device_limits();  // of the current device

// Device memory. Copies are complete when the call returns, and see all work enqueued before.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer &&other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  DeviceBuffer &operator=(DeviceBuffer &&) = delete;

  void *data() const { return data_; }
  void upload(const void *from, std::size_t bytes);
  void download(void *to, std::size_t bytes) const;

 private:
  void *data_ = nullptr;
};

// Enqueues a copy within the device's memory.
void copy_on_device(void *to, const void *from, std::size_t bytes, softmax_stream_t stream);

// Seconds that one launch takes: `launches` calls of enqueue(i, stream) are captured into a graph,
// which is run `repeats` times between events; the median run, divided by `launches`.
double time_on_device(int launches, int repeats,
                      const std::function<void(int, softmax_stream_t)> &enqueue);

}  // namespace tool
