// The general call on a CUDA device: are the buffers the device's own, and the launch.
#include <algorithm>
#include <climits>

#include "core/algo.h"
#include "core/column_runs.h"
#include "core/dtype.h"
#include "core/held_rows.h"
#include "core/lse_terms.h"
#include "cuda/backend.h"
#include "cuda/driver.h"
#include "cuda/general/args.h"
#include "cuda/general/kernels.h"
#include "cuda/general/row_room.h"
#include "cuda/known_answers.h"
#include "cuda/launch.h"
#include "cuda/pointers.h"

namespace softmax {
namespace {

constexpr int kWarp = 32;
constexpr int kRegisters = 65536;  // of a multiprocessor, from compute capability 7.5 on

struct GeneralLaunch : LaunchShape {
  GeneralArgs args = {};
  bool stays = false;  // blocks take row after row: as many as find room, see share_rows
};

dim3 grid_of(std::int64_t blocks) {
  return dim3(static_cast<unsigned>(std::min<std::int64_t>(blocks, INT_MAX)));
}

// Of kernels that hold rows in 64 registers a thread.
std::int64_t blocks_at_once(const DeviceCaps &caps, int threads) {
  return std::int64_t{caps.sm_count} * (kRegisters / kPersistentRegisters / threads);
}

// Whether the rows of a tensor begin at multiples of so many bytes.
bool has_aligned_rows(const Layout &layout, int tensor, const void *data, int size, int bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % bytes == 0 &&
         layout.pitch(tensor) * size % bytes == 0;
}

// The kernel for log-softmax's gradient from y of rows of whole words without a mask; null for
// other rows, or none.
const void *plain_log_backward_kernel(const Policy &policy, const Problem &problem,
                                      const GeneralArgs &args) {
  const General &general = args.general;
  const Layout &layout = args.layout();
  const int size = dtype_size(problem.x_dtype);
  const auto is_words = [&](int tensor, const void *data) {
    return has_aligned_rows(layout, tensor, data, size, kHeldPackBytes);
  };
  if (!problem.is_log() || general.given_stats || general.dy_dtype != problem.x_dtype ||
      general.mask_kind != SOFTMAX_MASK_NONE || layout.dims > 1 ||
      !is_whole_words(problem.cols, size) || !is_words(kTensorX, args.buffers.dx) ||
      !is_words(kTensorY, args.buffers.y) || !is_words(kTensorDy, args.buffers.dy)) {
    return nullptr;
  }
  return general_log_backward_kernel_for(problem.x_dtype, policy.packs, policy.row_blocks > 1);
}

// A team for every row.
void plan_rows(const DeviceCaps &caps, const Policy &policy, const Problem &problem,
               GeneralLaunch *launch) {
  const General &general = launch->args.general;
  if (general.is_backward()) {
    launch->kernel = plain_log_backward_kernel(policy, problem, launch->args);
    if (launch->kernel == nullptr) {
      launch->kernel = general_backward_kernel_for(
          general.dy_dtype, problem.x_dtype, problem.is_log(), general.given_stats, policy.packs);
    }
  } else {
    launch->kernel = general_rows_kernel_for(
        problem.x_dtype, policy.packs, general.mask_kind == SOFTMAX_MASK_ADDITIVE,
        policy.row_blocks == 1 && policy.threads_per_row > kWarp && !launch->args.is_stats);
  }
  launch->block = dim3(static_cast<unsigned>(policy.threads_per_row),
                       static_cast<unsigned>(policy.rows_per_block));
  if (policy.row_blocks > 1 || policy.threads_per_row > kWarp) {
    launch->smem_bytes = static_cast<std::size_t>(
        exchange_bytes(std::int64_t{policy.row_blocks} + policy.threads_per_row / kWarp));
  }
  const std::int64_t teams = (problem.rows + policy.rows_per_block - 1) / policy.rows_per_block;
  launch->grid = grid_of(teams * policy.row_blocks);
  launch->cluster = static_cast<unsigned>(policy.cluster);
  launch->args.row_blocks = policy.row_blocks;
  launch->args.ahead =
      static_cast<std::int32_t>(blocks_at_once(caps, policy.threads_per_row) / policy.row_blocks);
}

// Blocks, or clusters, that take one row after another.
void plan_to_stay(const Policy &policy, const void *kernel, GeneralLaunch *launch) {
  launch->kernel = kernel;
  launch->block = dim3(static_cast<unsigned>(policy.threads_per_row));
  launch->cluster = static_cast<unsigned>(policy.cluster);
  launch->stays = true;
  launch->args.row_blocks = policy.row_blocks;
}

// Statistics alone, of rows for which there is a kernel that writes nothing else.
bool plan_stats(const Policy &policy, const Problem &problem, GeneralLaunch *launch) {
  const GeneralArgs &args = launch->args;
  if (!args.is_stats || policy.threads_per_row <= kWarp ||
      args.general.mask_kind != SOFTMAX_MASK_NONE || problem.rows > INT_MAX) {
    return false;
  }
  const bool is_lse = args.buffers.row_sum == nullptr && args.buffers.row_scale == nullptr &&
                      problem.cols <= kLseMostCols && LseTerms::take(args.scaling);
  // Twice the elements a thread, where a block has two warps then. In 32768 x 4096 of bf16 70 us
  // for 82; of float32, which has nothing to gain, 134 for 125.
  constexpr int kWideThreads = 4 * kWarp;
  const bool is_wide = is_lse && dtype_size(problem.x_dtype) == 2 &&
                       policy.threads_per_row >= kWideThreads &&
                       policy.threads_per_row % (2 * kWarp) == 0;
  const void *const kernel = general_stats_kernel_for(problem.x_dtype, is_lse, is_wide);
  if (kernel == nullptr) return false;
  plan_to_stay(policy, kernel, launch);
  if (is_wide) {
    launch->args.row_threads = policy.threads_per_row / 2;
    launch->block = dim3(static_cast<unsigned>(launch->args.row_threads));
  }
  return true;
}

// Softmax and nothing beside it, under a boolean mask or none.
bool is_softmax_alone(const Problem &problem, const GeneralArgs &args) {
  const General &general = args.general;
  return problem.op == SOFTMAX_OP_SOFTMAX && !general.is_backward() && !general.given_stats &&
         !args.writes_stats() && args.buffers.sink == nullptr &&
         (general.mask_kind == SOFTMAX_MASK_NONE || general.mask_kind == SOFTMAX_MASK_BOOL_KEEP);
}

// Whether x is aligned words, row after row at one pitch, and what belongs to a word lies together
// in y and in the mask.
bool has_whole_words(const Problem &problem, const GeneralArgs &args) {
  const Layout &layout = args.layout();
  const GeneralBuffers &b = args.buffers;
  const int x_size = dtype_size(problem.x_dtype);
  const int y_size = dtype_size(problem.y_dtype);
  const int cols = kHeldPackBytes / x_size;
  return layout.dims <= 1 && problem.cols % cols == 0 &&
         has_aligned_rows(layout, kTensorX, b.x, x_size, kHeldPackBytes) &&
         has_aligned_rows(layout, kTensorY, b.y, y_size, std::min(kHeldPackBytes, cols * y_size)) &&
         (args.general.mask_kind == SOFTMAX_MASK_NONE ||
          (layout.axis_stride[kTensorMask] == 1 &&
           has_aligned_rows(layout, kTensorMask, b.mask, 1, cols)));
}

// Softmax of rows of whole words that clusters which stay take one after another, where there are
// more than find room at once: a cluster that has but one row is sooner there by itself.
bool plan_persistent(const DeviceCaps &caps, const Policy &policy, const Problem &problem,
                     GeneralLaunch *launch) {
  const GeneralArgs &args = launch->args;
  const int y_size = dtype_size(problem.y_dtype);
  const int values = policy.packs * kHeldPackBytes / dtype_size(problem.x_dtype);
  if (policy.row_blocks == 1 || values != kPersistentValues || problem.rows > INT_MAX ||
      y_size < 2 || y_size > 4 || !is_softmax_alone(problem, args) ||
      !has_whole_words(problem, args)) {
    return false;
  }
  const std::int64_t at_once = blocks_at_once(caps, policy.threads_per_row);
  if (problem.rows * policy.row_blocks <= at_once) return false;
  const void *const kernel = general_persistent_kernel_for(
      problem.x_dtype, args.general.mask_kind == SOFTMAX_MASK_BOOL_KEEP);
  if (kernel == nullptr) return false;
  plan_to_stay(policy, kernel, launch);
  return true;
}

// The same, a block a row. Of float32 and 16 bits.
bool plan_alone(const Policy &policy, const Problem &problem, GeneralLaunch *launch) {
  const GeneralArgs &args = launch->args;
  const int values = policy.packs * kHeldPackBytes / dtype_size(problem.x_dtype);
  if (policy.row_blocks > 1 || policy.threads_per_row <= kWarp || values != kPersistentValues ||
      problem.rows > INT_MAX || !is_softmax_alone(problem, args) ||
      !has_whole_words(problem, args)) {
    return false;
  }
  const void *const kernel = general_alone_kernel_for(problem.x_dtype, problem.y_dtype);
  if (kernel == nullptr) return false;
  launch->kernel = kernel;
  launch->block = dim3(static_cast<unsigned>(policy.threads_per_row));
  launch->grid = grid_of(problem.rows);
  return true;
}

KnownAnswers known_teams;

// As many blocks, or clusters, as find room, each with as many rows as the others or one more.
cudaError_t share_rows(const DeviceCaps &caps, std::int64_t rows, GeneralLaunch *launch) {
  const std::uint64_t key =
      KnownAnswers::key(launch->kernel, launch->block.x, launch->cluster, caps.ordinal);
  std::uint32_t teams = 0;
  if (!known_teams.find(key, &teams)) {
    if (launch->cluster > 1) {
      int clusters = 0;
      const cudaError_t error = resident_clusters(*launch, caps.ordinal, &clusters);
      if (error != cudaSuccess) return error;
      teams = static_cast<std::uint32_t>(clusters);
    } else {
      const cudaError_t error = resident_blocks_per_sm(*launch, caps.ordinal, &teams);
      if (error != cudaSuccess) return error;
      teams *= static_cast<std::uint32_t>(caps.sm_count);
    }
    if (teams == 0) return cudaErrorInvalidConfiguration;
    known_teams.insert(key, teams);
  }
  const std::int64_t each = (rows + teams - 1) / teams;
  launch->grid = grid_of((rows + each - 1) / each * launch->args.row_blocks);
  return cudaSuccess;
}

// In float64; the kernel loops over what its grid leaves.
void plan_wide(const Policy &policy, const Problem &problem, GeneralLaunch *launch) {
  launch->kernel = general_wide_kernel_address();
  launch->block = dim3(static_cast<unsigned>(policy.threads_per_row * policy.rows_per_block));
  launch->grid = grid_of((problem.rows + policy.rows_per_block - 1) / policy.rows_per_block);
}

// Whether the quads of a tensor, so many lanes of it, are aligned words of it.
bool has_whole_quads(const Layout &layout, int tensor, const void *data, int size, int lanes,
                     const ColumnTile &tile) {
  const int last = layout.dims - 1;
  const std::int64_t axis = layout.axis_stride[tensor];
  bool is_whole = reinterpret_cast<std::uintptr_t>(data) % (lanes * size) == 0 &&
                  layout.stride[tensor][last] == 1 &&
                  (lanes == tile.quad_rows ? axis % lanes == 0 : axis == tile.quad_rows);
  for (int d = 0; d < last; ++d) is_whole = is_whole && layout.stride[tensor][d] % lanes == 0;
  return is_whole;
}

void find_whole_quads(const Problem &problem, int lanes, GeneralArgs *args) {
  const Layout &layout = args->layout();
  const GeneralBuffers &b = args->buffers;
  ColumnTile &tile = args->tile;
  const int x_size = dtype_size(problem.x_dtype);
  const int y_size = dtype_size(problem.y_dtype);
  tile.x_is_whole = has_whole_quads(layout, kTensorX, b.x, x_size, lanes, tile);
  tile.y_is_whole = has_whole_quads(layout, kTensorY, b.y, y_size, lanes, tile);
  tile.mask_is_whole = has_whole_quads(layout, kTensorMask, b.mask, 1, lanes, tile);
}

// Whether the rows of a tensor that lie side by side are runs of whole words, of every column.
bool has_word_runs(const Layout &layout, int tensor, const void *data, int size) {
  const auto is_words = [&](std::int64_t elements) { return elements * size % kRunUnit == 0; };
  return reinterpret_cast<std::uintptr_t>(data) % kRunUnit == 0 &&
         layout.stride[tensor][layout.dims - 1] == 1 && is_words(layout.axis_stride[tensor]) &&
         (layout.dims == 1 || is_words(layout.stride[tensor][0]));
}

// Rows that a thread has alone and that are such runs, at one scale.
bool plan_column_runs(const DeviceCaps &caps, const Policy &policy, const Problem &problem,
                      GeneralLaunch *launch) {
  GeneralArgs &args = launch->args;
  const Layout &layout = args.layout();
  const GeneralBuffers &b = args.buffers;
  const int size = dtype_size(problem.x_dtype);
  const std::int64_t inner = layout.extent[layout.dims - 1];
  const bool has_results = !args.is_stats;
  if (caps.compute_capability < 90 || policy.threads_per_row != 1 || b.row_scale != nullptr ||
      b.sink != nullptr || !args.scaling.is_usual || args.scaling.sign < 0.0f || layout.dims > 2 ||
      inner * size < kRunLeastBytes || inner * size % kRunUnit != 0 ||
      !has_word_runs(layout, kTensorX, b.x, size)) {
    return false;
  }
  if (has_results &&
      (problem.x_dtype != problem.y_dtype || !has_word_runs(layout, kTensorY, b.y, size))) {
    return false;
  }
  const void *const kernel =
      column_runs_kernel_for(problem.x_dtype, held_column_sums(problem).apart);
  if (kernel == nullptr) return false;
  args.tile = column_runs(problem.rows, inner, size);
  launch->kernel = kernel;
  launch->block = dim3(kRunThreads);
  launch->grid = grid_of(args.tile.groups);
  launch->smem_bytes =
      static_cast<std::size_t>(column_run_slots(static_cast<int>(problem.cols)) * kRunBytes);
  return true;
}

// In registers.
void plan_held_column(const DeviceCaps &caps, const Policy &policy, const Problem &problem,
                      GeneralLaunch *launch) {
  GeneralArgs &args = launch->args;
  const Layout &layout = args.layout();
  const std::int64_t inner = layout.extent[layout.dims - 1];
  const int size = dtype_size(problem.x_dtype);
  const HeldSums sums = held_column_sums(problem);
  ColumnShape &shape = args.column;
  ColumnTile &tile = args.tile;
  shape = {policy.row_blocks, policy.threads_per_row, policy.packs};
  const int lanes = held_column_lanes(shape, inner, size);
  tile = held_column_tile(problem.rows, inner, lanes);
  tile.width = held_column_width(shape, tile, size, sums,
                                 caps.smem_per_block_bytes - kColumnStaticBytes, caps.sm_count);
  find_whole_quads(problem, lanes, &args);
  args.held_room = held_column_room(shape, tile, sums);
  launch->kernel = sums.apart ? held_column_apart_kernel_for(problem.x_dtype, shape.threads, lanes)
                              : held_column_kernel_for(problem.x_dtype, shape.threads, lanes);
  launch->block = dim3(static_cast<unsigned>(shape.threads * tile.width));
  launch->grid = grid_of((tile.groups + tile.width - 1) / tile.width * shape.blocks);
  launch->cluster = static_cast<unsigned>(policy.cluster);
  launch->smem_bytes = static_cast<std::size_t>(args.held_room.bytes);
}

void plan_column(const DeviceCaps &caps, const Policy &policy, const Problem &problem,
                 GeneralLaunch *launch) {
  GeneralArgs &args = launch->args;
  const Layout &layout = args.layout();
  const int held_size = column_held_size(dtype_size(problem.x_dtype));
  const bool has_mask = args.general.mask_kind == SOFTMAX_MASK_BOOL_KEEP;
  ColumnShape &shape = args.column;
  ColumnTile &tile = args.tile;
  shape = {policy.row_blocks, policy.threads_per_row, policy.packs};
  tile = column_tile(shape, problem.rows, layout.extent[layout.dims - 1]);
  tile.width = column_width(shape, tile, held_size, has_mask,
                            caps.smem_per_block_bytes - kColumnStaticBytes, caps.sm_count);
  find_whole_quads(problem, kQuad, &args);
  args.room = column_room(shape, tile, held_size, has_mask);
  args.row_blocks = shape.blocks;
  launch->kernel = column_kernel_for(problem.x_dtype);
  launch->block = dim3(static_cast<unsigned>(tile.axis_threads(shape.threads) * tile.width));
  launch->grid = grid_of((tile.groups + tile.width - 1) / tile.width * shape.blocks);
  launch->cluster = static_cast<unsigned>(policy.cluster);
  launch->smem_bytes = static_cast<std::size_t>(args.room.bytes);
}

GeneralLaunch plan(const DeviceCaps &caps, const Policy &policy, const Problem &problem,
                   const General &general, const GeneralBuffers &buffers) {
  GeneralLaunch launch;
  GeneralArgs &args = launch.args;
  args.general = general;
  args.buffers = buffers;
  args.x_dtype = problem.x_dtype;
  args.y_dtype = problem.y_dtype;
  args.is_log = problem.is_log();
  args.is_stats = problem.op == SOFTMAX_OP_STATS;
  args.empty_is_zero = problem.empty_is_zero();
  args.overlap = Overlap::kNone;
  args.row_threads = policy.threads_per_row;
  args.row_blocks = 1;
  args.scaling = RowScaling::of(general.scale);
  if (policy.algo == SOFTMAX_ALGO_ONLINE) {
    plan_wide(policy, problem, &launch);
  } else if (policy.algo == SOFTMAX_ALGO_COLUMN &&
             is_held_column(problem, caps.compute_capability)) {
    if (!plan_column_runs(caps, policy, problem, &launch)) {
      plan_held_column(caps, policy, problem, &launch);
    }
  } else if (policy.algo == SOFTMAX_ALGO_COLUMN) {
    plan_column(caps, policy, problem, &launch);
  } else if (!plan_stats(policy, problem, &launch) &&
             !plan_persistent(caps, policy, problem, &launch) &&
             !plan_alone(policy, problem, &launch)) {
    plan_rows(caps, policy, problem, &launch);
  }
  return launch;
}

struct NamedPointer {
  const char *name;
  const void *pointer;
};

}  // namespace

Status cuda_check_general_buffers(const DeviceCaps &caps, const CudaDevice &device,
                                  const GeneralBuffers &b) {
  const NamedPointer all[] = {{"x", b.x},
                              {"y", b.y},
                              {"dy", b.dy},
                              {"dx", b.dx},
                              {"mask", b.mask},
                              {"row_scale", b.row_scale},
                              {"sink", b.sink},
                              {"row_max", b.row_max},
                              {"row_sum", b.row_sum},
                              {"lse", b.lse}};
  PendingErrorScope pending;
  const ContextScope scope(device.context);
  for (const NamedPointer &p : all) {
    if (p.pointer == nullptr) continue;
    if (Status s = check_pointer(p.name, p.pointer, caps, pending)) return s;
  }
  return SOFTMAX_SUCCESS;
}

Status cuda_run_general(const DeviceCaps &caps, const CudaDevice &device, const Policy &policy,
                        const Problem &problem, const General &general,
                        const GeneralBuffers &buffers, softmax_stream_t stream) {
  GeneralLaunch launch = plan(caps, policy, problem, general, buffers);
  if (launch.kernel == nullptr) {
    return fail(SOFTMAX_STATUS_INTERNAL, "no %s kernel for the general call, %s -> %s",
                algo_name(policy.algo), dtype_name(problem.x_dtype), dtype_name(problem.y_dtype));
  }
  PendingErrorScope pending;
  const ContextScope scope(device.context);
  if (!scope.ok()) return fail_context(caps);
  cudaError_t error = launch.stays ? pending(share_rows(caps, problem.rows, &launch)) : cudaSuccess;
  if (error == cudaSuccess) {
    error = pending(enqueue(launch, &launch.args, launch.args.overlap, caps.ordinal, stream));
  }
  return error == cudaSuccess ? SOFTMAX_SUCCESS : fail_launch(caps, policy, error);
}

Status cuda_merge_stats(const DeviceCaps &caps, const CudaDevice &device, std::int64_t parts,
                        std::int64_t rows, const float *part_max, const float *part_sum,
                        float *row_max, float *row_sum, float *lse, softmax_stream_t stream) {
  const NamedPointer all[] = {{"part_max", part_max},
                              {"part_sum", part_sum},
                              {"row_max", row_max},
                              {"row_sum", row_sum},
                              {"lse", lse}};
  PendingErrorScope pending;
  const ContextScope scope(device.context);
  if (!scope.ok()) return fail_context(caps);
  for (const NamedPointer &p : all) {
    if (p.pointer == nullptr) continue;
    if (Status s = check_pointer(p.name, p.pointer, caps, pending)) return s;
  }
  constexpr int kThreads = 128;
  LaunchShape launch;
  launch.kernel = merge_stats_kernel_address();
  launch.block = dim3(kThreads);
  launch.grid = grid_of((rows + kThreads - 1) / kThreads);
  MergeStatsArgs args{parts, rows, part_max, part_sum, row_max, row_sum, lse};
  const cudaError_t error = pending(enqueue(launch, &args, Overlap::kNone, caps.ordinal, stream));
  if (error == cudaSuccess) return SOFTMAX_SUCCESS;
  return fail_cuda(launch_status(error), error, "merging statistics on CUDA device %d: %s (%s)",
                   static_cast<int>(caps.ordinal), cudaGetErrorName(error),
                   cudaGetErrorString(error));
}

}  // namespace softmax
