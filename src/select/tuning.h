// Tuning rows: what AUTO takes at which N, one table per architecture, measured.
#pragma once

#include <cstdint>

#include "core/problem.h"

namespace softmax {

// Up to and including `max_cols` columns, `algo` is the best there is. Tables are in rising order
// of max_cols and end with a row without a limit, so that every problem has an answer.
struct TuningRow {
  std::int64_t max_cols;
  std::int32_t algo;
};

constexpr std::int64_t kNoLimit = INT64_MAX;

struct TuningTable {
  const char *name;
  const TuningRow *rows;
  int count;
};

// The table for a device, an input type, and rows of `cols` elements: whether a row is a multiple
// of 16 bytes decides with, since it decides how most rows are aligned.
TuningTable tuning_table(const DeviceCaps &caps, std::int32_t x_dtype, std::int64_t cols);

}  // namespace softmax
