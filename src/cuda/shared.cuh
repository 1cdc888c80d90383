// Algorithm 2, SHARED: one block a row, tree reductions in shared memory, three passes.
//
// Neighbouring threads read neighbouring columns, so loads coalesce. Each reduction halves the
// threads log2(256) = 8 times, with a block barrier at every level.
#pragma once

#include "cuda/prim/row.cuh"

namespace softmax {

template <typename X, typename Y>
__global__ void __launch_bounds__(kMaxBlockThreads) shared_kernel(RowArgs args) {
  using Acc = AccOf<X>;
  __shared__ Acc max_tree[kMaxBlockThreads];
  __shared__ CompensatedSum<Acc> sum_tree[kMaxBlockThreads];
  const int thread = threadIdx.x;

  for_each_row<X, Y>(args, [&](const RowView<X, Y> &row) {
    Acc max = -Limits<Acc>::infinity();
    for (std::int64_t col = thread; col < row.cols; col += blockDim.x) {
      max = fmax(max, load_element(row.x + col));
    }
    max_tree[thread] = max;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
      if (thread < half) max_tree[thread] = fmax(max_tree[thread], max_tree[thread + half]);
      __syncthreads();
    }
    max = max_tree[0];

    const Acc reference = finite_reference(max);
    CompensatedSum<Acc> sum;
    for (std::int64_t col = thread; col < row.cols; col += blockDim.x) {
      sum.add(exp_of(raw_difference(load_element(row.x + col), reference)));
    }
    sum_tree[thread] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
      if (thread < half) sum_tree[thread].add(sum_tree[thread + half]);
      __syncthreads();
    }
    sum = sum_tree[0];

    const auto factors = finish(Pair<Acc>{max, sum.without(Acc(1))}, args.empty_is_zero);
    for (std::int64_t col = thread; col < row.cols; col += blockDim.x) {
      store_element(row.y + col, output_value(load_element(row.x + col), factors, args.is_log));
    }
  });
}

}  // namespace softmax
