// Algorithm 1000, REFERENCE: slow and obvious, one thread a row, everything in float64.
#pragma once

#include "cuda/prim/row.cuh"

namespace softmax {

template <typename X, typename Y>
__global__ void __launch_bounds__(kMaxBlockThreads) reference_kernel(RowArgs args) {
  for_each_row<X, Y>(args, [&](const RowView<X, Y> &row) {
    double max = -Limits<double>::infinity();
    for (std::int64_t col = 0; col < row.cols; ++col) {
      max = fmax(max, double(load_element(row.x + col)));
    }
    const double reference = finite_reference(max);
    CompensatedSum<double> sum;
    for (std::int64_t col = 0; col < row.cols; ++col) {
      sum.add(exp_of(raw_difference(double(load_element(row.x + col)), reference)));
    }
    const auto factors = finish(Pair<double>{max, sum.without(1.0)}, args.empty_is_zero);
    for (std::int64_t col = 0; col < row.cols; ++col) {
      const double value = output_value(double(load_element(row.x + col)), factors, args.is_log);
      store_element(row.y + col, AccOf<Y>(value));
    }
  });
}

}  // namespace softmax
