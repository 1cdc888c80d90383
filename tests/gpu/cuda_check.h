// CUDA for the tests: calls that must succeed, streams, events and graphs that free themselves.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "softmax.h"

namespace softmax_test {

// For the tests' own CUDA calls: nothing after a failed one means anything.
inline void must_at(cudaError_t error, const char *call, const char *file, int line) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, cudaGetErrorString(error));
  std::fflush(nullptr);
  std::_Exit(3);
}
#define must(call) softmax_test::must_at((call), #call, __FILE__, __LINE__)

inline std::string last_error() {
  char text[512];
  softmax_last_error(text, sizeof text);
  return text;
}

class Stream {
 public:
  explicit Stream(unsigned flags = cudaStreamNonBlocking) {
    must(cudaStreamCreateWithFlags(&stream_, flags));
  }
  ~Stream() { must(cudaStreamDestroy(stream_)); }
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;
  operator cudaStream_t() const { return stream_; }
  void synchronize() const { must(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

// One captured call.
class Graph {
 public:
  Graph() = default;
  ~Graph() {
    if (executable_ != nullptr) must(cudaGraphExecDestroy(executable_));
  }
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;

  softmax_status_t capture(cudaStream_t stream, const std::function<softmax_status_t()> &call,
                           cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
    cudaGraph_t graph = nullptr;
    must(cudaStreamBeginCapture(stream, mode));
    const softmax_status_t status = call();
    must(cudaStreamEndCapture(stream, &graph));
    must(cudaGraphInstantiate(&executable_, graph, 0));
    must(cudaGraphDestroy(graph));
    return status;
  }
  void launch(cudaStream_t stream) const { must(cudaGraphLaunch(executable_, stream)); }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

// From ordinary memory, and there on return: cudaMemcpy returns when it has read all of it, and
// what other streams do then may come first.
inline void to_device(void *to, const void *from, std::size_t bytes) {
  must(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
  must(cudaStreamSynchronize(cudaStreamLegacy));
}
// Fills `bytes` at `memory` with copies of the first `filled` bytes, there on return.
inline void repeat_on_device(unsigned char *memory, std::size_t filled, std::size_t bytes) {
  while (filled < bytes) {
    const std::size_t step = filled < bytes - filled ? filled : bytes - filled;
    must(cudaMemcpy(memory + filled, memory, step, cudaMemcpyDeviceToDevice));
    filled += step;
  }
  must(cudaStreamSynchronize(cudaStreamLegacy));
}

// Device memory for floats.
class DeviceFloats {
 public:
  explicit DeviceFloats(std::int64_t count) : bytes_(static_cast<std::size_t>(count) * 4) {
    must(cudaMalloc(&memory_, bytes_));
  }
  ~DeviceFloats() { must(cudaFree(memory_)); }
  DeviceFloats(const DeviceFloats &) = delete;
  DeviceFloats &operator=(const DeviceFloats &) = delete;
  float *data() const { return static_cast<float *>(memory_); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  void *memory_ = nullptr;
};

}  // namespace softmax_test
