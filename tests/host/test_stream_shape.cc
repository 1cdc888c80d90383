// Who shares a row of CLUSTER's many: the measured shapes hold every row, on the device that they
// were measured on and no other.
#include <cstdint>

#include "core/slabs.h"
#include "select/stream_shape.h"
#include "support/catch.h"

namespace softmax_test {
namespace {

using softmax::StreamShape;
using softmax::StreamTeam;

softmax::DeviceCaps device_with(int compute_capability, int multiprocessors) {
  softmax::DeviceCaps caps;
  caps.is_cuda = true;
  caps.compute_capability = compute_capability;
  caps.sm_count = multiprocessors;
  return caps;
}

softmax::Problem problem_of(std::int32_t x, std::int32_t y, std::int64_t cols) {
  softmax::Problem problem;
  problem.x_dtype = x;
  problem.y_dtype = y;
  problem.cols = cols;
  return problem;
}

}  // namespace

TEST_CASE("a measured cluster has a warp for every run of its rows", "[select]") {
  const softmax::DeviceCaps caps = device_with(90, 132);
  int clusters = 0, teams = 0;
  for (const std::int32_t y : {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_BF16}) {
    for (const std::int32_t x : {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_BF16}) {
      if (x == SOFTMAX_DTYPE_F32 && y != x) continue;
      for (const std::int64_t cols : {40960, 40961}) {
        for (std::int64_t runs = 2; runs <= softmax::kMostClusterRuns; ++runs) {
          const StreamShape shape = softmax::stream_shape(caps, problem_of(x, y, cols), runs);
          INFO(x << " to " << y << ", " << runs << " runs, " << shape.blocks << " blocks");
          CHECK(shape.team != StreamTeam::kUnmeasured);
          if (shape.team == StreamTeam::kTeams) {
            ++teams;
            CHECK(shape.blocks == 0);
          } else {
            ++clusters;
            CHECK((shape.blocks >= 2 && shape.blocks <= softmax::most_cluster_blocks(90)));
            CHECK(shape.blocks * softmax::kStreamWarps >= runs);
          }
        }
      }
    }
  }
  CHECK((clusters > 100 && teams > 100));
}

TEST_CASE("shapes are measured for a device of 132 multiprocessors alone", "[select]") {
  const softmax::Problem problem = problem_of(SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F32, 65536);
  for (const auto &caps :
       {device_with(90, 114), device_with(90, 78), device_with(100, 132), device_with(120, 170)}) {
    CHECK(softmax::stream_shape(caps, problem, 64).team == StreamTeam::kUnmeasured);
  }
}

}  // namespace softmax_test
