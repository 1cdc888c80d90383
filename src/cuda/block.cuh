// Algorithm 11, BLOCK: a row in the registers of one block: one read, one write, one barrier.
//
// Each warp has a run of the row to itself, and takes its maximum and its sum as soon as its own
// loads are there, while those of other warps are still under way. The warps' (max, sum) then meet
// in shared memory, and every warp merges all of them for itself.
#pragma once

#include "cuda/prim/reduce.cuh"
#include "cuda/prim/warp_rows.cuh"

namespace softmax {

// A warp's part as the others see it: its maximum, and its sum against that.
template <typename T>
struct WarpPart {
  T max;
  Split<T> sum;
};

// The row's state, the same in every thread, and what this warp's terms are to it.
template <typename T>
struct Merged {
  T max;
  CompensatedSum<T> sum;
  Split<T> scale;
};

template <typename Held, typename T>
__device__ __forceinline__ Merged<T> merge_warps(WarpPart<T> *parts, const WarpPart<T> &own,
                                                 bool is_log) {
  const int warps = blockDim.x / kWarpThreads;
  const int warp = threadIdx.x / kWarpThreads;
  const int lane = threadIdx.x % kWarpThreads;
  if (warps == 1) return {own.max, CompensatedSum<T>::of(own.sum), {sum_unit<T>(), T(0)}};
  if (lane == 0) parts[warp] = own;
  __syncthreads();

  // Lane i has warp i's; a lane without a warp an empty one.
  WarpPart<T> part = {-Limits<T>::infinity(), {T(0), T(0)}};
  if (lane < warps) part = parts[lane];
  // What covers `warps` lanes: the same additions for a given N.
  const int lanes = 2 << (31 - __clz(warps - 1));
  Merged<T> row;
  // Lanes past those have met empty parts alone.
  T max[1] = {part.max};
  lanes_max(max, lanes);
  row.max = __shfl_sync(kFullWarp, max[0], 0);
  // A part that is all -inf: its reference is the lowest finite number, and its scale 0, or 1 where
  // the whole row is so.
  const Split<T> scale =
      exp_in_units(raw_difference(finite_reference(part.max), finite_reference(row.max)));
  CompensatedSum<T> sum[1] = {CompensatedSum<T>::of(part.sum)};
  sum[0].times(scale);
  held_lanes_sum<Held>(sum, lanes, is_log);
  row.sum.hi = __shfl_sync(kFullWarp, sum[0].hi, 0);
  row.sum.lo = __shfl_sync(kFullWarp, sum[0].lo, 0);
  row.scale.hi = __shfl_sync(kFullWarp, scale.hi, warp);
  row.scale.lo = __shfl_sync(kFullWarp, scale.lo, warp);
  return row;
}

// Threads of a block and blocks on a multiprocessor that the compiler keeps registers for. Parts of
// words on their way take some more.
template <typename X, typename Y, int kPacks>
constexpr int kBlockMaxThreads = kPacks == 4
                                     ? block_most_threads_of_four(sizeof(X), sizeof(X) < sizeof(Y))
                                     : 1024;
template <typename X, RowAccess access>
constexpr int kBlockResidentThreads =
    sizeof(X) == 8 ? 1024 : (sizeof(X) == 2 && access == RowAccess::kShifted ? 1280 : 1536);

template <typename X, typename Y, int kPacks, RowAccess access>
__global__ void __launch_bounds__(
    kBlockMaxThreads<X, Y, kPacks>,
    kResident<kBlockResidentThreads<X, access> / kBlockMaxThreads<X, Y, kPacks>,
              kBlockMaxThreads<X, Y, kPacks>>) block_kernel(RowArgs args) {
  using Acc = AccOf<X>;
  using Held = HeldPacks<X, Y, kPacks>;
  constexpr int kRunCols = kWarpThreads * kPacks * kPackCols<X>;
  __shared__ WarpPart<Acc> parts[kWarpThreads];
  WarpRows<X, Y, kPacks, 1, true, kPacks> run;

  const int warp = threadIdx.x / kWarpThreads;
  run.present = 1;
  run.lanes = kWarpThreads;
  run.groups = 1;
  run.group = 0;
  run.lane = threadIdx.x % kWarpThreads;
  run.member = run.lane;
  const int first_col = warp * kRunCols;
  const int left = static_cast<int>(args.cols) - first_col;
  run.cols = left < kRunCols ? left : kRunCols;

  for (std::int64_t row = blockIdx.x;;) {
    const std::int64_t first = row * args.cols + first_col;
    const X *x = static_cast<const X *>(args.x) + first;
    Y *y = static_cast<Y *>(args.y) + first;
    run.has_before = row > 0 || warp > 0;
    run.has_after = left > kRunCols || row < args.rows - 1;
    run.template load<access>(x);

    WarpPart<Acc> own;
    own.max = lanes_max<kWarpThreads>(run.held[0].max());
    const typename Held::Exp exp(finite_reference(own.max));
    CompensatedSum<Acc> sum[1] = {run.held[0].sum(exp, args.is_log)};
    held_lanes_sum<Held>(sum, kWarpThreads, args.is_log);
    own.sum = sum[0].parts();
    const Merged<Acc> merged = merge_warps<Held>(parts, own, args.is_log);
    const RowFactors<Acc> factors =
        finish_one(merged.max, merged.sum, args.empty_is_zero, args.is_log);
    run.held[0].finish({factors, merged.scale, unknown_zero(args)}, args.is_log);

    run.template store<access, kHeldStoreHint>(y, args.is_log);
    row += gridDim.x;
    if (row >= args.rows) break;
    __syncthreads();  // a warp that is ahead must not write over a part that is still read
  }
}

}  // namespace softmax
