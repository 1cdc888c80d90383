// See device_memory.h.
#include "device_memory.h"

#include "error.h"

#if defined(SOFTMAX_TOOL_WITH_CUDA)

#include <cuda_runtime_api.h>

#include <algorithm>
#include <vector>

namespace tool {
namespace {

void check_cuda(cudaError_t error, const char *what) {
  if (error != cudaSuccess) fail_run("{}: {}", what, cudaGetErrorString(error));
}

struct Stream {
  cudaStream_t stream = nullptr;
  Stream() { check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "new stream"); }
  ~Stream() { cudaStreamDestroy(stream); }
};

struct Event {
  cudaEvent_t event = nullptr;
  Event() { check_cuda(cudaEventCreate(&event), "new event"); }
  ~Event() { cudaEventDestroy(event); }
};

struct Graph {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ~Graph() {
    if (exec != nullptr) cudaGraphExecDestroy(exec);
    if (graph != nullptr) cudaGraphDestroy(graph);
  }
};

}  // namespace

void use_cuda_device(int ordinal) { check_cuda(cudaSetDevice(ordinal), "choosing the GPU"); }

DeviceLimits device_limits() {
  int device = 0, l2 = 0;
  std::size_t free_bytes = 0, total_bytes = 0;
  check_cuda(cudaGetDevice(&device), "asking for the GPU");
  check_cuda(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device), "asking for the L2 size");
  check_cuda(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for the free memory");
  return {static_cast<std::size_t>(l2), free_bytes};
}

DeviceBuffer::DeviceBuffer(std::size_t bytes) {
  check_cuda(cudaMalloc(&data_, bytes), "allocating device memory");
}

DeviceBuffer::~DeviceBuffer() { cudaFree(data_); }

void DeviceBuffer::upload(const void *from, std::size_t bytes) {
  check_cuda(cudaMemcpy(data_, from, bytes, cudaMemcpyHostToDevice), "copying to the GPU");
}

void DeviceBuffer::download(void *to, std::size_t bytes) const {
  check_cuda(cudaMemcpy(to, data_, bytes, cudaMemcpyDeviceToHost), "copying from the GPU");
}

void copy_on_device(void *to, const void *from, std::size_t bytes, softmax_stream_t stream) {
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream),
             "copying on the GPU");
}

double time_on_device(int launches, int repeats,
                      const std::function<void(int, softmax_stream_t)> &enqueue) {
  Stream s;
  Event begin, end;
  Graph g;
  check_cuda(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeThreadLocal), "capturing");
  try {
    for (int i = 0; i < launches; ++i) enqueue(i, s.stream);
  } catch (...) {
    cudaStreamEndCapture(s.stream, &g.graph);
    throw;
  }
  check_cuda(cudaStreamEndCapture(s.stream, &g.graph), "capturing");
  check_cuda(cudaGraphInstantiateWithFlags(&g.exec, g.graph, 0), "making the graph");
  std::vector<double> seconds;
  for (int i = -1; i < repeats; ++i) {  // run -1 warms up
    float milliseconds = 0;
    check_cuda(cudaEventRecord(begin.event, s.stream), "timing");
    check_cuda(cudaGraphLaunch(g.exec, s.stream), "running the graph");
    check_cuda(cudaEventRecord(end.event, s.stream), "timing");
    check_cuda(cudaEventSynchronize(end.event), "running the graph");
    check_cuda(cudaEventElapsedTime(&milliseconds, begin.event, end.event), "timing");
    if (i >= 0) seconds.push_back(milliseconds * 1e-3 / launches);
  }
  std::nth_element(seconds.begin(), seconds.begin() + repeats / 2, seconds.end());
  return seconds[repeats / 2];
}

}  // namespace tool

#else  // without CUDA

namespace tool {
namespace {
[[noreturn]] void no_cuda() { fail_run("this softmax program was built without CUDA"); }
}  // namespace

void use_cuda_device(int) { no_cuda(); }
DeviceLimits device_limits() { no_cuda(); }
DeviceBuffer::DeviceBuffer(std::size_t) { no_cuda(); }
DeviceBuffer::~DeviceBuffer() {}
void DeviceBuffer::upload(const void *, std::size_t) { no_cuda(); }
void DeviceBuffer::download(void *, std::size_t) const { no_cuda(); }
void copy_on_device(void *, const void *, std::size_t, softmax_stream_t) { no_cuda(); }
double time_on_device(int, int, const std::function<void(int, softmax_stream_t)> &) { no_cuda(); }

}  // namespace tool

#endif
