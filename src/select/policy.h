// Launch policies: how a stem runs a problem on a device, or why it cannot. One function a stem.
//
// They look at N, the types and the device, never at M: a row's bits must not depend on how many
// other rows there are.
#pragma once

#include <cstddef>

#include "core/problem.h"

namespace softmax {

// Fills in `policy` and returns true; or writes the reason into why[cap] and returns false.
using PolicyFunction = bool(const DeviceCaps &caps, const Problem &problem, Policy *policy,
                            char *why, std::size_t cap);

PolicyFunction naive_policy;
PolicyFunction shared_policy;
PolicyFunction shuffle_policy;
PolicyFunction vector_policy;
PolicyFunction online_policy;
PolicyFunction warp_online_policy;
PolicyFunction warp_policy;
PolicyFunction block_policy;
PolicyFunction tile_policy;
PolicyFunction cluster_policy;
PolicyFunction grid_policy;
PolicyFunction reference_policy;

}  // namespace softmax
