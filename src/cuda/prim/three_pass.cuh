// Safe softmax in three passes over a row: maximum, sum, output. Algorithms 1 to 4 are this with
// other columns for a thread and other reductions over the threads of a row.
#pragma once

#include "cuda/prim/row.cuh"

namespace softmax {

// A Reduction has max(T) and sum(CompensatedSum<T>), which return the row's to each of its threads.
template <typename X, typename Y, typename Cols, typename Reduction>
__device__ __forceinline__ void three_pass_row(const RowArgs &args, const RowView<X, Y> &row,
                                               const Cols &columns, const Reduction &reduction) {
  using Acc = AccOf<X>;
  Acc max = -Limits<Acc>::infinity();
  read_row(columns, row.x, row.cols, [&](const auto &value) { max = fmax(max, group_max(value)); });
  max = reduction.max(max);

  const ExpFor<X, Y> exp(finite_reference(max));
  TermSum<Acc> terms;
  read_row(columns, row.x, row.cols,
           [&](const auto &value) { terms.add(value, exp, args.is_log); });
  const auto factors = finish(max, reduction.sum(terms.combined()), args.empty_is_zero);
  write_row<StoreHint::kNone>(row, columns, factors, args.is_log);
}

}  // namespace softmax
