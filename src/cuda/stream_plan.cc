// Planning launches of CLUSTER with rows on their way. See stream_plan.h.
#include "cuda/stream_plan.h"

#include <algorithm>
#include <cstdint>

#include "core/dtype.h"
#include "core/slabs.h"
#include "cuda/known_answers.h"

namespace softmax {
namespace {

constexpr int kLeastWarps = 6;    // of a block: of shapes with fewer none was measured
constexpr int kMostTeams = 1023;  // what a packed shape has bits for

struct Shape {
  int blocks = 0;  // that share a row, up to 16; 0: none found
  int teams = 0;   // at once

  std::uint32_t packed() const { return static_cast<std::uint32_t>(blocks | teams << 6); }
  static Shape unpacked(std::uint32_t word) {
    return {static_cast<int>(word & 31), static_cast<int>(word >> 6)};
  }
};

KnownAnswers known_shapes;

void set_shape(std::int64_t runs, int blocks, Launch *launch) {
  const std::int64_t warps = ceil_div(runs, blocks);
  launch->cluster = static_cast<unsigned>(blocks);
  launch->args.row_blocks = blocks;
  launch->block = dim3(static_cast<unsigned>(32 * warps));
  launch->smem_bytes =
      static_cast<std::size_t>(warps * ring_bytes(launch->args.slot_bytes, launch->args.slots));
}

// How much of a device such clusters keep at work: the runs that are under way, less what the
// fullest of a multiprocessor's four schedulers has more than the others.
double worth(std::int64_t runs, std::int64_t warps, int teams) {
  return double(teams * runs) * double(warps) / double(round_up(warps, 4));
}

// Of equals the one with the smaller blocks.
cudaError_t best_of(const DeviceCaps &caps, std::int64_t runs, Launch *launch, Shape *best) {
  const int most_blocks = most_cluster_blocks(caps.compute_capability);
  double best_worth = 0.0;
  std::int64_t last_warps = 0;
  for (int blocks = 2; blocks <= most_blocks; ++blocks) {
    const std::int64_t warps = ceil_div(runs, blocks);
    if (warps > kStreamWarps || warps == last_warps) continue;
    last_warps = warps;
    if (warps < kLeastWarps && best->blocks != 0) break;
    set_shape(runs, blocks, launch);
    int teams = 0;
    if (cudaError_t error = resident_clusters(*launch, caps.ordinal, &teams)) return error;
    teams = std::min(teams, kMostTeams);
    const double value = worth(runs, warps, teams);
    if (teams == 0 || value < best_worth) continue;
    best_worth = value;
    *best = {blocks, teams};
  }
  return cudaSuccess;
}

// The measured one, where such a cluster finds room.
cudaError_t find_shape(const DeviceCaps &caps, const Policy &policy, std::int64_t runs,
                       Launch *launch, Shape *shape) {
  if (policy.row_blocks != 0) {
    int teams = 0;
    set_shape(runs, policy.row_blocks, launch);
    if (cudaError_t error = resident_clusters(*launch, caps.ordinal, &teams)) return error;
    if (teams > 0) {
      *shape = {policy.row_blocks, std::min(teams, kMostTeams)};
      return cudaSuccess;
    }
  }
  return best_of(caps, runs, launch, shape);
}

}  // namespace

cudaError_t plan_stream(const DeviceCaps &caps, const Policy &policy, const Problem &problem,
                        Launch *launch) {
  const std::int64_t runs = runs_of(problem.cols, dtype_size(problem.x_dtype), policy.packs);
  launch->args.slots = policy.stages;
  launch->args.slot_bytes = static_cast<std::int32_t>(stream_slot_bytes(policy.packs));
  Shape shape;
  std::uint32_t known = 0;
  const std::uint64_t key =
      KnownAnswers::key(launch->kernel, static_cast<std::uint64_t>(runs),
                        static_cast<std::size_t>(policy.row_blocks), caps.ordinal);
  if (known_shapes.find(key, &known)) {
    shape = Shape::unpacked(known);
  } else {
    if (cudaError_t error = find_shape(caps, policy, runs, launch, &shape)) return error;
    if (shape.blocks == 0) return cudaErrorInvalidConfiguration;
    known_shapes.insert(key, shape.packed());
  }
  set_shape(runs, shape.blocks, launch);
  // Each cluster has as many rows as the others, or one more.
  const std::int64_t rows_each = ceil_div(problem.rows, std::int64_t{shape.teams});
  const std::int64_t teams = ceil_div(problem.rows, rows_each);
  launch->grid = dim3(static_cast<unsigned>(teams * shape.blocks));
  return cudaSuccess;
}

}  // namespace softmax
