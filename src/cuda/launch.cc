// Enqueuing a launch, and how much of one finds room.
#include "cuda/launch.h"

#include <atomic>
#include <cstdint>

#include "cuda/known_answers.h"

namespace softmax {
namespace {

// What a kernel may have without asking, less what it has of its own.
constexpr std::size_t kPlainSmemBytes = 47 << 10;

// Which kernels have been allowed what they need, on which device: asking again for every launch
// would cost a third of it. A slot lost to a collision is only asked for again.
class Allowed {
 public:
  bool contains(std::uintptr_t key) const {
    return slot(key).load(std::memory_order_relaxed) == key;
  }
  void insert(std::uintptr_t key) { slot(key).store(key, std::memory_order_relaxed); }

  static std::uintptr_t key(const LaunchShape &launch, int device) {
    return reinterpret_cast<std::uintptr_t>(launch.kernel) ^
           (std::uintptr_t(2 * device + (launch.cluster > 1 ? 1 : 0)) << 48);
  }

 private:
  std::atomic<std::uintptr_t> &slot(std::uintptr_t key) const {
    return slots_[(key * 0x9e3779b97f4a7c15u >> 56) % kSlots];
  }
  static constexpr int kSlots = 256;
  mutable std::atomic<std::uintptr_t> slots_[kSlots] = {};
};

Allowed allowed;

cudaError_t allow(const LaunchShape &launch, int device) {
  if (launch.smem_bytes <= kPlainSmemBytes && launch.cluster <= 1) return cudaSuccess;
  const std::uintptr_t key = Allowed::key(launch, device);
  if (allowed.contains(key)) return cudaSuccess;
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
  allowed.insert(key);
  return cudaSuccess;
}

KnownAnswers known_blocks_per_sm;

void set_cluster(const LaunchShape &launch, cudaLaunchAttribute *attribute) {
  attribute->id = cudaLaunchAttributeClusterDimension;
  attribute->val.clusterDim.x = launch.cluster;
  attribute->val.clusterDim.y = 1;
  attribute->val.clusterDim.z = 1;
}

}  // namespace

cudaError_t enqueue(const Launch &launch, int ordinal, cudaStream_t stream) {
  RowArgs args = launch.args;
  return enqueue(launch, &args, args.overlap, ordinal, stream);
}

cudaError_t enqueue(const LaunchShape &launch, void *argument, Overlap overlap, int ordinal,
                    cudaStream_t stream) {
  if (cudaError_t error = allow(launch, ordinal)) return error;
  void *arguments[] = {argument};
  if (launch.cluster <= 1 && !launch.cooperative && overlap == Overlap::kNone) {
    return cudaLaunchKernel(launch.kernel, launch.grid, launch.block, arguments, launch.smem_bytes,
                            stream);
  }
  cudaLaunchAttribute attributes[3];
  cudaLaunchConfig_t config = {};
  config.gridDim = launch.grid;
  config.blockDim = launch.block;
  config.dynamicSmemBytes = launch.smem_bytes;
  config.stream = stream;
  config.attrs = attributes;
  if (launch.cluster > 1) {
    set_cluster(launch, &attributes[config.numAttrs]);
    ++config.numAttrs;
  }
  if (launch.cooperative) {
    attributes[config.numAttrs].id = cudaLaunchAttributeCooperative;
    attributes[config.numAttrs].val.cooperative = 1;
    ++config.numAttrs;
  }
  if (overlap != Overlap::kNone) {
    attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[config.numAttrs].val.programmaticStreamSerializationAllowed = 1;
    ++config.numAttrs;
  }
  return cudaLaunchKernelExC(&config, launch.kernel, arguments);
}

cudaError_t resident_blocks_per_sm(const LaunchShape &launch, int ordinal, std::uint32_t *count) {
  const std::uint64_t key =
      KnownAnswers::key(launch.kernel, launch.block.x, launch.smem_bytes, ordinal);
  if (known_blocks_per_sm.find(key, count)) return cudaSuccess;
  if (cudaError_t error = allow(launch, ordinal)) return error;
  int blocks = 0;
  const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, launch.kernel, static_cast<int>(launch.block.x), launch.smem_bytes);
  *count = static_cast<std::uint32_t>(blocks);
  if (error == cudaSuccess) known_blocks_per_sm.insert(key, *count);
  return error;
}

cudaError_t resident_clusters(const LaunchShape &launch, int ordinal, int *count) {
  if (cudaError_t error = allow(launch, ordinal)) return error;
  cudaLaunchAttribute attribute;
  set_cluster(launch, &attribute);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(launch.cluster);
  config.blockDim = launch.block;
  config.dynamicSmemBytes = launch.smem_bytes;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaOccupancyMaxActiveClusters(count, launch.kernel, &config);
}

}  // namespace softmax
