// Planning launches of CLUSTER with rows on their way. See stream_plan.h.
#include "cuda/stream_plan.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>

#include "core/dtype.h"
#include "core/slabs.h"

namespace softmax {
namespace {

constexpr int kNarrowWarps = 16;
constexpr int kWideWarps = 32;
// Blocks with fewer warps meet more often than they work.
constexpr int kLeastWarps = 6;

struct Shape {
  int blocks = 0;  // that share a row; 0: none found
  int teams = 0;   // at once
  bool is_wide = false;
};

// Shapes that have been worked out, as (key, shape) in one word each. A slot lost to a collision is
// only worked out again.
class KnownShapes {
 public:
  bool find(std::uint64_t key, Shape *shape) const {
    const std::uint64_t word = slot(key).load(std::memory_order_relaxed);
    if (word == 0 || word >> kShapeBits != key >> kShapeBits) return false;
    shape->blocks = static_cast<int>(word & 31);
    shape->is_wide = (word >> 5 & 1) != 0;
    shape->teams = static_cast<int>(word >> 6 & kMostTeams);
    return true;
  }
  void insert(std::uint64_t key, const Shape &shape) {
    const std::uint64_t kept = static_cast<std::uint64_t>(shape.blocks) |
                               (shape.is_wide ? 32u : 0u) |
                               static_cast<std::uint64_t>(shape.teams) << 6;
    slot(key).store(key >> kShapeBits << kShapeBits | kept, std::memory_order_relaxed);
  }

  static std::uint64_t key(const void *kernel, std::int64_t runs, int device) {
    std::uint64_t hash = reinterpret_cast<std::uintptr_t>(kernel);
    hash = (hash ^ static_cast<std::uint64_t>(runs)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
    hash = (hash ^ static_cast<std::uint64_t>(device)) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
  }

  static constexpr int kMostTeams = 1023;

 private:
  std::atomic<std::uint64_t> &slot(std::uint64_t key) const { return slots_[key >> 56]; }
  static constexpr int kShapeBits = 16;
  mutable std::atomic<std::uint64_t> slots_[256] = {};
};

KnownShapes known_shapes;

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
  const int most_warps = is_wide ? kWideWarps : kNarrowWarps;
  std::int64_t last_warps = 0;
  for (int blocks = 2; blocks <= most_blocks; ++blocks) {
    const std::int64_t warps = ceil_div(runs, blocks);
    if (warps > most_warps || warps == last_warps) continue;
    last_warps = warps;
    if (warps < kLeastWarps && best->blocks != 0) break;
    set_shape(runs, blocks, launch);
    int teams = 0;
    if (cudaError_t error = resident_clusters(*launch, caps.ordinal, &teams)) return error;
    teams = std::min(teams, KnownShapes::kMostTeams);
    const double value = worth(runs, warps, teams);
    if (teams == 0 || value < *best_worth) continue;
    *best_worth = value;
    *best = {blocks, teams, is_wide};
  }
  return cudaSuccess;
}

cudaError_t find_shape(const DeviceCaps &caps, std::int64_t runs, const StreamKernels &kernels,
                       Launch *launch, Shape *shape) {
  const int most_blocks = caps.compute_capability < 120 ? 16 : 8;
  double narrow_worth = 0.0;
  launch->kernel = kernels.narrow;
  if (cudaError_t error = best_of(caps, runs, false, most_blocks, launch, shape, &narrow_worth)) {
    return error;
  }
  // An H200 has 2112 narrow warps at once. With 1800 of them at work they are quicker than any
  // number of wide ones, with 1400 slower.
  const int all = kNarrowWarps * caps.sm_count;
  if (narrow_worth >= 0.7 * all) return cudaSuccess;
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
  const std::uint64_t key = KnownShapes::key(kernels.narrow, runs, caps.ordinal);
  if (!known_shapes.find(key, &shape)) {
    if (cudaError_t error = find_shape(caps, runs, kernels, launch, &shape)) return error;
    if (shape.blocks == 0) return cudaErrorInvalidConfiguration;
    known_shapes.insert(key, shape);
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
