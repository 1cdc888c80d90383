// Long rows in the registers of many warps: what one of them has.
#pragma once

#include "cuda/prim/warp_rows.cuh"

namespace softmax {

// A warp's run of one long row, of which a lane has kPacks words. In a window the last lane's last
// pack may be half a word. Held: what values are held as; a pack is a word of those.
template <typename X, typename Y, int kPacks, RowAccess access, typename Held = X,
          int kHeldPacks = kPacks *static_cast<int>(sizeof(Held) / sizeof(X))>
struct WarpRuns
    : WarpRows<Held, Y, kHeldPacks, access, 1, true,
               access == RowAccess::kWindow && sizeof(X) == 2 ? kHeldPacks - 1 : kHeldPacks, false,
               false, X> {
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

// Runs of CLUSTER and GRID. Sixteen-bit values of float32 results are dealt out as float32 is, four
// neighbouring ones a lane: a lane's results are one word then, and a warp's lie together. By
// words of eight, a lane has two words of results, and each store of a warp is every other half of
// a sector of L2's, unless lanes trade halves, which takes two instructions an element.
template <typename X, typename Y, int kPacks, RowAccess access>
using SpreadRuns =
    WarpRuns<X, Y, kPacks, access, std::conditional_t<(sizeof(Y) > sizeof(X)), Y, X>>;

}  // namespace softmax
