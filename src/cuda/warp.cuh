// Algorithm 10, WARP: a row in the registers of 1 to 32 lanes of a warp: one read, one write, no
// barrier.
//
// A warp always has the same number of 16-byte words under way, whatever N is: where a row is
// short, few lanes share it and the warp takes several rows at once.
#pragma once

#include "cuda/prim/overlap.cuh"
#include "cuda/prim/part_merge.cuh"
#include "cuda/prim/warp_rows.cuh"

namespace softmax {

template <int kPacks>
constexpr int kWarpRowsALane = warp_rows_a_lane(kPacks);
template <int kPacks, RowAccess access>
constexpr int kWarpOnlyLanes = access == RowAccess::kUnits ? 0 : warp_only_lanes(kPacks);

// Blocks that should fit on a multiprocessor, so that the compiler keeps to their registers.
// Windows take some more: the tail, and where a lane has four rows one for each.
template <typename X, typename Y, int kPacks, RowAccess access>
constexpr int warp_blocks_per_sm() {
  constexpr bool kWords = access == RowAccess::kWords;
  constexpr bool kFourRows = access == RowAccess::kWindow && kPacks == 1;
  if (sizeof(X) == 8) return kPacks > 4 || kFourRows ? 4 : 5;
  if (sizeof(X) < sizeof(Y)) return kPacks > 4 || kFourRows ? 4 : (kWords ? 6 : 5);
  if (kWords) return kPacks > 4 ? 7 : 9;
  if (access == RowAccess::kUnits) return sizeof(X) > 2 ? 7 : (kPacks > 4 ? 4 : 6);
  return kFourRows ? 5 : (kPacks == 2 || (kPacks > 4 && sizeof(X) > 2) ? 6 : 7);
}
template <typename X, typename Y, int kPacks, RowAccess access>
constexpr int kWarpBlocksPerSm = warp_blocks_per_sm<X, Y, kPacks, access>();

// A block is blockDim.x lanes a row (a power of two up to 32) by as many rows as fill its warps.
template <typename X, typename Y, int kPacks, RowAccess access>
__global__ void __launch_bounds__(
    kWarpBlockThreads, kResident<kWarpBlocksPerSm<X, Y, kPacks, access>, kWarpBlockThreads>)
    warp_kernel(RowArgs args) {
  constexpr int kRows = kWarpRowsALane<kPacks>;
  constexpr int kOnlyLanes = kWarpOnlyLanes<kPacks, access>;
  // A row that half as many packs could hold would have half as many.
  WarpRows<X, Y, kPacks, access, kRows, kOnlyLanes == kWarpThreads, kPacks / 2> rows;

  const int thread = threadIdx.y * blockDim.x + threadIdx.x;
  const int warp = thread / kWarpThreads;
  rows.lanes = kOnlyLanes != 0 ? kOnlyLanes : blockDim.x;
  rows.groups = blockDim.y / (kWarpBlockThreads / kWarpThreads);
  rows.group = threadIdx.y - warp * rows.groups;
  rows.member = threadIdx.x;
  rows.lane = thread % kWarpThreads;
  rows.cols = static_cast<int>(args.cols);
  rows.pitch = rows.cols;

  wait_for_kernel_before(args);
  const int at_once = rows.groups * kRows;
  const std::int64_t block_rows = std::int64_t{at_once} * (kWarpBlockThreads / kWarpThreads);
  for (std::int64_t first = blockIdx.x * block_rows + warp * at_once; first < args.rows;
       first += gridDim.x * block_rows) {
    const std::int64_t left = args.rows - first;
    rows.present = left < at_once ? static_cast<int>(left) : at_once;
    const X *x = static_cast<const X *>(args.x) + first * args.cols;
    Y *y = static_cast<Y *>(args.y) + first * args.cols;
    rows.set_place(first * args.cols, args.rows * args.cols);
    rows.load(x);

    rows.finish_whole_rows(args);
    rows.template store<kHeldStoreHint>(y, args.is_log);
  }
}

}  // namespace softmax
