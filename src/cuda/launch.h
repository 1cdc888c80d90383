// One launch as a plain value, planned from a policy, and the call that enqueues it.
#pragma once

#include <cuda_runtime_api.h>

#include "core/problem.h"
#include "cuda/row_args.h"

namespace softmax {

struct LaunchShape {
  const void *kernel = nullptr;  // null: there is none
  dim3 grid = dim3(1);
  dim3 block = dim3(1);
  unsigned cluster = 0;        // blocks in a thread-block cluster; 0 and 1: none
  bool cooperative = false;    // all blocks resident at once
  std::size_t smem_bytes = 0;  // dynamic
};

struct Launch : LaunchShape {
  RowArgs args = {};
};

// Enqueues it on the current device, which is `ordinal`.
cudaError_t enqueue(const Launch &launch, int ordinal, cudaStream_t stream);

// The same of a kernel with another argument.
cudaError_t enqueue(const LaunchShape &launch, void *argument, Overlap overlap, int ordinal,
                    cudaStream_t stream);

// How many of the launch's blocks find room on a multiprocessor.
cudaError_t resident_blocks_per_sm(const LaunchShape &launch, int ordinal, std::uint32_t *count);

// How many of the launch's clusters find room on the device at once, as the driver says.
cudaError_t resident_clusters(const LaunchShape &launch, int ordinal, int *count);

}  // namespace softmax
