// Planning launches of the kernels that stage rows in shared memory. See slab_plan.h.
#include "cuda/slab_plan.h"

#include <algorithm>

#include "core/dtype.h"
#include "core/slabs.h"

namespace softmax {
namespace {

constexpr std::int64_t kCounterBytes = 128;  // TeamCounter

int accumulator_bytes(const Problem &problem) {
  return problem.x_dtype == SOFTMAX_DTYPE_F64 ? 8 : 4;
}

std::int64_t resident_blocks(const DeviceCaps &caps, const Policy &policy) {
  return std::int64_t{caps.sm_count} * policy.blocks_per_sm;
}

void cut(const Policy &policy, const Problem &problem, Launch *launch) {
  const int size = dtype_size(problem.x_dtype);
  const Slabs slabs = cut_row(problem.cols, size, policy.slab_bytes);
  RowArgs &args = launch->args;
  args.slabs = slabs.count;
  args.slab_cols = slabs.cols;
  args.segment_cols = slabs.segment_cols;
  args.slots = policy.stages;
  args.slot_bytes = static_cast<std::int32_t>(slot_bytes(std::int64_t{slabs.cols} * size));
  args.row_blocks = std::min(policy.row_blocks, slabs.count);
  launch->block = dim3(static_cast<unsigned>(32 * slabs.warps));
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
  const std::int64_t blocks =
      std::min(ceil_div(problem.rows, rows), resident_blocks(caps, policy));
  launch->grid = dim3(static_cast<unsigned>(blocks));
  launch->block = dim3(static_cast<unsigned>(policy.threads_per_row * policy.rows_per_block));
  launch->smem_bytes =
      static_cast<std::size_t>(slab_smem_bytes(args.slot_bytes, args.slots, 0));
}

void plan_cluster(const DeviceCaps &caps, const Policy &policy, const Problem &problem,
                  Launch *launch) {
  cut(policy, problem, launch);
  RowArgs &args = launch->args;
  // A cluster is a power of two of blocks, all of which must find room in one part of the card.
  launch->cluster = static_cast<unsigned>(args.row_blocks);
  const std::int64_t teams = std::max<std::int64_t>(
      1, std::min(problem.rows, resident_blocks(caps, policy) / args.row_blocks));
  launch->grid = dim3(static_cast<unsigned>(teams * args.row_blocks));
  launch->smem_bytes = static_cast<std::size_t>(
      slab_smem_bytes(args.slot_bytes, args.slots,
                      2 * args.slabs * part_bytes(accumulator_bytes(problem))));
}

void plan_grid(const DeviceCaps &caps, const Policy &policy, const Problem &problem,
               Launch *launch) {
  cut(policy, problem, launch);
  RowArgs &args = launch->args;
  launch->cooperative = true;
  const std::int64_t teams = std::max<std::int64_t>(
      1, std::min(problem.rows, resident_blocks(caps, policy) / args.row_blocks));
  launch->grid = dim3(static_cast<unsigned>(teams * args.row_blocks));
  launch->smem_bytes = static_cast<std::size_t>(slab_smem_bytes(args.slot_bytes, args.slots, 0));
}

std::size_t grid_counter_bytes(const Launch &launch) {
  return static_cast<std::size_t>(launch.grid.x / launch.args.row_blocks * kCounterBytes);
}

std::size_t grid_workspace_bytes(const Launch &launch, const Problem &problem) {
  const std::size_t teams = launch.grid.x / launch.args.row_blocks;
  return grid_counter_bytes(launch) + teams * 2 * launch.args.slabs *
                                          part_bytes(accumulator_bytes(problem));
}

}  // namespace softmax
