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
    const ShiftedExp<double> exp(finite_reference(max));
    TermSum<double> terms;
    for (std::int64_t col = 0; col < row.cols; ++col) {
      const double group[1] = {double(load_element(row.x + col))};
      terms.add(group, exp, args.is_log);
    }
    const auto factors = finish(max, terms.combined(), args.empty_is_zero);
    for (std::int64_t col = 0; col < row.cols; ++col) {
      const double value = output_value(double(load_element(row.x + col)), factors, args.is_log);
      store_element(row.y + col, AccOf<Y>(value));
    }
  });
}

}  // namespace softmax
