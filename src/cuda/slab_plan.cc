// Planning launches of TILE, CLUSTER and GRID. See slab_plan.h.
#include "cuda/slab_plan.h"

#include <algorithm>
#include <climits>

#include "core/dtype.h"
#include "core/slabs.h"

namespace softmax {
namespace {

std::int64_t resident_blocks(const DeviceCaps &caps, const Policy &policy) {
  return std::int64_t{caps.sm_count} * policy.blocks_per_sm;
}

// Everything but the grid.
void spread(const Policy &policy, const Problem &problem, Launch *launch) {
  const Slabs slabs =
      cut_row(problem.cols, dtype_size(problem.x_dtype), policy.packs, policy.slab_bytes);
  RowArgs &args = launch->args;
  args.slabs = static_cast<std::int32_t>(slabs.count);  // as far as GRID's policy goes
  args.slab_cols = slabs.cols;
  args.row_blocks = std::min(policy.row_blocks, args.slabs);
  launch->block = dim3(static_cast<unsigned>(32 * slabs.warps));
}

void set_teams(std::int64_t teams, Launch *launch) {
  const std::int64_t most = INT_MAX / launch->args.row_blocks;
  const std::int64_t least = 1;
  launch->grid =
      dim3(static_cast<unsigned>(std::max(least, std::min(teams, most)) * launch->args.row_blocks));
}

}  // namespace

void plan_tile(const DeviceCaps &caps, const Policy &policy, const Problem &problem,
               Launch *launch) {
  const std::int64_t row_bytes = problem.cols * dtype_size(problem.x_dtype);
  const std::int64_t rows = tile_rows(row_bytes, policy.slab_bytes, policy.rows_per_block);
  RowArgs &args = launch->args;
  args.tile_rows = static_cast<std::int32_t>(rows);
  args.row_lanes = policy.threads_per_row;
  args.row_spread = static_cast<std::int32_t>(row_spread(row_bytes, policy.threads_per_row));
  args.slots = policy.stages;
  args.slot_bytes = static_cast<std::int32_t>(slot_bytes(rows * row_bytes));
  const std::int64_t blocks = std::min(ceil_div(problem.rows, rows), resident_blocks(caps, policy));
  launch->grid = dim3(static_cast<unsigned>(blocks));
  launch->block = dim3(static_cast<unsigned>(policy.threads_per_row * policy.rows_per_block));
  launch->smem_bytes = static_cast<std::size_t>(ring_bytes(args.slot_bytes, args.slots));
}

// A team for every row.
void plan_cluster(const Policy &policy, const Problem &problem, Launch *launch) {
  spread(policy, problem, launch);
  set_teams(problem.rows, launch);
  launch->cluster = static_cast<unsigned>(launch->args.row_blocks);
}

void plan_grid(const DeviceCaps &caps, const Policy &policy, const Problem &problem,
               Launch *launch) {
  spread(policy, problem, launch);
  launch->cooperative = true;
  set_teams(std::min(problem.rows, resident_blocks(caps, policy) / launch->args.row_blocks),
            launch);
}

void fit_grid(std::int64_t resident, const Problem &problem, Launch *launch) {
  RowArgs &args = launch->args;
  args.row_blocks = static_cast<std::int32_t>(
      std::max<std::int64_t>(1, std::min<std::int64_t>(args.row_blocks, resident)));
  set_teams(std::min(problem.rows, resident / args.row_blocks), launch);
}

std::size_t grid_counter_bytes(const Launch &launch) {
  return static_cast<std::size_t>(launch.grid.x / launch.args.row_blocks * kTeamCounterBytes);
}

std::size_t grid_workspace_bytes(const Launch &launch, const Problem &problem) {
  const std::size_t teams = launch.grid.x / launch.args.row_blocks;
  return grid_counter_bytes(launch) +
         teams * 2 * launch.args.slabs * part_bytes(accumulator_size(problem.x_dtype));
}

}  // namespace softmax
