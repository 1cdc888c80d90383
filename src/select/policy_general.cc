// The policies of the general call on CUDA.
//
// WARP, BLOCK and CLUSTER hold dense rows in registers and differ by how many threads a row has;
// COLUMN holds rows that lie across memory; ONLINE takes everything, in float64.
#include <algorithm>
#include <cinttypes>
#include <climits>

#include "core/column_tile.h"
#include "core/dtype.h"
#include "core/features.h"
#include "core/held_column.h"
#include "select/policy.h"

namespace softmax {
namespace {

constexpr int kWarp = 32;
constexpr int kVectorBytes = 16;
constexpr int kMostThreads = 512;  // of a block, for one row
constexpr int kWarpBlockThreads = 128;
constexpr int kWideThreads = 256;
constexpr std::int64_t kWideWarpCols = 1024;
constexpr int kMostAddedValues = 16;  // a thread, with an additive mask

// Gradients have two tensors in registers: of each a thread has four words, or two of short rows
// and where 16-bit log-softmax is made of x again, whose arithmetic takes more registers.
constexpr int kGradientWords = 4;
constexpr int kFewGradientWords = 2;
constexpr std::int64_t kShortGradientCols = 64;

bool is_added(const Problem &p) { return (p.features & kFeatureAdditiveMask) != 0; }
bool is_backward(const Problem &p) { return (p.features & kFeatureBackward) != 0; }
// What is held in registers: of BACKWARD what p is taken from.
std::int32_t held_dtype(const Problem &p) {
  const bool from_y = is_backward(p) && (p.features & kFeatureGivenStats) == 0;
  return from_y ? p.y_dtype : p.x_dtype;
}
// Elements that a thread holds where rows are long.
std::int64_t held_values(const Problem &p) {
  if (!is_backward(p)) return is_added(p) ? kMostAddedValues : 32;
  const int size = dtype_size(held_dtype(p));
  const bool is_few = size == 2 && p.is_log() && (p.features & kFeatureGivenStats) != 0;
  return (is_few ? kFewGradientWords : kGradientWords) * kVectorBytes / size;
}
// Of a block that has a part of a row: two are resident, or of those with fewer registers two
// again.
int usual_threads(const Problem &p) {
  return is_backward(p) || is_added(p) ? kMostThreads : kMostThreads / 2;
}
bool has_no_kernel_of_gradients(std::int32_t dtype) {
  return dtype_size(dtype) == 1 || dtype == SOFTMAX_DTYPE_F64;
}

// What all that hold rows on chip have in common, but for gradients.
bool takes_types(const DeviceCaps &caps, const Problem &p, char *why, std::size_t cap) {
  const bool has_f8 = dtype_size(p.x_dtype) == 1 || dtype_size(p.y_dtype) == 1;
  if (has_f8 && caps.compute_capability < 89) {
    return decline(why, cap, "takes 8-bit types from compute capability 8.9 on");
  }
  if (p.x_dtype == SOFTMAX_DTYPE_F64 || p.y_dtype == SOFTMAX_DTYPE_F64) {
    return decline(why, cap, "computes in float32, and %s -> %s needs float64",
                   dtype_name(p.x_dtype), dtype_name(p.y_dtype));
  }
  return true;
}

bool takes_rows(const DeviceCaps &caps, const Problem &p, char *why, std::size_t cap) {
  if ((p.features & (kFeatureInner | kFeatureStrides)) != 0) {
    return decline(why, cap, "takes rows whose elements lie side by side");
  }
  if ((p.features & kFeatureSoftcap) != 0) return decline(why, cap, "has no soft-cap");
  if (is_backward(p)) {
    if (is_added(p)) return decline(why, cap, "takes no gradients with an additive mask");
    const std::int32_t held = held_dtype(p);
    if (has_no_kernel_of_gradients(held) || has_no_kernel_of_gradients(p.x_dtype)) {
      return decline(why, cap, "takes gradients in f32, f16 and bf16");
    }
    if ((p.features & kFeatureDyType) != 0 || (held != p.x_dtype && held != SOFTMAX_DTYPE_F32)) {
      return decline(why, cap, "takes gradients whose y, or x, and dy have one type: dx's, or f32");
    }
    return true;
  }
  return takes_types(caps, p, why, cap);
}

int most_cluster_blocks(const DeviceCaps &caps) {
  return column_most_blocks(caps.compute_capability);
}

// `values` a thread, `threads` of `blocks` blocks a row.
bool take_rows(const Problem &p, int values, int threads, int blocks, Policy *policy, char *why,
               std::size_t cap) {
  if (is_added(p) && values > kMostAddedValues) {
    return decline(why, cap, "has no room for so many columns with an additive mask");
  }
  const int size = dtype_size(held_dtype(p));
  policy->packs = values * size / kVectorBytes;
  policy->threads_per_row = threads;
  policy->rows_per_block = threads > kWarp ? 1 : kWarpBlockThreads / threads;
  policy->row_blocks = blocks;
  policy->cluster = blocks > 1 ? blocks : 0;
  policy->vec_bytes = kVectorBytes;
  const std::int64_t most = INT32_MAX / blocks * std::int64_t{policy->rows_per_block};
  return p.rows <= most || decline(why, cap, "has no grid for %" PRId64 " rows", p.rows);
}

int warps_for(std::int64_t cols, std::int64_t values) {
  const std::int64_t a_warp = kWarp * values;
  return static_cast<int>((cols + a_warp - 1) / a_warp);
}

}  // namespace

bool warp_general_policy(const DeviceCaps &caps, const Problem &p, Policy *policy, char *why,
                         std::size_t cap) {
  if (!takes_rows(caps, p, why, cap)) return false;
  const int size = dtype_size(held_dtype(p));
  const std::int64_t most = kWarp * (is_backward(p) ? held_values(p) : 32);
  if (p.cols > most) {
    return decline(why, cap, "a warp holds at most %" PRId64 " columns", most);
  }
  // What a thread does once for its row is a hundred instructions and more: many values, as long as
  // a few lanes share the row. (f32 to bf16, share of a copy's speed: 128 columns 0.98 with 32
  // values, 0.57 with 8; 64 columns 0.68 with 32, 0.91 with 16.)
  std::int64_t values = p.cols > 64 ? 32 : p.cols > 16 ? 16 : 8;
  values = std::max<std::int64_t>(values, kVectorBytes / size);
  if (is_added(p)) values = std::min<std::int64_t>(values, kMostAddedValues);
  if (is_backward(p)) {
    // Few values, so that more of a row's loads are on their way at once, but where elements are
    // few bytes, or take exponentials in float64.
    const bool is_short = (size > 2 && !p.is_log()) || p.cols <= kShortGradientCols;
    values = is_short ? kFewGradientWords * kVectorBytes / size : held_values(p);
  }
  int lanes = 1;
  while (lanes < kWarp && lanes * values < p.cols) lanes *= 2;
  while (lanes * values < p.cols) values *= 2;
  return take_rows(p, static_cast<int>(values), lanes, 1, policy, why, cap);
}

bool block_general_policy(const DeviceCaps &caps, const Problem &p, Policy *policy, char *why,
                          std::size_t cap) {
  if (!takes_rows(caps, p, why, cap)) return false;
  const std::int64_t values = held_values(p);
  // Where there are no clusters, twice as many threads rather than two passes.
  const int threads = caps.compute_capability < 90 ? kMostThreads : usual_threads(p);
  if (p.cols > threads * values) {
    return decline(why, cap, "a block holds at most %" PRId64 " columns", threads * values);
  }
  const int warps = std::max(2, warps_for(p.cols, values));
  return take_rows(p, static_cast<int>(values), warps * kWarp, 1, policy, why, cap);
}

bool cluster_general_policy(const DeviceCaps &caps, const Problem &p, Policy *policy, char *why,
                            std::size_t cap) {
  if (!takes_rows(caps, p, why, cap)) return false;
  if (caps.compute_capability < 90) {
    return decline(why, cap, "needs clusters: compute capability 9.0 or above, and this is %d.%d",
                   caps.compute_capability / 10, caps.compute_capability % 10);
  }
  const int most_blocks = most_cluster_blocks(caps);
  const std::int64_t values = held_values(p);
  if (p.cols > most_blocks * kMostThreads * values) {
    return decline(why, cap, "a cluster holds at most %" PRId64 " columns",
                   most_blocks * kMostThreads * values);
  }
  int blocks = 2;
  while (blocks < most_blocks && blocks * usual_threads(p) * values < p.cols) blocks *= 2;
  const int warps = std::max(2, warps_for((p.cols + blocks - 1) / blocks, values));
  return take_rows(p, static_cast<int>(values), warps * kWarp, blocks, policy, why, cap);
}

namespace {

// Of rows without number side by side: a launch makes tiles that suit the rows that there are.
ColumnTile endless(ColumnTile tile, int quad_rows) {
  tile.quad_rows = quad_rows;
  tile.groups = INT32_MAX;
  tile.inner_groups = INT32_MAX;
  return tile;
}

void take_column(const ColumnShape &shape, const ColumnTile &tile, Policy *policy) {
  policy->threads_per_row = shape.threads;
  policy->rows_per_block = tile.rows();
  policy->packs = shape.quads;
  policy->row_blocks = shape.blocks;
  policy->cluster = shape.blocks > 1 ? shape.blocks : 0;
}
bool has_grid(const ColumnShape &shape, const Problem &p, char *why, std::size_t cap) {
  return p.rows <= INT_MAX / shape.blocks ||
         decline(why, cap, "has no grid for %" PRId64 " rows", p.rows);
}

// Where rows fit in registers.
bool take_held_column(const DeviceCaps &caps, const Problem &p, Policy *policy, char *why,
                      std::size_t cap) {
  const int size = dtype_size(p.x_dtype);
  const HeldSums sums = held_column_sums(p);
  const ColumnShape shape = held_column_shape(p.cols, size, most_cluster_blocks(caps));
  const int lanes = held_column_lanes(shape, p.rows, size);
  ColumnTile tile = endless(held_column_tile(p.rows, p.rows, lanes), lanes);
  tile.width = held_column_width(shape, tile, size, sums,
                                 caps.smem_per_block_bytes - kColumnStaticBytes, caps.sm_count);
  take_column(shape, tile, policy);
  policy->vec_bytes = lanes * size;
  policy->smem_bytes = held_column_room(shape, tile, sums).bytes;
  return has_grid(shape, p, why, cap);
}

}  // namespace

bool column_general_policy(const DeviceCaps &caps, const Problem &p, Policy *policy, char *why,
                           std::size_t cap) {
  if ((p.features & kFeatureInner) == 0) {
    return decline(why, cap,
                   "takes rows that lie side by side: a softmax axis that is not innermost");
  }
  constexpr std::uint32_t kNot = kFeatureSoftcap | kFeatureAdditiveMask | kFeatureBackward;
  if ((p.features & kNot) != 0) {
    return decline(why, cap, "has no soft-cap, no additive mask and no backward direction");
  }
  if (!takes_types(caps, p, why, cap)) return false;
  if (is_held_column(p, caps.compute_capability)) {
    return take_held_column(caps, p, policy, why, cap);
  }
  const int held_size = column_held_size(dtype_size(p.x_dtype));
  const bool has_mask = (p.features & kFeatureBoolMask) != 0;
  const ColumnShape shape = column_shape(p.cols, held_size, most_cluster_blocks(caps));
  ColumnTile tile = endless(column_tile(shape, p.rows, p.rows), kQuad);
  tile.width = column_width(shape, tile, held_size, has_mask,
                            caps.smem_per_block_bytes - kColumnStaticBytes, caps.sm_count);
  if (tile.width == 0) {
    return decline(why, cap,
                   "holds rows in the shared memory of at most %d blocks, and %" PRId64
                   " columns do not fit",
                   most_cluster_blocks(caps), p.cols);
  }
  take_column(shape, tile, policy);
  policy->vec_bytes = kQuad * dtype_size(p.x_dtype);
  policy->smem_bytes = column_room(shape, tile, held_size, has_mask).bytes;
  return has_grid(shape, p, why, cap);
}

bool online_general_policy(const DeviceCaps &, const Problem &p, Policy *policy, char *,
                           std::size_t) {
  policy->threads_per_row = p.cols <= kWideWarpCols ? kWarp : kWideThreads;
  policy->rows_per_block = kWideThreads / policy->threads_per_row;
  return true;
}

bool no_general_policy(const DeviceCaps &, const Problem &, Policy *, char *why, std::size_t cap) {
  return decline(why, cap, "takes contiguous rows of the headline types, and nothing else");
}

}  // namespace softmax
