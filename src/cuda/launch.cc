// Enqueuing a launch.
#include "cuda/launch.h"

#include <atomic>
#include <cstdint>

namespace softmax {
namespace {

constexpr std::size_t kPlainSmemBytes = 48 << 10;  // what a kernel may have without asking

// Which kernels have been allowed what they need, on which device: asking again for every launch
// would cost a third of it. A slot lost to a collision is only asked for again.
class Allowed {
 public:
  bool contains(const void *kernel, int device) const {
    return slot(kernel, device).load(std::memory_order_relaxed) == key(kernel, device);
  }
  void insert(const void *kernel, int device) {
    slot(kernel, device).store(key(kernel, device), std::memory_order_relaxed);
  }

 private:
  static std::uintptr_t key(const void *kernel, int device) {
    return reinterpret_cast<std::uintptr_t>(kernel) ^ (std::uintptr_t(device) << 56);
  }
  std::atomic<std::uintptr_t> &slot(const void *kernel, int device) const {
    return slots_[(key(kernel, device) * 0x9e3779b97f4a7c15u >> 56) % kSlots];
  }
  static constexpr int kSlots = 256;
  mutable std::atomic<std::uintptr_t> slots_[kSlots] = {};
};

Allowed allowed;

cudaError_t allow(const Launch &launch, int device) {
  if (launch.smem_bytes <= kPlainSmemBytes && launch.cluster <= 1) return cudaSuccess;
  if (allowed.contains(launch.kernel, device)) return cudaSuccess;
  int limit = 0;
  cudaError_t error =
      cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (error != cudaSuccess) return error;
  cudaFuncAttributes attributes;
  error = cudaFuncGetAttributes(&attributes, launch.kernel);
  if (error != cudaSuccess) return error;
  error = cudaFuncSetAttribute(launch.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               limit - static_cast<int>(attributes.sharedSizeBytes));
  if (error != cudaSuccess) return error;
  if (launch.cluster > 1) {
    error = cudaFuncSetAttribute(launch.kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (error != cudaSuccess) return error;
  }
  allowed.insert(launch.kernel, device);
  return cudaSuccess;
}

}  // namespace

cudaError_t enqueue(const Launch &launch, int ordinal, cudaStream_t stream) {
  if (cudaError_t error = allow(launch, ordinal)) return error;
  RowArgs args = launch.args;
  void *arguments[] = {&args};
  if (launch.cluster <= 1 && !launch.cooperative) {
    return cudaLaunchKernel(launch.kernel, launch.grid, launch.block, arguments, launch.smem_bytes,
                            stream);
  }
  cudaLaunchAttribute attributes[2];
  cudaLaunchConfig_t config = {};
  config.gridDim = launch.grid;
  config.blockDim = launch.block;
  config.dynamicSmemBytes = launch.smem_bytes;
  config.stream = stream;
  config.attrs = attributes;
  if (launch.cluster > 1) {
    attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
    attributes[config.numAttrs].val.clusterDim.x = launch.cluster;
    attributes[config.numAttrs].val.clusterDim.y = 1;
    attributes[config.numAttrs].val.clusterDim.z = 1;
    ++config.numAttrs;
  }
  if (launch.cooperative) {
    attributes[config.numAttrs].id = cudaLaunchAttributeCooperative;
    attributes[config.numAttrs].val.cooperative = 1;
    ++config.numAttrs;
  }
  return cudaLaunchKernelExC(&config, launch.kernel, arguments);
}

}  // namespace softmax
