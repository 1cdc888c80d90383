// Failures: every refusal goes through fail(), which keeps the sentence for softmax_last_error.
#pragma once

#include <cstdint>

#include "softmax.h"

namespace softmax {

using Status = softmax_status_t;

// Records the sentence as the calling thread's last error, logs it, and returns `status`. The
// sentence says what was wrong with which value; no newline, no full stop needed.
__attribute__((format(printf, 2, 3))) Status fail(Status status, const char *format, ...);

// The same with the cudaError_t behind it.
__attribute__((format(printf, 3, 4))) Status fail_cuda(Status status, std::int32_t cuda_error,
                                                       const char *format, ...);

}  // namespace softmax
