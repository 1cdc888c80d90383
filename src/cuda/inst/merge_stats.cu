// The kernel of softmax_merge_stats: a thread a row.
#include "core/merge_stats.h"
#include "cuda/general/kernels.h"

namespace softmax {
namespace {

__global__ void merge_stats_kernel(MergeStatsArgs args) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; row < args.rows;
       row += step) {
    const MergedStats merged =
        merge_stats(args.part_max + row, args.part_sum + row, args.parts, args.rows);
    if (args.row_max != nullptr) args.row_max[row] = merged.max;
    if (args.row_sum != nullptr) args.row_sum[row] = merged.sum;
    if (args.lse != nullptr) args.lse[row] = merged.lse;
  }
}

}  // namespace

const void *merge_stats_kernel_address() {
  return reinterpret_cast<const void *>(&merge_stats_kernel);
}

}  // namespace softmax
