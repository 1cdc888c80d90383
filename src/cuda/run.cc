// One call on a CUDA device: are the buffers the device's own, and the launch.
#include <algorithm>
#include <climits>

#include "core/algo.h"
#include "core/dtype.h"
#include "core/held_rows.h"
#include "core/slabs.h"
#include "cuda/backend.h"
#include "cuda/driver.h"
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/pointers.h"
#include "cuda/slab_plan.h"
#include "cuda/stream_plan.h"

namespace softmax {
namespace {

// How the rows lie in memory: kernels differ by it, and no bit does.
RowAccess access_of(const Problem &problem, const Buffers &buffers) {
  return row_access(problem.cols, dtype_size(problem.x_dtype),
                    reinterpret_cast<std::uintptr_t>(buffers.x),
                    reinterpret_cast<std::uintptr_t>(buffers.y));
}

// Rows in registers: the kernel also depends on what a thread holds.
const void *held_kernel_for(const Policy &policy, const Problem &problem, const Buffers &buffers) {
  const auto look_up = [&](auto kernel_for_rows) {
    return kernel_for_rows(problem.x_dtype, problem.y_dtype, policy.packs,
                           access_of(problem, buffers));
  };
  switch (policy.algo) {
    case SOFTMAX_ALGO_WARP: return look_up(warp_kernel_for);
    case SOFTMAX_ALGO_BLOCK: return look_up(block_kernel_for);
    case SOFTMAX_ALGO_CLUSTER: return look_up(cluster_kernel_for);
    case SOFTMAX_ALGO_GRID: return look_up(grid_kernel_for);
    default: return nullptr;
  }
}

const void *kernel_for(const Policy &policy, const Problem &problem, const Buffers &buffers) {
  const std::int32_t x_dtype = problem.x_dtype;
  const std::int32_t y_dtype = problem.y_dtype;
  if (policy.few_lanes > 0) return few_kernel_for(x_dtype, y_dtype, problem.is_log());
  switch (policy.algo) {
    case SOFTMAX_ALGO_NAIVE: return naive_kernel_for(x_dtype, y_dtype);
    case SOFTMAX_ALGO_SHARED: return shared_kernel_for(x_dtype, y_dtype);
    case SOFTMAX_ALGO_SHUFFLE: return shuffle_kernel_for(x_dtype, y_dtype);
    case SOFTMAX_ALGO_VECTOR: return vector_kernel_for(x_dtype, y_dtype);
    case SOFTMAX_ALGO_ONLINE: return online_kernel_for(x_dtype, y_dtype);
    case SOFTMAX_ALGO_WARP_ONLINE: return warp_online_kernel_for(x_dtype, y_dtype);
    case SOFTMAX_ALGO_TILE:
      return tile_kernel_for(x_dtype, y_dtype, policy.threads_per_row, policy.packs,
                             used_packs(problem.cols, dtype_size(x_dtype), policy.threads_per_row));
    case SOFTMAX_ALGO_REFERENCE: return reference_kernel_for(x_dtype, y_dtype);
    default: return held_kernel_for(policy, problem, buffers);
  }
}

Launch plan(const DeviceCaps &caps, const Policy &policy, const Problem &problem,
            const Buffers &buffers) {
  Launch launch;
  launch.args.x = buffers.x;
  launch.args.y = buffers.y;
  launch.args.rows = problem.rows;
  launch.args.cols = problem.cols;
  launch.args.is_log = problem.is_log();
  launch.args.empty_is_zero = problem.empty_is_zero();
  launch.kernel = kernel_for(policy, problem, buffers);
  switch (policy.algo) {
    case SOFTMAX_ALGO_TILE:
      if (policy.few_lanes > 0) break;
      plan_tile(policy, problem, buffers, &launch);
      return launch;
    case SOFTMAX_ALGO_CLUSTER:
      // With rows on their way it has other kernels and plans, as GRID has.
      if (policy.stages == 0) plan_cluster(policy, problem, &launch);
      return launch;
    case SOFTMAX_ALGO_GRID:
      // As above.
      if (policy.stages == 0) plan_grid(caps, policy, problem, &launch);
      return launch;
    default: break;
  }
  // Rows go on grid.x, whose limit is 2^31 - 1 blocks; the kernels loop over what is left.
  const std::int64_t blocks = (problem.rows + policy.rows_per_block - 1) / policy.rows_per_block;
  launch.grid = dim3(static_cast<unsigned>(blocks < INT_MAX ? blocks : INT_MAX));
  launch.block = dim3(static_cast<unsigned>(policy.threads_per_row),
                      static_cast<unsigned>(policy.rows_per_block));
  if (policy.few_lanes > 0) {
    const int accumulator = accumulator_size(problem.x_dtype);
    launch.args.row_lanes = policy.few_lanes;
    launch.args.packs = policy.packs;
    const int size = dtype_size(problem.x_dtype);
    launch.args.is_cut = policy.algo == SOFTMAX_ALGO_BLOCK;
    launch.args.slab_cols = static_cast<std::int32_t>(
        launch.args.is_cut ? run_cols_of(problem.cols, size, policy.packs) : problem.cols);
    launch.args.unit_step = goes_by_units(problem.cols, size) ? policy.few_lanes : 1;
    launch.args.keeps_terms =
        is_half_to_half(size, dtype_size(problem.y_dtype)) && !launch.args.is_cut &&
        (policy.algo == SOFTMAX_ALGO_TILE || goes_by_units(problem.cols, size));
    launch.smem_bytes = static_cast<std::size_t>(policy.smem_bytes - few_fixed_bytes(accumulator));
  } else if (policy.algo == SOFTMAX_ALGO_WARP) {
    // A lane of WARP takes part in several of a block's rows.
    launch.block.y = kWarpBlockThreads / launch.block.x;
  }
  return launch;
}

// In the caller's workspace where it is large enough and lies as counters must, else in
// stream-ordered memory, which in a capture becomes the graph's own. The first `zeros` bytes are 0
// before the launch.
cudaError_t enqueue_with_workspace(Launch *launch, std::size_t bytes, std::size_t zeros,
                                   const Buffers &buffers, const DeviceCaps &caps,
                                   cudaStream_t stream) {
  const bool lies_well = reinterpret_cast<std::uintptr_t>(buffers.workspace) % 128 == 0;
  const bool own = buffers.workspace == nullptr || buffers.workspace_bytes < bytes || !lies_well;
  launch->args.workspace = buffers.workspace;
  if (own) {
    if (cudaError_t error = cudaMallocAsync(&launch->args.workspace, bytes, stream)) return error;
  }
  cudaError_t error = cudaMemsetAsync(launch->args.workspace, 0, zeros, stream);
  if (error == cudaSuccess) error = enqueue(*launch, caps.ordinal, stream);
  if (own) {
    const cudaError_t freed = cudaFreeAsync(launch->args.workspace, stream);
    if (error == cudaSuccess) error = freed;
  }
  return error;
}

cudaError_t enqueue_grid(Launch *launch, const Problem &problem, const Buffers &buffers,
                         const DeviceCaps &caps, cudaStream_t stream) {
  std::uint32_t blocks_per_sm = 0;
  if (cudaError_t error = resident_blocks_per_sm(*launch, caps.ordinal, &blocks_per_sm)) {
    return error;
  }
  fit_grid(std::int64_t{blocks_per_sm} * caps.sm_count, problem, launch);
  return enqueue_with_workspace(launch, grid_workspace_bytes(*launch, problem),
                                grid_counter_bytes(*launch), buffers, caps, stream);
}

// GRID with rows on their way, and CLUSTER where teams that are no clusters do better. A launch
// whose blocks are not all resident would wait for ever: the driver refuses it, being cooperative,
// and so is one whose block finds no room at all.
cudaError_t enqueue_teams(Launch *launch, const Policy &policy, const Problem &problem,
                          const Buffers &buffers, const DeviceCaps &caps, cudaStream_t stream) {
  const bool lags = plan_grid_stream(caps, policy, problem, launch);
  const auto kernel_for_rows = lags ? grid_lagged_kernel_for : grid_stream_kernel_for;
  launch->kernel = kernel_for_rows(problem.x_dtype, problem.y_dtype, policy.packs,
                                   access_of(problem, buffers), problem.is_log());
  const std::size_t bytes = grid_message_bytes(*launch, problem);
  return enqueue_with_workspace(launch, bytes, bytes, buffers, caps, stream);
}

// With which kernels of its stream a launch overlaps, of those that can wait for the one before
// them themselves (prim/overlap.cuh). What is gained is a launch's latency, which few rows notice;
// the wait costs more where blocks are many and each is short: bf16 131072 x 1024 159 us for 130.
// Letting the next one begin early as well pays where that finds the card all but empty: H200, hot,
// microseconds without, with the one, with both:
//   f32 1 x 128       1.62 1.40 1.20    bf16 16 x 4096    2.44 2.08 1.97
//   f32 1 x 1024      2.08 1.86 1.68    bf16 64 x 32000   5.33 5.00 6.15
//   f32 64 x 8192     3.93 3.59 4.47    bf16 1 x 128256   4.82 4.49 3.76
Overlap overlap_of(const Launch &launch, const Policy &policy, const DeviceCaps &caps,
                   cudaStream_t stream) {
  constexpr std::int64_t kFewThreads = 16384;
  // The legacy default stream waits for others too.
  if (caps.compute_capability < 90 || stream == nullptr || stream == cudaStreamLegacy) {
    return Overlap::kNone;
  }
  switch (policy.algo) {
    case SOFTMAX_ALGO_WARP:
    case SOFTMAX_ALGO_BLOCK:
    case SOFTMAX_ALGO_TILE:
    case SOFTMAX_ALGO_CLUSTER: break;
    default: return Overlap::kNone;
  }
  const std::int64_t threads = std::int64_t{launch.grid.x} * launch.block.x * launch.block.y;
  if (threads > std::int64_t{caps.sm_count} * caps.max_threads_per_sm) return Overlap::kNone;
  return threads <= kFewThreads ? Overlap::kBoth : Overlap::kBefore;
}

cudaError_t enqueue_overlapping(Launch *launch, const Policy &policy, const DeviceCaps &caps,
                                cudaStream_t stream) {
  launch->args.overlap = overlap_of(*launch, policy, caps, stream);
  return enqueue(*launch, caps.ordinal, stream);
}

// CLUSTER with rows on their way.
cudaError_t enqueue_stream(Launch *launch, const Policy &policy, const Problem &problem,
                           const Buffers &buffers, const DeviceCaps &caps, cudaStream_t stream) {
  launch->kernel = cluster_stream_kernel_for(problem.x_dtype, problem.y_dtype, policy.packs,
                                             access_of(problem, buffers), problem.is_log());
  if (cudaError_t error = plan_stream(caps, policy, problem, launch)) return error;
  return enqueue_overlapping(launch, policy, caps, stream);
}

// A cluster for every row where teams found no room, in a context that has a part of the device.
cudaError_t enqueue_clusters(Launch *launch, const Policy &policy, const Problem &problem,
                             const Buffers &buffers, const DeviceCaps &caps, cudaStream_t stream) {
  Policy clusters = policy;
  clusters.row_blocks = std::min(policy.row_blocks, most_cluster_blocks(caps.compute_capability));
  launch->kernel = cluster_kernel_for(problem.x_dtype, problem.y_dtype, policy.packs,
                                      access_of(problem, buffers));
  launch->cooperative = false;
  launch->smem_bytes = 0;
  plan_cluster(clusters, problem, launch);
  return enqueue_overlapping(launch, clusters, caps, stream);
}

cudaError_t enqueue_any(Launch *launch, const Policy &policy, const Problem &problem,
                        const Buffers &buffers, const DeviceCaps &caps, cudaStream_t stream) {
  const bool streams = policy.stages > 0;
  if (policy.algo == SOFTMAX_ALGO_GRID && !streams) {
    return enqueue_grid(launch, problem, buffers, caps, stream);
  }
  if (policy.algo == SOFTMAX_ALGO_GRID || (policy.algo == SOFTMAX_ALGO_CLUSTER && streams)) {
    if (policy.cluster > 0) return enqueue_stream(launch, policy, problem, buffers, caps, stream);
    const cudaError_t error = enqueue_teams(launch, policy, problem, buffers, caps, stream);
    if (error != cudaErrorCooperativeLaunchTooLarge || policy.algo != SOFTMAX_ALGO_CLUSTER) {
      return error;
    }
    return enqueue_clusters(launch, policy, problem, buffers, caps, stream);
  }
  return enqueue_overlapping(launch, policy, caps, stream);
}

}  // namespace

Status cuda_check_buffers(const DeviceCaps &caps, const CudaDevice &device, const Problem &,
                          const Buffers &buffers) {
  PendingErrorScope pending;
  const ContextScope scope(device.context);
  if (Status s = check_pointer("x", buffers.x, caps, pending)) return s;
  return buffers.y == buffers.x ? SOFTMAX_SUCCESS : check_pointer("y", buffers.y, caps, pending);
}

Status cuda_run(const DeviceCaps &caps, const CudaDevice &device, const Policy &policy,
                const Problem &problem, const Buffers &buffers, softmax_stream_t stream) {
  Launch launch = plan(caps, policy, problem, buffers);
  if (launch.kernel == nullptr) {
    return fail(SOFTMAX_STATUS_INTERNAL, "no %s kernel for %s -> %s", algo_name(policy.algo),
                dtype_name(problem.x_dtype), dtype_name(problem.y_dtype));
  }

  PendingErrorScope pending;
  const ContextScope scope(device.context);
  if (!scope.ok()) return fail_context(caps);
  // The calls' own results: cudaGetLastError would also report an older error of the caller's.
  const cudaError_t error = pending(enqueue_any(&launch, policy, problem, buffers, caps, stream));
  return error == cudaSuccess ? SOFTMAX_SUCCESS : fail_launch(caps, policy, error);
}

}  // namespace softmax
