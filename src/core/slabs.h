// How a row is cut into slabs, and what a block of the slab kernels needs of shared memory. A
// function of N and the types alone: the cut decides the order of additions.
#pragma once

#include <cstdint>

#include "core/held_rows.h"
#include "core/window.h"

namespace softmax {

struct Slabs {
  std::int64_t count = 0;  // in a row
  std::int32_t cols = 0;   // of a slab; the last one may have fewer
  std::int32_t warps = 0;  // that share a slab, a run of columns each
};

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t multiple) {
  return ceil_div(a, multiple) * multiple;
}

// Runs of a row, at most, that the shared memory of CLUSTER's blocks has room for.
constexpr int kMostClusterRuns = 512;

// What a warp has room for: `packs` words of 16 bytes a lane.
constexpr std::int64_t run_bytes(int packs) { return std::int64_t{32} * 16 * packs; }

// Of a row with so many columns, in a run.
constexpr std::int64_t run_cols_of(std::int64_t cols, int element_bytes, int packs) {
  return std::int64_t{run_words(packs, cols, element_bytes)} * (kHeldPackBytes / element_bytes);
}

// How many runs a row has.
constexpr std::int64_t runs_of(std::int64_t cols, int element_bytes, int packs) {
  return ceil_div(cols, run_cols_of(cols, element_bytes, packs));
}

// Slabs as equal as whole runs allow, of at most `slab_bytes` (and a run: the rounding). `cols` is
// at least 1: select() asks for no row without columns.
constexpr Slabs cut_row(std::int64_t cols, int element_bytes, int packs, std::int64_t slab_bytes) {
  const std::int64_t run_cols = run_cols_of(cols, element_bytes, packs);
  const std::int64_t runs = runs_of(cols, element_bytes, packs);
  const std::int64_t most_warps = slab_bytes / run_bytes(packs);
  const std::int64_t wanted = ceil_div(runs, most_warps < 1 ? 1 : most_warps);
  const std::int64_t warps = ceil_div(runs, wanted);
  const std::int64_t slab = warps * run_cols;
  Slabs result;
  result.count = ceil_div(cols, slab);
  result.cols = static_cast<std::int32_t>(slab);
  result.warps = static_cast<std::int32_t>(warps);
  return result;
}

// A slot holds a range at any offset from a line's boundary.
constexpr std::int64_t slot_bytes(std::int64_t range_bytes) {
  return round_up(range_bytes + kLineBytes, kLineBytes);
}

// Blocks of a cluster, at most.
constexpr int most_cluster_blocks(int compute_capability) {
  return compute_capability < 120 ? 16 : 8;
}

// CLUSTER with rows on their way: warps of a block, at most, and a slot for a warp's run.
constexpr int kStreamWarps = 16;
constexpr std::int64_t stream_slot_bytes(int packs) { return slot_bytes(run_bytes(packs)); }

// A row's part, as it travels: RowPart of the accumulator type.
constexpr std::int64_t part_bytes(int accumulator_bytes) { return 4 * accumulator_bytes; }

// GRID: parts of a row, at most, that one warp merges alone.
constexpr int kFewParts = 128;

// GRID: a line for the counter of a team, so that teams do not wait on each other's.
constexpr std::int64_t kTeamCounterBytes = 128;

// Slots and their barriers.
constexpr std::int64_t ring_bytes(std::int64_t slot, int slots) { return (slot + 8) * slots; }

// TILE: how far apart the rows are that a warp takes together, as a power of two, for its lanes to
// meet different banks of shared memory: as much as makes the distance an odd multiple of the bytes
// that a row's lanes read at once, as far as a block's warps go.
constexpr int row_spread_bits(std::int64_t row_bytes, int lanes_bytes, int warps) {
  const std::int64_t power_of_two_in_row = row_bytes & -row_bytes;
  int bits = 0;
  while (2 << bits <= warps && (power_of_two_in_row << bits) < lanes_bytes) ++bits;
  return bits;
}

}  // namespace softmax
