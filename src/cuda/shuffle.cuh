// Algorithm 3, SHUFFLE: warp shuffles, then one value a warp through shared memory; three passes;
// several rows a block where rows are short.
//
// The barriers of a reduction fall from one a tree level to one.
#pragma once

#include "cuda/prim/row.cuh"

namespace softmax {

template <typename X, typename Y>
__global__ void __launch_bounds__(kMaxBlockThreads) shuffle_kernel(RowArgs args) {
  using Acc = AccOf<X>;
  __shared__ RowScratch<Acc> scratch;
  const int thread = threadIdx.x;

  for_each_row<X, Y>(args, [&](const RowView<X, Y> &row) {
    Acc max = -Limits<Acc>::infinity();
    for (std::int64_t col = thread; col < row.cols; col += blockDim.x) {
      max = fmax(max, load_element(row.x + col));
    }
    max = row_max(max, scratch);

    const Acc reference = finite_reference(max);
    CompensatedSum<Acc> sum;
    for (std::int64_t col = thread; col < row.cols; col += blockDim.x) {
      sum.add(exp_of(raw_difference(load_element(row.x + col), reference)));
    }
    sum = row_sum(sum, scratch);

    const auto factors = finish(Pair<Acc>{max, sum.without(Acc(1))}, args.empty_is_zero);
    for (std::int64_t col = thread; col < row.cols; col += blockDim.x) {
      store_element(row.y + col, output_value(load_element(row.x + col), factors, args.is_log));
    }
  });
}

}  // namespace softmax
