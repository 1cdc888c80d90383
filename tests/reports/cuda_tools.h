// The reports' own kernels: making inputs and looking at outputs where they are, and keeping the
// GPU busy. Streams are plain pointers, so that no CUDA header is needed to call them.
#pragma once

#include <cstdint>

#include "expression.h"
#include "softmax.h"

namespace reports {

// x[k] = program, rounded to the type; k over rows*columns.
void launch_generate(void *x, std::int32_t dtype, const Program &program, std::int64_t rows,
                     std::int64_t columns, softmax_stream_t stream);

// Adds to *count the bytes at which a and b differ.
void launch_compare(const void *a, const void *b, std::int64_t bytes, unsigned long long *count,
                    softmax_stream_t stream);

// Adds to *count the elements that are not in [low, high]; a NaN is in no interval.
void launch_count_outside(const void *y, std::int32_t dtype, std::int64_t elements, double low,
                          double high, unsigned long long *count, softmax_stream_t stream);

// Adds to *count the rows whose sum (of exp(y) where is_log) is not within tolerance of 1.
void launch_count_bad_sums(const void *y, std::int32_t dtype, std::int64_t rows,
                           std::int64_t columns, bool is_log, double tolerance,
                           unsigned long long *count, softmax_stream_t stream);

// One thread that does nothing for so long.
void launch_wait(std::int64_t microseconds, softmax_stream_t stream);

// Some blocks that compute and write to *sink for a moment.
void launch_busy(float *sink, softmax_stream_t stream);

}  // namespace reports
