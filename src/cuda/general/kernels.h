// The kernels of the general call as host code sees them. Null where there is none.
#pragma once

#include <cstdint>

namespace softmax {

// Of softmax_merge_stats.
struct MergeStatsArgs {
  std::int64_t parts;
  std::int64_t rows;
  const float *part_max;
  const float *part_sum;
  float *row_max;  // what is no output is null
  float *row_sum;
  float *lse;
};
const void *merge_stats_kernel_address();

const void *general_wide_kernel_address();
// Of dense rows, `packs` 16-byte words a thread, with an additive mask or not. is_alone: a block
// has a row to itself and stores results, for which there may be a kernel with more registers.
const void *general_rows_kernel_for(std::int32_t x_dtype, std::int32_t packs, bool is_added,
                                    bool is_alone);
// Softmax of such rows of whole words, a block each, of 32 elements a thread, by whole warps, with
// a mask of a byte an element or none; to x's type or to float32.
const void *general_alone_kernel_for(std::int32_t x_dtype, std::int32_t y_dtype);
// The same by clusters that stay, to any type of 16 or 32 bits.
const void *general_persistent_kernel_for(std::int32_t x_dtype, bool has_mask);
// Statistics alone of such rows, of 32 elements a thread, by whole warps. is_lse: all but row_sum,
// with a scale and of lengths that LseTerms takes; is_wide: of these, of 16 bits, 64 elements.
const void *general_stats_kernel_for(std::int32_t x_dtype, bool is_lse, bool is_wide);
// Of rows that lie across memory.
const void *column_kernel_for(std::int32_t x_dtype);
// The same in registers: `threads` along the axis, `lanes` neighbouring rows a thread; and with a
// sum apart from what equals the maximum.
const void *held_column_kernel_for(std::int32_t x_dtype, std::int32_t threads, std::int32_t lanes);
const void *held_column_apart_kernel_for(std::int32_t x_dtype, std::int32_t threads,
                                         std::int32_t lanes);
// The same of few columns through shared memory, where x and y are of one type and rows lie side by
// side in runs of whole words; from compute capability 9.0 on.
const void *column_runs_kernel_for(std::int32_t dtype, bool is_apart);
// The gradients of dense rows: in_dtype is that of dy and of y, or x.
const void *general_backward_kernel_for(std::int32_t in_dtype, std::int32_t dx_dtype, bool is_log,
                                        bool from_x, std::int32_t packs);
// The same of log-softmax from y, of rows of whole words without a mask, of 16 bits, or in float32
// over clusters; null where there is nothing to gain by it.
const void *general_log_backward_kernel_for(std::int32_t dtype, std::int32_t packs,
                                            bool is_cluster);

}  // namespace softmax
