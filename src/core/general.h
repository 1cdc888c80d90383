// The general call as plain values: what a Problem leaves out, and its buffers. For host and
// device.
#pragma once

#include <cstdint>

#include "core/features.h"
#include "core/layout.h"
#include "softmax.h"

namespace softmax {

// A checked problem with features (see Problem::features), beside its Problem.
struct General {
  Layout layout;
  std::int32_t direction = SOFTMAX_DIRECTION_FORWARD;
  std::int32_t mask_kind = SOFTMAX_MASK_NONE;
  std::int32_t dy_dtype = SOFTMAX_DTYPE_F32;
  bool given_stats = false;
  double scale = 1.0;
  double softcap = 0.0;  // 0: none
  double y_scale = 1.0;
  std::int64_t causal_offset = 0;
  // The index along the dimension before the axis is row / causal_inner % causal_extent.
  std::int64_t causal_inner = 1;
  std::int64_t causal_extent = 1;

  SOFTMAX_HD bool is_backward() const {
    return direction == SOFTMAX_DIRECTION_BACKWARD;
  }

  // Columns of a row from which on everything is masked, for the masks that are a length. `lengths`
  // is ROW_LENGTH's buffer.
  SOFTMAX_HD std::int64_t row_length(const std::int32_t *lengths, std::int64_t row) const {
    const std::int64_t cols = layout.cols;
    if (mask_kind == SOFTMAX_MASK_CAUSAL) {
      const std::int64_t index = row / causal_inner % causal_extent;
      // index + causal_offset + 1, clamped before it can overflow.
      if (causal_offset >= cols - 1 - index) return cols;
      return causal_offset < -index ? 0 : index + causal_offset + 1;
    }
    if (mask_kind == SOFTMAX_MASK_ROW_LENGTH) {
      const std::int64_t length = lengths[layout.offset(kTensorMask, row)];
      return length < 0 ? 0 : length < cols ? length : cols;
    }
    return cols;
  }
};

// The arguments' buffers. What a call does not use is null.
struct GeneralBuffers {
  const void *x = nullptr;
  void *y = nullptr;  // BACKWARD: only read
  const void *mask = nullptr;
  const float *row_scale = nullptr;
  float *lse = nullptr;
  float *row_max = nullptr;  // with given_stats: only read
  float *row_sum = nullptr;
  const void *dy = nullptr;
  void *dx = nullptr;
  const float *sink = nullptr;
  void *workspace = nullptr;
  std::uint64_t workspace_bytes = 0;
};

}  // namespace softmax
