// The benchmark's own kernels. See device.h.
#include <cuda_bf16.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "device.h"

namespace bench {
namespace {

constexpr int kThreads = 256;
constexpr int kVectorBytes = 16;

// Below this a block that copies several vectors a thread leaves multiprocessors without work.
constexpr std::size_t kUnrolledBytes = std::size_t{16} << 20;

// Each block copies Unroll * kThreads neighbouring vectors, all loads before the first store.
template <int Unroll>
__global__ void copy_kernel(uint4 *to, const uint4 *from, std::int64_t vectors,
                            std::int64_t tail_bytes) {
  const std::int64_t first = std::int64_t{blockIdx.x} * (Unroll * kThreads) + threadIdx.x;
  uint4 values[Unroll];
#pragma unroll
  for (int i = 0; i < Unroll; ++i) {
    const std::int64_t index = first + i * kThreads;
    if (index < vectors) values[i] = __ldcs(from + index);
  }
#pragma unroll
  for (int i = 0; i < Unroll; ++i) {
    const std::int64_t index = first + i * kThreads;
    if (index < vectors) __stcs(to + index, values[i]);
  }
  if (blockIdx.x == 0 && threadIdx.x < tail_bytes) {
    reinterpret_cast<unsigned char *>(to + vectors)[threadIdx.x] =
        reinterpret_cast<const unsigned char *>(from + vectors)[threadIdx.x];
  }
}

template <int Unroll>
void launch_copy(void *to, const void *from, std::size_t bytes, cudaStream_t stream) {
  const std::int64_t vectors = static_cast<std::int64_t>(bytes / kVectorBytes);
  const std::int64_t per_block = std::int64_t{Unroll} * kThreads;
  const auto blocks =
      static_cast<unsigned>(std::max<std::int64_t>(1, (vectors + per_block - 1) / per_block));
  copy_kernel<Unroll><<<blocks, kThreads, 0, stream>>>(
      static_cast<uint4 *>(to), static_cast<const uint4 *>(from), vectors, bytes % kVectorBytes);
}

// A 64-bit mix whose output bits all depend on all input bits (the finaliser of SplitMix64).
__device__ std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// Box and Muller's transform of two uniform deviates; the first is kept away from 0.
__device__ float normal_deviate(std::uint64_t index, std::uint32_t seed) {
  const std::uint64_t bits = mix((index + 1) * 0x9e3779b97f4a7c15ull + seed);
  const float radius_from = (static_cast<std::uint32_t>(bits >> 40) + 1) * 0x1p-24f;
  const float turns = (static_cast<std::uint32_t>(bits) >> 8) * 0x1p-24f;
  return sqrtf(-2.0f * logf(radius_from)) * cospif(2.0f * turns);
}

__device__ void store(float *to, float value) { *to = value; }
__device__ void store(double *to, float value) { *to = value; }
__device__ void store(__nv_bfloat16 *to, float value) { *to = __float2bfloat16_rn(value); }
__device__ bool is_nan(float value) { return isnan(value); }
__device__ bool is_nan(double value) { return isnan(value); }
__device__ bool is_nan(__nv_bfloat16 value) { return isnan(__bfloat162float(value)); }

template <typename T>
__global__ void fill_kernel(T *x, std::int64_t elements, float sigma, std::uint32_t seed) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < elements;
       i += step) {
    store(x + i, sigma * normal_deviate(static_cast<std::uint64_t>(i), seed));
  }
}

template <typename T>
__global__ void count_nan_kernel(const T *y, std::int64_t elements, unsigned long long *count) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  unsigned long long own = 0;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < elements;
       i += step) {
    own += is_nan(y[i]);
  }
  if (own > 0) atomicAdd(count, own);
}

unsigned grid_for(std::int64_t elements) {
  return static_cast<unsigned>(std::clamp<std::int64_t>(elements / kThreads, 1, 8192));
}

[[noreturn]] void refuse_dtype() {
  throw std::runtime_error("the benchmark knows f32, bf16 and f64 alone");
}

}  // namespace

void check_cuda(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

void streaming_copy(void *to, const void *from, std::size_t bytes, cudaStream_t stream) {
  if (bytes >= kUnrolledBytes) {
    launch_copy<4>(to, from, bytes, stream);
  } else {
    launch_copy<1>(to, from, bytes, stream);
  }
  check_cuda(cudaGetLastError(), "launching the copy kernel");
}

void fill_normal(void *x, softmax_dtype_t dtype, std::int64_t elements, float sigma,
                 std::uint32_t seed, cudaStream_t stream) {
  switch (dtype) {
    case SOFTMAX_DTYPE_F32:
      fill_kernel<<<grid_for(elements), kThreads, 0, stream>>>(static_cast<float *>(x), elements,
                                                               sigma, seed);
      break;
    case SOFTMAX_DTYPE_BF16:
      fill_kernel<<<grid_for(elements), kThreads, 0, stream>>>(static_cast<__nv_bfloat16 *>(x),
                                                               elements, sigma, seed);
      break;
    case SOFTMAX_DTYPE_F64:
      fill_kernel<<<grid_for(elements), kThreads, 0, stream>>>(static_cast<double *>(x), elements,
                                                               sigma, seed);
      break;
    default: refuse_dtype();
  }
  check_cuda(cudaGetLastError(), "launching the fill kernel");
}

void poison(void *y, std::size_t bytes, cudaStream_t stream) {
  check_cuda(cudaMemsetAsync(y, 0xff, bytes, stream), "poisoning the output");
}

std::uint64_t count_nan(const void *y, softmax_dtype_t dtype, std::int64_t elements,
                        cudaStream_t stream) {
  unsigned long long *count = nullptr;
  check_cuda(cudaMalloc(&count, sizeof *count), "allocating a counter");
  check_cuda(cudaMemsetAsync(count, 0, sizeof *count, stream), "clearing the counter");
  switch (dtype) {
    case SOFTMAX_DTYPE_F32:
      count_nan_kernel<<<grid_for(elements), kThreads, 0, stream>>>(static_cast<const float *>(y),
                                                                    elements, count);
      break;
    case SOFTMAX_DTYPE_BF16:
      count_nan_kernel<<<grid_for(elements), kThreads, 0, stream>>>(
          static_cast<const __nv_bfloat16 *>(y), elements, count);
      break;
    case SOFTMAX_DTYPE_F64:
      count_nan_kernel<<<grid_for(elements), kThreads, 0, stream>>>(static_cast<const double *>(y),
                                                                    elements, count);
      break;
    default: cudaFree(count); refuse_dtype();
  }
  check_cuda(cudaGetLastError(), "launching the NaN count");
  unsigned long long result = 0;
  check_cuda(cudaMemcpyAsync(&result, count, sizeof result, cudaMemcpyDeviceToHost, stream),
             "reading the counter");
  check_cuda(cudaStreamSynchronize(stream), "counting NaNs");
  check_cuda(cudaFree(count), "freeing the counter");
  return result;
}

}  // namespace bench
