// Algorithm 3, SHUFFLE: warp shuffles, then one value a warp through shared memory; three passes;
// several rows a block where rows are short.
//
// The barriers of a reduction fall from one a tree level to one.
#pragma once

#include "cuda/prim/reduce.cuh"
#include "cuda/prim/three_pass.cuh"

namespace softmax {

template <typename X, typename Y>
__global__ void __launch_bounds__(kMaxBlockThreads) shuffle_kernel(RowArgs args) {
  __shared__ RowScratch<AccOf<X>> scratch;
  const ShuffleReduction<AccOf<X>> reduction{scratch};
  const StridedCols<X> columns{threadIdx.x, blockDim.x};
  for_each_row<X, Y>(
      args, [&](const RowView<X, Y> &row) { three_pass_row(args, row, columns, reduction); });
}

}  // namespace softmax
