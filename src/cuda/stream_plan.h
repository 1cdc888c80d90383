// From a policy to the launch of CLUSTER with rows on their way: cluster_stream.cuh.
#pragma once

#include "core/problem.h"
#include "cuda/launch.h"

namespace softmax {

// The kernels of 512 and of 1024 threads a block.
struct StreamKernels {
  const void *narrow;
  const void *wide;
};

// Fills in everything but the tensors. How many blocks share a row, and of which kernel, is what
// keeps most of the device's warps busy; it changes no bit. The driver is asked how many clusters
// of each size find room, once for each kernel and number of runs.
cudaError_t plan_stream(const DeviceCaps &caps, const Policy &policy, const Problem &problem,
                        const StreamKernels &kernels, Launch *launch);

}  // namespace softmax
