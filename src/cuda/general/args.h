// The one argument of every kernel of the general call, as host and device see it.
#pragma once

#include <cstdint>

#include "core/column_tile.h"
#include "core/general.h"
#include "core/held_column.h"
#include "core/scaled_exp.h"
#include "cuda/row_args.h"

namespace softmax {

// `general` and `buffers` are the call's own; layout.rows and layout.cols are its rows and columns.
struct GeneralArgs {
  General general;
  GeneralBuffers buffers;
  std::int32_t x_dtype;
  std::int32_t y_dtype;
  bool is_log;
  bool is_stats;  // op STATS: y is null
  bool empty_is_zero;
  Overlap overlap;

  // ---- of the plan ----

  std::int32_t row_threads;  // that share a row, in a block
  std::int32_t row_blocks;   // that share a row: a cluster, or 1
  std::int32_t ahead;        // to the row that takes this one's place on the card, about
  std::uint32_t zero;        // 0, of which the compiler knows nothing
  ColumnShape column;        // COLUMN
  ColumnTile tile;
  ColumnRoom room;
  HeldColumnRoom held_room;  // COLUMN, where rows are held in registers
  RowScaling scaling;        // of general.scale

  SOFTMAX_HD const Layout &layout() const { return general.layout; }
  // The row is a one-hot: see row_scale in softmax.h.
  SOFTMAX_HD bool is_limit_row(std::int64_t row) const {
    return buffers.row_scale != nullptr && buffers.row_scale[row] == 0.0f;
  }
  // Whether any of row_max, row_sum and lse is an output.
  SOFTMAX_HD bool writes_stats() const {
    return buffers.lse != nullptr ||
           (!general.given_stats && (buffers.row_max != nullptr || buffers.row_sum != nullptr));
  }
};

}  // namespace softmax
