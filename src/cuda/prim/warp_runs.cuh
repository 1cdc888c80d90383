// Long rows in the registers of many warps: what one of them has.
#pragma once

#include "cuda/prim/warp_rows.cuh"

namespace softmax {

// A warp's run of one long row. In a window the last lane's last pack may be half a word.
template <typename X, typename Y, int kPacks, RowAccess access>
struct WarpRuns
    : WarpRows<X, Y, kPacks, access, 1, true,
               access == RowAccess::kWindow && sizeof(X) == 2 ? kPacks - 1 : kPacks, false> {
  // How many columns a full one has in such rows.
  static __device__ __forceinline__ int run_cols(const RowArgs &args) {
    constexpr int kCols = kPackCols<X>;
    if constexpr (access == RowAccess::kWindow) {
      return run_words(kPacks, args.cols, static_cast<int>(sizeof(X))) * kCols;
    } else {
      return kWarpThreads * kPacks * kCols;
    }
  }

  // The run that begins where `left` columns are left of the row, and lies in a slot of shared
  // memory, with room around it. Past the row's end there is none. `full`: see run_cols.
  __device__ __forceinline__ void take_in_slot(int full, std::int64_t left) {
    this->take_one_row();
    this->cols = left < full ? (left > 0 ? static_cast<int>(left) : 0) : full;
    this->present = left > 0 ? 1 : 0;
    this->before = this->after = 1 << 30;
  }
};

}  // namespace softmax
