// What every call on a CUDA device checks and reports alike.
#pragma once

#include "core/problem.h"
#include "cuda/backend.h"
#include "cuda/driver.h"

namespace softmax {

// Refuses memory that the device cannot reach: see SOFTMAX_STATUS_WRONG_DEVICE.
Status check_pointer(const char *name, const void *pointer, const DeviceCaps &caps,
                     PendingErrorScope &pending);

// The device's context cannot be made current.
Status fail_context(const DeviceCaps &caps);
// A launch has failed.
Status launch_status(cudaError_t error);
Status fail_launch(const DeviceCaps &caps, const Policy &policy, cudaError_t error);

}  // namespace softmax
