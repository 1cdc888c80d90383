// From a policy to the launch of TILE, CLUSTER and GRID.
#pragma once

#include "core/problem.h"
#include "cuda/launch.h"

namespace softmax {

// Fill in grid, block, shared memory and the arguments that the kernel's own header explains.
void plan_tile(const Policy &policy, const Problem &problem, const Buffers &buffers,
               Launch *launch);
void plan_cluster(const Policy &policy, const Problem &problem, Launch *launch);
void plan_grid(const DeviceCaps &caps, const Policy &policy, const Problem &problem,
               Launch *launch);

// GRID with rows on their way, and CLUSTER in teams. Returns whether the launch is of the kernel
// whose rows lag: grid_lagged.cuh.
bool plan_grid_stream(const DeviceCaps &caps, const Policy &policy, const Problem &problem,
                      Launch *launch);

// Blocks that wait for each other must all be resident: fits a GRID launch to how many are. That
// changes who takes a slab, and no bit.
void fit_grid(std::int64_t resident, const Problem &problem, Launch *launch);

// What GRID needs of global memory for this launch: counters, which must be 0, and sums.
std::size_t grid_counter_bytes(const Launch &launch);
std::size_t grid_workspace_bytes(const Launch &launch, const Problem &problem);
// The same with rows on their way: messages, which must be 0.
std::size_t grid_message_bytes(const Launch &launch, const Problem &problem);

}  // namespace softmax
