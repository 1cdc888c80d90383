// See pointers.h.
#include "cuda/pointers.h"

#include "core/algo.h"

namespace softmax {

Status check_pointer(const char *name, const void *pointer, const DeviceCaps &caps,
                     PendingErrorScope &pending) {
  cudaPointerAttributes attributes;
  if (cudaError_t error = pending(cudaPointerGetAttributes(&attributes, pointer))) {
    return fail_cuda(SOFTMAX_STATUS_CUDA, error, "cudaPointerGetAttributes(%s = %p): %s", name,
                     pointer, cudaGetErrorString(error));
  }
  if (attributes.type == cudaMemoryTypeUnregistered) {
    return fail(
        SOFTMAX_STATUS_WRONG_DEVICE,
        "%s = %p is host memory that CUDA does not know, and the handle is on CUDA device %d", name,
        pointer, static_cast<int>(caps.ordinal));
  }
  if (attributes.type == cudaMemoryTypeDevice && attributes.device != caps.ordinal) {
    return fail(SOFTMAX_STATUS_WRONG_DEVICE,
                "%s = %p is memory of CUDA device %d, and the handle is on device %d", name,
                pointer, attributes.device, static_cast<int>(caps.ordinal));
  }
  return SOFTMAX_SUCCESS;
}

Status fail_context(const DeviceCaps &caps) {
  return fail(SOFTMAX_STATUS_CUDA, "the context of CUDA device %d cannot be made current",
              static_cast<int>(caps.ordinal));
}

Status launch_status(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation: return SOFTMAX_STATUS_DEVICE_MEMORY;
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction: return SOFTMAX_STATUS_NOT_SUPPORTED_ARCH;
    default: return SOFTMAX_STATUS_CUDA;
  }
}

Status fail_launch(const DeviceCaps &caps, const Policy &policy, cudaError_t error) {
  return fail_cuda(launch_status(error), error, "launching %s on CUDA device %d: %s (%s)",
                   algo_name(policy.algo), static_cast<int>(caps.ordinal), cudaGetErrorName(error),
                   cudaGetErrorString(error));
}

}  // namespace softmax
