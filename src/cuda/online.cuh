// Algorithm 5, ONLINE: one block a row, a running (max, sum) in each thread: two passes.
//
// Milakov and Gimelshein (2018): the sum is kept against an element seen so far and rescaled when a
// larger one comes, so the maximum needs no pass of its own. Across threads: the block's maximum
// first, then the sum of every thread's, scaled to it.
#pragma once

#include "cuda/prim/reduce.cuh"
#include "cuda/prim/row.cuh"

namespace softmax {

// The (max, rest) pair of the columns that one thread takes.
template <typename X, typename Y>
__device__ __forceinline__ Pair<AccOf<X>> online_pair(const RowView<X, Y> &row,
                                                      const PackCols<X> &columns, bool is_log) {
  OnlineSum<AccOf<X>, ExpFor<X, Y>> online;
  read_row(columns, row.x, row.cols,
           [&](const auto &value) { online.add(value, group_max(value), is_log); });
  return online.pair();
}

// Blocks that should fit on a multiprocessor: 2 x 16 bytes a thread are in flight, and the running
// sum's registers would otherwise leave too few threads. Measured on an H200, 16384 x 8192 float32:
// 0.77 of copy speed with 6, 0.73 with what the compiler chooses (4), 0.65 with 8, which spill.
// Where 8 inputs become 8 float32 outputs, or in float64, 6 would spill too.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int kMostOnlineBlocksPerSm = 4;  // all that sm_75 has room for
#else
constexpr int kMostOnlineBlocksPerSm = 6;
#endif
template <typename X, typename Y>
constexpr int kOnlineBlocksPerSm = sizeof(X) == sizeof(Y) && sizeof(Y) <= 4 ? kMostOnlineBlocksPerSm
                                                                            : 1;

template <typename X, typename Y>
__global__ void __launch_bounds__(kMaxBlockThreads, kOnlineBlocksPerSm<X, Y>)
    online_kernel(RowArgs args) {
  using Acc = AccOf<X>;
  __shared__ RowScratch<Acc> scratch;
  const ShuffleReduction<Acc> reduction{scratch};
  const PackCols<X> columns(threadIdx.x, blockDim.x);

  for_each_row<X, Y>(args, [&](const RowView<X, Y> &row) {
    const Pair<Acc> own = online_pair(row, columns, args.is_log);
    const Acc max = reduction.max(own.max);

    // Every thread's sum, scaled to the row's maximum; 0 from a thread without an element above
    // -inf.
    const auto factors = finish(max, reduction.sum(own.sum_against(max)), args.empty_is_zero);
    write_row<StoreHint::kNone>(row, columns, factors, args.is_log);
  });
}

}  // namespace softmax
