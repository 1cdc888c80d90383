// The reports' own kernels. See cuda_tools.h.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>

#include "cuda_tools.h"

namespace reports {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 2048;  // what is more is looped over

__device__ std::int64_t first_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ std::int64_t index_step() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

__device__ double load(const float *y, std::int64_t k) { return y[k]; }
__device__ double load(const double *y, std::int64_t k) { return y[k]; }
__device__ double load(const __half *y, std::int64_t k) { return __half2float(y[k]); }
__device__ double load(const __nv_bfloat16 *y, std::int64_t k) { return __bfloat162float(y[k]); }

// Each rounds once.
__device__ void store(float *x, std::int64_t k, double value) { x[k] = __double2float_rn(value); }
__device__ void store(double *x, std::int64_t k, double value) { x[k] = value; }
__device__ void store(__half *x, std::int64_t k, double value) { x[k] = __double2half(value); }
__device__ void store(__nv_bfloat16 *x, std::int64_t k, double value) {
  x[k] = __double2bfloat16(value);
}

template <typename T>
__global__ void generate(T *x, Program program, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t k = first_index(); k < rows * columns; k += index_step()) {
    store(x, k, evaluate(program, {k / columns, k % columns, rows, columns}));
  }
}

__global__ void compare(const unsigned char *a, const unsigned char *b, std::int64_t bytes,
                        unsigned long long *count) {
  unsigned long long differences = 0;
  for (std::int64_t k = first_index(); k < bytes; k += index_step()) differences += a[k] != b[k];
  if (differences != 0) atomicAdd(count, differences);
}

template <typename T>
__global__ void count_outside(const T *y, std::int64_t elements, double low, double high,
                              unsigned long long *count) {
  unsigned long long outside = 0;
  for (std::int64_t k = first_index(); k < elements; k += index_step()) {
    const double value = load(y, k);
    outside += !(value >= low && value <= high);
  }
  if (outside != 0) atomicAdd(count, outside);
}

// One block a row.
template <typename T>
__global__ void count_bad_sums(const T *y, std::int64_t rows, std::int64_t columns, bool is_log,
                               double tolerance, unsigned long long *count) {
  __shared__ double partial[kThreads];
  for (std::int64_t i = blockIdx.x; i < rows; i += gridDim.x) {
    double sum = 0;
    for (std::int64_t j = threadIdx.x; j < columns; j += kThreads) {
      const double value = load(y, i * columns + j);
      sum += is_log ? exp(value) : value;
    }
    partial[threadIdx.x] = sum;
    for (int half = kThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    }
    if (threadIdx.x == 0 && !(fabs(partial[0] - 1) <= tolerance)) atomicAdd(count, 1ull);
    __syncthreads();  // before the next row overwrites partial
  }
}

__global__ void wait_for(std::int64_t nanoseconds) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (static_cast<std::int64_t>(now - begin) < nanoseconds);
}

__global__ void busy(float *sink) {
  float value = static_cast<float>(threadIdx.x);
  for (int n = 0; n < 2000; ++n) value = fmaf(value, 0.999f, 1.0f);
  sink[first_index()] = value;
}

template <typename Body>
void for_dtype(std::int32_t dtype, Body body) {
  switch (dtype) {
    case SOFTMAX_DTYPE_F32: body(static_cast<float *>(nullptr)); break;
    case SOFTMAX_DTYPE_F16: body(static_cast<__half *>(nullptr)); break;
    case SOFTMAX_DTYPE_BF16: body(static_cast<__nv_bfloat16 *>(nullptr)); break;
    default: body(static_cast<double *>(nullptr)); break;
  }
}

}  // namespace

void launch_generate(void *x, std::int32_t dtype, const Program &program, std::int64_t rows,
                     std::int64_t columns, softmax_stream_t stream) {
  for_dtype(dtype, [&](auto *type) {
    generate<<<kBlocks, kThreads, 0, stream>>>(static_cast<decltype(type)>(x), program, rows,
                                               columns);
  });
}

void launch_compare(const void *a, const void *b, std::int64_t bytes, unsigned long long *count,
                    softmax_stream_t stream) {
  compare<<<kBlocks, kThreads, 0, stream>>>(static_cast<const unsigned char *>(a),
                                            static_cast<const unsigned char *>(b), bytes, count);
}

void launch_count_outside(const void *y, std::int32_t dtype, std::int64_t elements, double low,
                          double high, unsigned long long *count, softmax_stream_t stream) {
  for_dtype(dtype, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    count_outside<<<kBlocks, kThreads, 0, stream>>>(static_cast<const T *>(y), elements, low, high,
                                                    count);
  });
}

void launch_count_bad_sums(const void *y, std::int32_t dtype, std::int64_t rows,
                           std::int64_t columns, bool is_log, double tolerance,
                           unsigned long long *count, softmax_stream_t stream) {
  for_dtype(dtype, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    count_bad_sums<<<kBlocks, kThreads, 0, stream>>>(static_cast<const T *>(y), rows, columns,
                                                     is_log, tolerance, count);
  });
}

void launch_wait(std::int64_t microseconds, softmax_stream_t stream) {
  wait_for<<<1, 1, 0, stream>>>(microseconds * 1000);
}

void launch_busy(float *sink, softmax_stream_t stream) { busy<<<16, 128, 0, stream>>>(sink); }

}  // namespace reports
