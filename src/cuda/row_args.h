// The one argument of every row kernel, as host and device see it.
#pragma once

#include <cstdint>

namespace softmax {

// With which kernels of its stream one overlaps: see prim/overlap.cuh.
enum class Overlap : std::int8_t { kNone, kBefore, kBoth };

// Offsets are 64-bit throughout.
struct RowArgs {
  const void *x;
  void *y;
  std::int64_t rows;
  std::int64_t cols;
  bool is_log;
  bool empty_is_zero;
  Overlap overlap;
  std::uint32_t zero;  // 0, of which the compiler knows nothing

  // For the kernels that stage rows in shared memory: the ring, and what a slot takes.
  std::int32_t slots;
  std::int32_t slot_bytes;
  std::int32_t tile_rows;    // TILE: whole rows
  std::int32_t out_bytes;    // TILE: for results that do not take their inputs' place
  std::int32_t row_lanes;    // few rows: that share a row, or a run of one
  std::int32_t spread_bits;  // TILE: of 2^this, from one row of a warp to its next
  std::int32_t slab_cols;    // CLUSTER, GRID, few rows: a part of one row
  std::int32_t slabs;        // in a row
  std::int32_t parts;        // of a row, that a team's blocks send each other: slabs', or runs'
  std::int32_t row_blocks;   // that share a row
  std::int32_t packs;        // few rows: of a lane in the order of additions
  bool is_cut;               // few rows: into BLOCK's runs
  bool keeps_terms;          // few rows: of 16 bits, in float32
  std::int32_t unit_step;    // few rows: from one element of a pack to the next
  void *workspace;           // GRID, CLUSTER's teams: see grid.cuh, grid_stream.cuh
};

}  // namespace softmax
