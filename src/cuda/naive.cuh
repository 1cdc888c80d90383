// Algorithm 1, NAIVE: one thread a row, three passes.
//
// The obvious kernel, and what it teaches: the 32 loads of a warp are N elements apart, so each
// brings a whole sector for one element.
#pragma once

#include "cuda/prim/three_pass.cuh"

namespace softmax {

// A thread has its row to itself: there is nothing to reduce over.
template <typename T>
struct NoReduction {
  __device__ __forceinline__ T max(T value) const { return value; }
  __device__ __forceinline__ CompensatedSum<T> sum(CompensatedSum<T> value) const { return value; }
};

template <typename X, typename Y>
__global__ void __launch_bounds__(kMaxBlockThreads) naive_kernel(RowArgs args) {
  const StridedCols<X> columns{0, 1};
  for_each_row<X, Y>(args, [&](const RowView<X, Y> &row) {
    three_pass_row(args, row, columns, NoReduction<AccOf<X>>{});
  });
}

}  // namespace softmax
