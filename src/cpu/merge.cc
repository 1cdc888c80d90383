// softmax_merge_stats on the CPU.
#include "core/merge_stats.h"
#include "cpu/backend.h"

namespace softmax {

void cpu_merge_stats(std::int64_t parts, std::int64_t rows, const float *part_max,
                     const float *part_sum, float *row_max, float *row_sum, float *lse) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const MergedStats merged = merge_stats(part_max + r, part_sum + r, parts, rows);
    if (row_max != nullptr) row_max[r] = merged.max;
    if (row_sum != nullptr) row_sum[r] = merged.sum;
    if (lse != nullptr) lse[r] = merged.lse;
  }
}

}  // namespace softmax
