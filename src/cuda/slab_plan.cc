// Planning launches of TILE, CLUSTER and GRID. See slab_plan.h.
#include "cuda/slab_plan.h"

#include <algorithm>
#include <climits>

#include "core/dtype.h"
#include "core/grid_schedule.h"
#include "core/slabs.h"

namespace softmax {
namespace {

std::int64_t resident_blocks(const DeviceCaps &caps, const Policy &policy) {
  return std::int64_t{caps.sm_count} * policy.blocks_per_sm;
}

// Whether results fit where the inputs were, and lie alike in memory's words.
bool takes_place(const Problem &problem, const Buffers &buffers) {
  return dtype_size(problem.x_dtype) == dtype_size(problem.y_dtype) &&
         bulk_shift(reinterpret_cast<std::uintptr_t>(buffers.x)) ==
             bulk_shift(reinterpret_cast<std::uintptr_t>(buffers.y));
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

void plan_tile(const Policy &policy, const Problem &problem, const Buffers &buffers,
               Launch *launch) {
  const int x_size = dtype_size(problem.x_dtype);
  const int y_size = dtype_size(problem.y_dtype);
  const std::int64_t rows = policy.rows_per_block;
  const int threads =
      policy.threads_per_row * policy.rows_per_block / warp_rows_a_lane(policy.packs);
  RowArgs &args = launch->args;
  args.tile_rows = static_cast<std::int32_t>(rows);
  args.spread_bits =
      row_spread_bits(problem.cols * x_size,
                      lanes_bytes(problem.cols, x_size, policy.threads_per_row), threads / 32);
  args.slots = policy.stages;
  args.slot_bytes = static_cast<std::int32_t>(slot_bytes(rows * problem.cols * x_size));
  args.out_bytes = takes_place(problem, buffers)
                       ? 0
                       : static_cast<std::int32_t>(slot_bytes(rows * problem.cols * y_size));
  launch->grid = dim3(static_cast<unsigned>(ceil_div(problem.rows, rows * policy.stages)));
  launch->block = dim3(static_cast<unsigned>(threads));
  launch->smem_bytes = static_cast<std::size_t>(args.slot_bytes * args.slots + args.out_bytes);
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

bool plan_grid_stream(const DeviceCaps &caps, const Policy &policy, const Problem &problem,
                      Launch *launch) {
  spread(policy, problem, launch);
  const int accumulator = accumulator_size(problem.x_dtype);
  const int warps = static_cast<int>(launch->block.x) / 32;
  launch->cooperative = true;
  launch->args.slots = policy.stages;
  launch->args.slot_bytes = static_cast<std::int32_t>(stream_slot_bytes(policy.packs));
  launch->args.parts = policy.algo == SOFTMAX_ALGO_CLUSTER
                           ? static_cast<std::int32_t>(
                                 runs_of(problem.cols, dtype_size(problem.x_dtype), policy.packs))
                           : launch->args.slabs;
  launch->smem_bytes =
      static_cast<std::size_t>(grid_slots_bytes(policy.packs, warps, policy.stages) +
                               grid_row_bytes(launch->args.parts, accumulator));
  const std::int64_t teams = resident_blocks(caps, policy) / launch->args.row_blocks;
  // Each team has as many rows as the others, or one more.
  set_teams(ceil_div(problem.rows, ceil_div(problem.rows, teams)), launch);
  const bool lags = can_lag(launch->args.slabs, launch->args.row_blocks, policy.stages);
  if (lags) launch->block.x += 32;  // a warp that has no run
  return lags;
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

std::size_t grid_message_bytes(const Launch &launch, const Problem &problem) {
  return launch.grid.x / launch.args.row_blocks *
         static_cast<std::size_t>(
             team_message_bytes(launch.args.parts, accumulator_size(problem.x_dtype)));
}

}  // namespace softmax
