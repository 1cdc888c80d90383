// Algorithm 5, ONLINE: one block a row, a running (max, sum) in each thread: two passes.
//
// Milakov and Gimelshein (2018): the sum is kept against the largest element so far and rescaled
// when a larger one comes, so the maximum needs no pass of its own. Across threads: the block's
// maximum first, then the sum of every thread's, scaled to it.
#pragma once

#include "cuda/prim/row.cuh"

namespace softmax {

// The running sum of the packs that one thread takes.
template <typename X>
__device__ __forceinline__ OnlineSum<AccOf<X>> online_packs(const X *x, std::int64_t first,
                                                            std::int64_t stride, std::int64_t cols,
                                                            bool is_log) {
  const bool aligned = is_word_aligned(x);
  OnlineSum<AccOf<X>> online;
  for (std::int64_t col = first; col < cols; col += stride) {
    Pack<X> pack;
    pack.load(x, col, cols, aligned);
    online.make_room(pack.max());
    add_terms(online.sum, pack.value, online.reference, is_log);
  }
  return online;
}

template <typename X, typename Y>
__global__ void __launch_bounds__(kMaxBlockThreads) online_kernel(RowArgs args) {
  using Acc = AccOf<X>;
  __shared__ RowScratch<Acc> scratch;
  const std::int64_t first = std::int64_t{threadIdx.x} * kPackCols<X>;
  const std::int64_t stride = std::int64_t{blockDim.x} * kPackCols<X>;

  for_each_row<X, Y>(args, [&](const RowView<X, Y> &row) {
    const Pair<Acc> own = online_packs(row.x, first, stride, row.cols, args.is_log).pair();
    const Acc max = row_max(own.max, scratch);

    // The thread that holds the maximum adds its 1 and its rest apart; another thread's whole sum
    // is part of the row's rest. A thread without an element above -inf has sum 0 and adds nothing.
    CompensatedSum<Acc> sum;
    if (own.max == max) {
      sum.add(Acc(1));
      sum.add(own.rest);
    } else {
      sum.add(exp_times(raw_difference(own.max, max), Acc(1) + own.rest));
    }
    sum = row_sum(sum, scratch);

    const auto factors = finish(Pair<Acc>{max, sum.without(Acc(1))}, args.empty_is_zero);
    write_packs<StoreHint::kNone>(row, first, stride, factors, args.is_log);
  });
}

}  // namespace softmax
