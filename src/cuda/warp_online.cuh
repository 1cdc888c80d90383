// Algorithm 6, WARP_ONLINE: one warp a row, running (max, sum) in each lane, reduced as one value
// by cooperative groups, streaming stores: two passes and no block barrier at all.
//
// The published kernel reduces 8 bytes, a maximum and a sum. Here a third number goes with them,
// what rounding took from the sum: without it five merges cost up to 2 ulp. The work of a lane
// grows with N, and a row never has more than 64 packs in flight.
#pragma once

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "cuda/online.cuh"

namespace softmax {

template <typename X, typename Y>
__global__ void __launch_bounds__(kMaxBlockThreads) warp_online_kernel(RowArgs args) {
  namespace cg = cooperative_groups;
  using Acc = AccOf<X>;
  const auto warp = cg::tiled_partition<kWarpThreads>(cg::this_thread_block());
  const PackCols<X> columns(warp.thread_rank(), kWarpThreads);

  for_each_row<X, Y>(args, [&](const RowView<X, Y> &row) {
    const Pair<Acc> own = online_pair(row, columns, args.is_log);
    Pair<Acc> pair =
        cg::reduce(warp, own, [](const Pair<Acc> &a, const Pair<Acc> &b) { return merge(a, b); });
    // merge is commutative up to rounding only: all lanes go on with lane 0's.
    pair = warp.shfl(pair, 0);
    const auto factors = finish(pair, args.empty_is_zero);
    write_row<StoreHint::kStreaming>(row, columns, factors, args.is_log);
  });
}

}  // namespace softmax
