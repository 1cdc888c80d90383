// Long rows in the registers of many warps: what one of them has.
#pragma once

#include "cuda/prim/warp_rows.cuh"

namespace softmax {

// A warp's run of one long row. In a window the last lane's last pack may be half a word.
template <typename X, typename Y, int kPacks, RowAccess access>
struct WarpRuns
    : WarpRows<X, Y, kPacks, access, 1, true,
               access == RowAccess::kWindow && sizeof(X) == 2 ? kPacks - 1 : kPacks, false> {
  // How many columns it has in such rows.
  static __device__ __forceinline__ int run_cols(const RowArgs &args) {
    constexpr int kCols = kPackCols<X>;
    if constexpr (access == RowAccess::kWindow) {
      return run_words(kPacks, args.cols, static_cast<int>(sizeof(X))) * kCols;
    } else {
      return kWarpThreads * kPacks * kCols;
    }
  }
};

}  // namespace softmax
