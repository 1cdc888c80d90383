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
  bool is_wide = false;

  std::uint32_t packed() const {
    return static_cast<std::uint32_t>(blocks | (is_wide ? 32 : 0) | teams << 6);
  }
  static Shape unpacked(std::uint32_t word) {
    return {static_cast<int>(word & 31), static_cast<int>(word >> 6), (word & 32) != 0};
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

// Of one kernel, and of equals the one with the smaller blocks.
cudaError_t best_of(const DeviceCaps &caps, std::int64_t runs, bool is_wide, int most_blocks,
                    Launch *launch, Shape *best, double *best_worth) {
  const int most_warps = is_wide ? kStreamWideWarps : kStreamWarps;
  std::int64_t last_warps = 0;
  for (int blocks = 2; blocks <= most_blocks; ++blocks) {
    const std::int64_t warps = ceil_div(runs, blocks);
    if (warps > most_warps || warps == last_warps) continue;
    last_warps = warps;
    if (warps < kLeastWarps && best->blocks != 0) break;
    set_shape(runs, blocks, launch);
    int teams = 0;
    if (cudaError_t error = resident_clusters(*launch, caps.ordinal, &teams)) return error;
    teams = std::min(teams, kMostTeams);
    const double value = worth(runs, warps, teams);
    if (teams == 0 || value < *best_worth) continue;
    *best_worth = value;
    *best = {blocks, teams, is_wide};
  }
  return cudaSuccess;
}

cudaError_t find_shape(const DeviceCaps &caps, std::int64_t runs, const StreamKernels &kernels,
                       Launch *launch, Shape *shape) {
  const int most_blocks = most_cluster_blocks(caps.compute_capability);
  double narrow_worth = 0.0;
  launch->kernel = kernels.narrow;
  if (cudaError_t error = best_of(caps, runs, false, most_blocks, launch, shape, &narrow_worth)) {
    return error;
  }
  // An H200 has 2112 narrow warps at once. In a sweep over all shapes (2^27 elements, cold) they
  // were quicker than any number of wide ones where 1500 and more were at work, and slower from
  // 1400 down.
  const int all = kStreamWarps * caps.sm_count;
  if (kernels.wide == nullptr || narrow_worth >= 0.7 * all) return cudaSuccess;
  Shape wide;
  double wide_worth = 0.0;
  launch->kernel = kernels.wide;
  if (cudaError_t error = best_of(caps, runs, true, most_blocks, launch, &wide, &wide_worth)) {
    return error;
  }
  if (wide.blocks != 0) *shape = wide;
  return cudaSuccess;
}

}  // namespace

cudaError_t plan_stream(const DeviceCaps &caps, const Policy &policy, const Problem &problem,
                        const StreamKernels &kernels, Launch *launch) {
  const std::int64_t runs =
      ceil_div(problem.cols, run_cols_of(problem.cols, dtype_size(problem.x_dtype), policy.packs));
  launch->args.slots = policy.stages;
  launch->args.slot_bytes = static_cast<std::int32_t>(stream_slot_bytes(policy.packs));
  Shape shape;
  std::uint32_t known = 0;
  const std::uint64_t key =
      KnownAnswers::key(kernels.narrow, static_cast<std::uint64_t>(runs), 0, caps.ordinal);
  if (known_shapes.find(key, &known)) {
    shape = Shape::unpacked(known);
  } else {
    if (cudaError_t error = find_shape(caps, runs, kernels, launch, &shape)) return error;
    if (shape.blocks == 0) return cudaErrorInvalidConfiguration;
    known_shapes.insert(key, shape.packed());
  }
  launch->kernel = shape.is_wide ? kernels.wide : kernels.narrow;
  set_shape(runs, shape.blocks, launch);
  // Each cluster has as many rows as the others, or one more.
  const std::int64_t rows_each = ceil_div(problem.rows, std::int64_t{shape.teams});
  const std::int64_t teams = ceil_div(problem.rows, rows_each);
  launch->grid = dim3(static_cast<unsigned>(teams * shape.blocks));
  return cudaSuccess;
}

}  // namespace softmax
