// From a policy to the launch of CLUSTER with rows on their way: cluster_stream.cuh.
#pragma once

#include "core/problem.h"
#include "cuda/launch.h"

namespace softmax {

// Fills in everything but the kernel and the tensors. How many blocks share a row is what was
// measured (policy.row_blocks), or else what keeps most of the device's warps busy; it changes no
// bit. The driver is asked how many clusters of each size find room, once for each kernel and
// number of runs.
cudaError_t plan_stream(const DeviceCaps &caps, const Policy &policy, const Problem &problem,
                        Launch *launch);

}  // namespace softmax
