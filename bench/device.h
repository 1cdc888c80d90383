// What the benchmark does on the device by itself: the copy that softmax is measured against,
// random inputs, and the search for elements that nobody wrote.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "softmax.h"

namespace bench {

// Throws std::runtime_error with `what` and CUDA's own words.
void check_cuda(cudaError_t error, const char *what);

// Copies with 16-byte loads and stores that are marked as used once.
void streaming_copy(void *to, const void *from, std::size_t bytes, cudaStream_t stream);

// Normal deviates of standard deviation sigma, a function of (seed, index) alone. F32, BF16, F64.
void fill_normal(void *x, softmax_dtype_t dtype, std::int64_t elements, float sigma,
                 std::uint32_t seed, cudaStream_t stream);

// Sets every byte to 0xff: a NaN in every type that is benchmarked.
void poison(void *y, std::size_t bytes, cudaStream_t stream);

// How many elements are NaN. Waits for the stream.
std::uint64_t count_nan(const void *y, softmax_dtype_t dtype, std::int64_t elements,
                        cudaStream_t stream);

}  // namespace bench
