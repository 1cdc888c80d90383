// Algorithm 5, ONLINE, for the general call: every row by float64, each by a warp or a block: the
// way that takes everything. See wide_row.cuh.
#pragma once

#include "cuda/general/wide_row.cuh"

namespace softmax {

constexpr int kWideThreads = 256;

// A block is row_threads threads a row, a warp or all of them.
static __global__ void __launch_bounds__(kWideThreads)
    general_wide_kernel(const __grid_constant__ GeneralArgs args) {
  __shared__ TeamScratch scratch;
  const bool is_block = args.row_threads > kWarpThreads;
  const Team team = is_block ? Team::of_block(&scratch) : Team::of_warp();
  const int at_once = is_block ? 1 : static_cast<int>(blockDim.x) / kWarpThreads;
  const std::int64_t own = is_block ? 0 : static_cast<int>(threadIdx.x) / kWarpThreads;
  const std::int64_t rows = args.layout().rows;
  for (std::int64_t row = std::int64_t{blockIdx.x} * at_once + own; row < rows;
       row += std::int64_t{gridDim.x} * at_once) {
    if (args.general.is_backward()) {
      run_wide_row_backward(args, row, team);
    } else {
      run_wide_row(args, row, team);
    }
  }
}

}  // namespace softmax
