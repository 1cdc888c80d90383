// The device under test of the GPU program: a CUDA handle, CUDA memory and a stream of its own.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <string>

#include "gpu/cuda_check.h"
#include "support/device.h"
#include "support/program.h"

namespace softmax_test {
namespace {

class CudaDevice : public Device {
 public:
  CudaDevice() {
    must(cudaSetDevice(0));
    int major = 0, minor = 0;
    must(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    must(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
    compute_capability_ = 10 * major + minor;
    must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    if (softmax_create(&handle_, 0) != SOFTMAX_SUCCESS) {
      std::fprintf(stderr, "softmax_create: %s\n", last_error().c_str());
      std::exit(1);
    }
  }

  bool is_cuda() const override { return true; }
  int compute_capability() const override { return compute_capability_; }
  softmax_handle_t handle() override { return handle_; }
  softmax_stream_t stream() override { return stream_; }
  void *allocate(std::size_t bytes) override {
    void *memory = nullptr;
    if (cudaMalloc(&memory, bytes) == cudaSuccess) return memory;
    cudaGetLastError();  // out of memory is an answer here
    return nullptr;
  }
  void release(void *memory) override { must(cudaFree(memory)); }
  void upload(void *to, const void *from, std::size_t bytes) override {
    must(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_));
    must(cudaStreamSynchronize(stream_));
  }
  void download(void *to, const void *from, std::size_t bytes) override {
    must(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_));
    must(cudaStreamSynchronize(stream_));
  }
  void fill(void *to, int byte, std::size_t bytes) override {
    must(cudaMemsetAsync(to, byte, bytes, stream_));
    must(cudaStreamSynchronize(stream_));
  }
  void copy(void *to, const void *from, std::size_t bytes) override {
    must(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_));
    must(cudaStreamSynchronize(stream_));
  }
  std::size_t free_bytes() override {
    std::size_t available = 0, total = 0;
    must(cudaMemGetInfo(&available, &total));
    return available;
  }
  // Captures the call and replays it three times. In place, the second replay would work on the
  // first one's output, so the caller's problem must be out of place.
  softmax_status_t run_otherwise(const std::function<softmax_status_t()> &call) override {
    Graph graph;
    const softmax_status_t status = graph.capture(stream_, call);
    if (status != SOFTMAX_SUCCESS) return status;
    for (int replay = 0; replay < 3; ++replay) graph.launch(stream_);
    must(cudaStreamSynchronize(stream_));
    return status;
  }

 private:
  int compute_capability_ = 0;
  softmax_handle_t handle_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

}  // namespace

Device &device() {
  // Lives to the end of the process, as the driver does.
  static CudaDevice &the_device = *new CudaDevice;
  return the_device;
}

std::string what_is_missing() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return "";
  cudaGetLastError();
  return std::string("no CUDA device (") + cudaGetErrorString(error) + ")";
}

}  // namespace softmax_test
