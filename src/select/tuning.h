// Tuning rows: what AUTO takes at which N, one table per architecture, measured.
#pragma once

#include <cstdint>

#include "core/problem.h"
#include "select/order.h"

namespace softmax {

// Up to and including `max_cols` columns, `algo` is the best there is. Two pairs may follow; they
// end at a number of rows, so only the first of them is for every call: it must be another schedule
// of the same order of additions, since a row's bits may not depend on M.
struct TuningRow {
  std::int64_t max_cols;
  std::int32_t algo;
  std::int64_t few_rows = 0;  // up to and including so many rows: few_algo
  std::int32_t few_algo = SOFTMAX_ALGO_AUTO;
  std::int64_t adaptive_rows = 0;  // the same with SOFTMAX_FLAG_M_ADAPTIVE: any algorithm
  std::int32_t adaptive_algo = SOFTMAX_ALGO_AUTO;
};

constexpr std::int64_t kNoLimit = INT64_MAX;

// A pair is absent altogether or whole.
constexpr bool is_sound(const TuningRow &row) {
  const bool has_few = row.few_algo != SOFTMAX_ALGO_AUTO;
  const bool has_adaptive = row.adaptive_algo != SOFTMAX_ALGO_AUTO;
  return row.max_cols > 0 && order_class(row.algo) != 0 && has_few == (row.few_rows > 0) &&
         has_adaptive == (row.adaptive_rows > 0) &&
         (!has_few || same_order(row.algo, row.few_algo)) &&
         (!has_adaptive || order_class(row.adaptive_algo) != 0);
}

// In rising order of max_cols, and ending with a row without a limit, so that every N has one.
constexpr bool is_sound(const TuningRow *rows, int count) {
  std::int64_t previous = 0;
  for (int i = 0; i < count; ++i) {
    if (!is_sound(rows[i]) || rows[i].max_cols <= previous) return false;
    previous = rows[i].max_cols;
  }
  return previous == kNoLimit;
}

struct TuningTable {
  const char *name;
  const TuningRow *rows;
  int count;
};

// The table for a device, a problem's types and the length of its rows: whether a row is a multiple
// of 16 bytes decides with, since it decides how most rows are aligned; and of those that are,
// whether it fills lanes badly (is_ragged).
TuningTable tuning_table(const DeviceCaps &caps, const Problem &problem);

// The same of the general call on CUDA, by how rows lie.
TuningTable general_table(const DeviceCaps &caps, std::uint32_t features);

// What is left where the table's algorithm, and every other that reads a row once, declines:
// algorithms 1 to 6, which take everything.
TuningTable ladder_table(const DeviceCaps &caps, std::int32_t x_dtype, std::int64_t cols);

}  // namespace softmax
