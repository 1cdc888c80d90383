// How COLUMN takes rows of few columns whose neighbours lie side by side, through shared memory: a
// block has a run of neighbouring rows, which is a run of each column's memory, as long as bulk
// copies move well; a thread has some of the rows alone. For host and device.
#pragma once

#include "core/held_column.h"

namespace softmax {

constexpr int kRunThreads = 128;
constexpr int kRunThreadBytes = 8;  // of each column
constexpr int kRunBytes = kRunThreads * kRunThreadBytes;
constexpr int kRunUnit = 16;                 // what bulk copies move is multiples of that
constexpr int kRunLeastBytes = 512;          // shorter ones are for registers
constexpr int kRunTogether = kHeldTogether;  // columns that are taken at a time: the same bits

// Which rows a block takes: `inner` rows, `inner_bytes` of a column's memory, in runs that are as
// long as each other, or nearly.
constexpr ColumnTile column_runs(std::int64_t rows, std::int64_t inner, int size) {
  const std::int64_t inner_bytes = inner * size;
  const std::int64_t runs = (inner_bytes + kRunBytes - 1) / kRunBytes;
  const std::int64_t bytes = (inner_bytes / kRunUnit + runs - 1) / runs * kRunUnit;
  ColumnTile tile = {};
  tile.inner = inner;
  tile.quad_rows = 1;
  tile.width = static_cast<std::int32_t>(bytes / size);
  tile.inner_groups = static_cast<std::int32_t>((inner_bytes + bytes - 1) / bytes);
  tile.groups = rows / inner * tile.inner_groups;
  return tile;
}

// A block's shared memory: a slot for every column, and for as many as are taken at a time.
SOFTMAX_HD int column_run_slots(int cols) {
  return (cols + kRunTogether - 1) / kRunTogether * kRunTogether;
}

}  // namespace softmax
