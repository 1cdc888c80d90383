// Algorithm 4, VECTOR: as SHUFFLE, with 16-byte loads and stores; three passes.
//
// A quarter (16-bit types: an eighth) of the load and store instructions.
#pragma once

#include "cuda/prim/reduce.cuh"
#include "cuda/prim/three_pass.cuh"

namespace softmax {

template <typename X, typename Y>
__global__ void __launch_bounds__(kMaxBlockThreads) vector_kernel(RowArgs args) {
  __shared__ RowScratch<AccOf<X>> scratch;
  const ShuffleReduction<AccOf<X>> reduction{scratch};
  const PackCols<X> columns(threadIdx.x, blockDim.x);
  for_each_row<X, Y>(
      args, [&](const RowView<X, Y> &row) { three_pass_row(args, row, columns, reduction); });
}

}  // namespace softmax
