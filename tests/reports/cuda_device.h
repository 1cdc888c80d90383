// A CUDA device as the reports use it.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

#include "device.h"

namespace reports {

// For what must not fail if the test is to mean anything.
inline void must(cudaError_t error) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(error));
}

class CudaDevice : public Device {
 public:
  explicit CudaDevice(std::int32_t ordinal);
  ~CudaDevice() override;

  const char *name() const override { return "cuda"; }
  bool is_cuda() const override { return true; }
  std::int32_t ordinal() const override { return ordinal_; }
  softmax_stream_t stream() const override { return stream_; }
  std::int64_t limit_for(const Entry &) const override { return std::int64_t{1} << 24; }
  std::int64_t unchecked_limit_for(const Entry &) const override { return std::int64_t{1} << 30; }
  bool affords(softmax_algo_t algo, std::int64_t columns) const override {
    const bool one_thread = algo == SOFTMAX_ALGO_NAIVE || algo == SOFTMAX_ALGO_REFERENCE;
    return !one_thread || columns <= (std::int64_t{1} << 19);
  }

  void *allocate(std::size_t bytes) override;
  void release(void *memory) override;
  void write(void *to, const void *from, std::size_t bytes) override;
  void read(void *to, const void *from, std::size_t bytes) override;
  void fill(void *to, int byte, std::size_t bytes) override;
  using Device::finish;
  std::string finish(softmax_stream_t stream) override;
  softmax_stream_t open_stream() override;
  void close_stream(softmax_stream_t stream) override;
  void generate(void *to, const Input &input) override;
  void compare(const void *a, const void *b, std::size_t bytes) override;
  std::int64_t differences() override;
  void disturb() override;

  unsigned long long *counter() const { return counter_; }

 private:
  const std::int32_t ordinal_;
  cudaStream_t stream_ = nullptr;
  cudaStream_t other_ = nullptr;  // disturb()'s
  unsigned long long *counter_ = nullptr;
  float *sink_ = nullptr;

  // Freed blocks by size: a cudaMalloc for each of some 10^4 buffers would be most of the time.
  std::mutex mutex_;
  std::map<void *, std::size_t> sizes_;
  std::multimap<std::size_t, void *> free_;
};

// The number of usable devices; 0 without a driver.
int cuda_devices();

}  // namespace reports
