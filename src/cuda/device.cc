// CUDA devices: finding them, reading their capabilities, and whether this build can run on them.
#include <dlfcn.h>

#include <cstdio>

#include "cuda/backend.h"
#include "cuda/driver.h"
#include "cuda/kernels.h"

namespace softmax {
namespace {

// What CUDA version the installed driver is for, 0 where none is installed. cudaDriverGetVersion
// says 0 for a driver that is too old for this runtime, so the driver is asked itself.
int installed_driver_version() {
  void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return 0;
  int version = 0;
  if (void *address = dlsym(library, "cuDriverGetVersion")) {
    reinterpret_cast<int (*)(int *)>(address)(&version);
  }
  dlclose(library);
  return version;
}

Status no_device(int ordinal, cudaError_t error) {
  if (error != cudaErrorInsufficientDriver) {
    return fail_cuda(SOFTMAX_STATUS_WRONG_DEVICE, error,
                     "CUDA device %d: the NVIDIA driver shows no GPU (%s)", ordinal,
                     cudaGetErrorString(error));
  }
  const int version = installed_driver_version();
  if (version == 0) {
    return fail_cuda(SOFTMAX_STATUS_NOT_SUPPORTED_DRIVER, error,
                     "CUDA device %d: no NVIDIA driver is installed (libcuda.so.1 was not found)",
                     ordinal);
  }
  return fail_cuda(
      SOFTMAX_STATUS_NOT_SUPPORTED_DRIVER, error,
      "CUDA device %d: the NVIDIA driver is for CUDA %d.%d, and this libsoftmax needs one "
      "for %d.%d",
      ordinal, version / 1000, version % 1000 / 10, CUDART_VERSION / 1000,
      CUDART_VERSION % 1000 / 10);
}

Status read_caps(int ordinal, PendingErrorScope &pending, DeviceCaps *caps) {
  cudaDeviceProp properties;
  if (cudaError_t error = pending(cudaGetDeviceProperties(&properties, ordinal))) {
    return fail_cuda(SOFTMAX_STATUS_CUDA, error, "cudaGetDeviceProperties(%d): %s", ordinal,
                     cudaGetErrorString(error));
  }
  *caps = DeviceCaps{};
  caps->is_cuda = true;
  caps->ordinal = ordinal;
  caps->compute_capability = properties.major * 10 + properties.minor;
  caps->sm_count = properties.multiProcessorCount;
  caps->max_threads_per_sm = properties.maxThreadsPerMultiProcessor;
  caps->l2_bytes = properties.l2CacheSize;
  caps->smem_per_block_bytes = static_cast<std::int64_t>(properties.sharedMemPerBlockOptin);
  caps->smem_per_sm_bytes = static_cast<std::int64_t>(properties.sharedMemPerMultiprocessor);
  std::snprintf(caps->description, sizeof caps->description,
                "%.80s, sm_%d, %d SMs, %d MB of L2, %.0f GB", properties.name,
                caps->compute_capability, caps->sm_count, static_cast<int>(caps->l2_bytes >> 20),
                static_cast<double>(properties.totalGlobalMem) / (1 << 30));
  return SOFTMAX_SUCCESS;
}

// Whether the build has code for the device: asked of one kernel, they are all built alike.
Status check_kernel_image(int ordinal, PendingErrorScope &pending, const DeviceCaps &caps) {
  cudaFuncAttributes attributes;
  const void *kernel = naive_kernel_for(SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F32);
  const cudaError_t error = pending(cudaFuncGetAttributes(&attributes, kernel));
  switch (error) {
    case cudaSuccess:
      // Made on the spot from code for older devices, kernels neither copy in bulk nor wait for the
      // kernel before them, which their launches count on.
      if (caps.compute_capability < 90 || attributes.ptxVersion >= 90) return SOFTMAX_SUCCESS;
      return fail(SOFTMAX_STATUS_NOT_SUPPORTED_ARCH,
                  "device %d is sm_%d and this libsoftmax was built for %s", ordinal,
                  caps.compute_capability, cuda_build_text());
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorInvalidKernelImage:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilerNotFound:
      return fail_cuda(SOFTMAX_STATUS_NOT_SUPPORTED_ARCH, error,
                       "device %d is sm_%d and this libsoftmax was built for %s", ordinal,
                       caps.compute_capability, cuda_build_text());
    default:
      return fail_cuda(SOFTMAX_STATUS_CUDA, error, "device %d cannot be used: %s", ordinal,
                       cudaGetErrorString(error));
  }
}

Status open_device(std::int32_t ordinal, DeviceCaps *caps, CudaDevice *device) {
  PendingErrorScope pending;
  int count = 0;
  if (cudaError_t error = pending(cudaGetDeviceCount(&count))) return no_device(ordinal, error);
  if (ordinal >= count) {
    return fail(SOFTMAX_STATUS_WRONG_DEVICE, "CUDA device %d does not exist: there %s %d",
                static_cast<int>(ordinal), count == 1 ? "is" : "are", count);
  }
  const Driver *calls = driver();
  if (calls == nullptr) {
    return fail(SOFTMAX_STATUS_NOT_SUPPORTED_DRIVER, "the NVIDIA driver lacks a call of CUDA 11");
  }
  if (Status s = read_caps(ordinal, pending, caps)) return s;
  CUdevice driver_device;
  CUresult result = calls->device_get(&driver_device, ordinal);
  if (result == CUDA_SUCCESS) result = calls->primary_ctx_retain(&device->context, driver_device);
  if (result != CUDA_SUCCESS) {
    return fail_cuda(
        result == CUDA_ERROR_OUT_OF_MEMORY ? SOFTMAX_STATUS_DEVICE_MEMORY : SOFTMAX_STATUS_CUDA,
        result, "device %d: no primary context (CUresult %d)", static_cast<int>(ordinal),
        static_cast<int>(result));
  }
  const ContextScope scope(device->context);
  if (!scope.ok()) {
    return fail(SOFTMAX_STATUS_CUDA, "device %d: its context cannot be made current",
                static_cast<int>(ordinal));
  }
  return check_kernel_image(ordinal, pending, *caps);
}

}  // namespace

std::int32_t cuda_device_count() {
  PendingErrorScope pending;
  int count = 0;
  return pending(cudaGetDeviceCount(&count)) == cudaSuccess ? count : 0;
}

bool cuda_current_device(std::int32_t *ordinal) {
  if (cuda_device_count() == 0) return false;
  PendingErrorScope pending;
  int current = 0;
  if (pending(cudaGetDevice(&current)) != cudaSuccess) return false;
  *ordinal = current;
  return true;
}

Status cuda_open(std::int32_t ordinal, DeviceCaps *caps, CudaDevice *device) {
  return open_device(ordinal, caps, device);
}

const char *cuda_build_text() { return SOFTMAX_CUDA_BUILD_TEXT; }

}  // namespace softmax
