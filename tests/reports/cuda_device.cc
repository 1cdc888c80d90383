// The CUDA device of the reports. See cuda_device.h.
#include "cuda_device.h"

#include <new>

#include "cuda_tools.h"
#include "element.h"

namespace reports {
namespace {

constexpr std::size_t kLeastBlock = std::size_t{1} << 16;
constexpr std::size_t kMostKept = std::size_t{1} << 27;

std::size_t block_for(std::size_t bytes) {
  std::size_t block = kLeastBlock;
  while (block < bytes) block *= 2;
  return block;
}

}  // namespace

CudaDevice::CudaDevice(std::int32_t ordinal) : ordinal_(ordinal) {
  must(cudaSetDevice(ordinal));
  must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  must(cudaStreamCreateWithFlags(&other_, cudaStreamNonBlocking));
  void *memory = nullptr;
  must(cudaMalloc(&memory, sizeof *counter_));
  counter_ = static_cast<unsigned long long *>(memory);
  must(cudaMemset(counter_, 0, sizeof *counter_));
  must(cudaMalloc(&memory, 16 * 128 * sizeof *sink_));
  sink_ = static_cast<float *>(memory);
  if (softmax_create(&handle_, ordinal) != SOFTMAX_SUCCESS) {
    char sentence[512];
    softmax_last_error(sentence, sizeof sentence);
    throw std::runtime_error(std::string("softmax_create: ") + sentence);
  }
}

CudaDevice::~CudaDevice() {
  softmax_destroy(handle_);
  cudaStreamSynchronize(other_);
  cudaStreamDestroy(other_);
  cudaStreamDestroy(stream_);
  cudaFree(counter_);
  cudaFree(sink_);
  for (const auto &[bytes, memory] : free_) cudaFree(memory);
}

void *CudaDevice::allocate(std::size_t bytes) {
  const std::size_t block = bytes <= kMostKept ? block_for(bytes) : bytes;
  const std::lock_guard<std::mutex> lock(mutex_);
  void *memory = nullptr;
  const auto kept = free_.find(block);
  if (kept != free_.end()) {
    memory = kept->second;
    free_.erase(kept);
  } else if (cudaMalloc(&memory, block) != cudaSuccess) {
    cudaGetLastError();
    throw std::bad_alloc();
  }
  sizes_[memory] = block;
  return memory;
}

void CudaDevice::release(void *memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::size_t block = sizes_.at(memory);
  sizes_.erase(memory);
  if (block <= kMostKept) {
    free_.emplace(block, memory);
  } else {
    cudaFree(memory);
  }
}

void CudaDevice::write(void *to, const void *from, std::size_t bytes) {
  must(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_));
  must(cudaStreamSynchronize(stream_));
}

void CudaDevice::read(void *to, const void *from, std::size_t bytes) {
  must(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_));
  must(cudaStreamSynchronize(stream_));
}

void CudaDevice::fill(void *to, int byte, std::size_t bytes) {
  must(cudaMemsetAsync(to, byte, bytes, stream_));
}

std::string CudaDevice::finish(softmax_stream_t stream) {
  const cudaError_t waited = cudaStreamSynchronize(stream);
  const cudaError_t pending = cudaGetLastError();
  if (waited != cudaSuccess) return std::string("the stream: ") + cudaGetErrorString(waited);
  if (pending != cudaSuccess) return std::string("a pending ") + cudaGetErrorString(pending);
  return "";
}

softmax_stream_t CudaDevice::open_stream() {
  must(cudaSetDevice(ordinal_));  // each thread has a current device of its own
  cudaStream_t stream = nullptr;
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

void CudaDevice::close_stream(softmax_stream_t stream) { must(cudaStreamDestroy(stream)); }

void CudaDevice::generate(void *to, const Input &input) {
  if (!input.literal.empty()) {
    const std::vector<unsigned char> encoded = encode_all(input);
    write(to, encoded.data(), encoded.size());
    return;
  }
  launch_generate(to, input.dtype, input.program, input.rows, input.columns, stream_);
  must(cudaGetLastError());
  const std::int64_t bytes = format_of(input.dtype).bytes;
  for (const SetElement &set : input.sets) {
    unsigned char element[8];
    encode(input.dtype, round_to(input.dtype, set.value), element);
    write(static_cast<unsigned char *>(to) + (set.row * input.columns + set.column) * bytes,
          element, static_cast<std::size_t>(bytes));
  }
}

void CudaDevice::compare(const void *a, const void *b, std::size_t bytes) {
  launch_compare(a, b, static_cast<std::int64_t>(bytes), counter_, stream_);
  must(cudaGetLastError());
}

std::int64_t CudaDevice::differences() {
  unsigned long long count = 0;
  read(&count, counter_, sizeof count);
  fill(counter_, 0, sizeof count);
  return static_cast<std::int64_t>(count);
}

void CudaDevice::disturb() { launch_busy(sink_, other_); }

std::unique_ptr<Device> make_cuda_device(std::int32_t ordinal) {
  return std::make_unique<CudaDevice>(ordinal);
}

int cuda_devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return count;
}

}  // namespace reports
