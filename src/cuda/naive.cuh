// Algorithm 1, NAIVE: one thread a row, three passes.
//
// The obvious kernel, and what it teaches: the 32 loads of a warp are N elements apart, so each
// brings a whole sector for one element.
#pragma once

#include "cuda/prim/row.cuh"

namespace softmax {

template <typename X, typename Y>
__global__ void __launch_bounds__(kMaxBlockThreads) naive_kernel(RowArgs args) {
  using Acc = AccOf<X>;
  for_each_row<X, Y>(args, [&](const RowView<X, Y> &row) {
    Acc max = -Limits<Acc>::infinity();
    for (std::int64_t col = 0; col < row.cols; ++col) max = fmax(max, load_element(row.x + col));

    const Acc reference = finite_reference(max);
    CompensatedSum<Acc> sum;
    for (std::int64_t col = 0; col < row.cols; ++col) {
      sum.add(exp_of(raw_difference(load_element(row.x + col), reference)));
    }

    const auto factors = finish(Pair<Acc>{max, sum.without(Acc(1))}, args.empty_is_zero);
    for (std::int64_t col = 0; col < row.cols; ++col) {
      store_element(row.y + col, output_value(load_element(row.x + col), factors, args.is_log));
    }
  });
}

}  // namespace softmax
