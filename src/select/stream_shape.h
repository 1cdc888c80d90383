// CLUSTER for many rows: who shares a row, by the number of its runs.
#pragma once

#include <cstdint>

#include "core/problem.h"

namespace softmax {

// Which changes no bit: the runs and the order of their parts are the row length's.
enum class StreamTeam {
  kCluster,    // `blocks` of a cluster
  kTeams,      // blocks anywhere on the device, a slab each: grid_lagged.cuh
  kUnmeasured  // a cluster of as many blocks as keep most of the device at work
};
struct StreamShape {
  StreamTeam team = StreamTeam::kUnmeasured;
  std::int32_t blocks = 0;
};

// As measured, on such a device; `runs` as cut for the problem.
StreamShape stream_shape(const DeviceCaps &caps, const Problem &problem, std::int64_t runs);

}  // namespace softmax
