// Algorithm 11, BLOCK: a row in the registers of one block: one read, one write, one barrier.
//
// Each warp has a run of the row to itself, and takes its maximum and its sum as soon as its own
// loads are there, while those of other warps are still under way. The warps' (max, sum) then meet
// in shared memory, and every warp merges all of them for itself.
#pragma once

#include "cuda/prim/overlap.cuh"
#include "cuda/prim/part_merge.cuh"
#include "cuda/prim/warp_runs.cuh"

namespace softmax {

// Threads of a block and blocks on a multiprocessor that the compiler keeps registers for.
template <typename X, typename Y, int kPacks, RowAccess access>
constexpr int kBlockMaxThreads = kPacks == 4
                                     ? block_most_threads_of_four(sizeof(X), sizeof(X) < sizeof(Y),
                                                                  access == RowAccess::kUnits)
                                     : 1024;
template <typename X, int kPacks, RowAccess access>
constexpr int kBlockResidentThreads = sizeof(X) == 8 ||
                                              (access == RowAccess::kWindow && kPacks == 4)
                                          ? 1024
                                          : 1536;

template <typename X, typename Y, int kPacks, RowAccess access>
__global__ void __launch_bounds__(
    kBlockMaxThreads<X, Y, kPacks, access>,
    kResident<kBlockResidentThreads<X, kPacks, access> / kBlockMaxThreads<X, Y, kPacks, access>,
              kBlockMaxThreads<X, Y, kPacks, access>>) block_kernel(RowArgs args) {
  using Acc = AccOf<X>;
  wait_for_kernel_before(args);  // first of all: later it costs a register
  __shared__ PartSlots<Acc, kWarpThreads> parts;
  using Run = WarpRuns<X, Y, kPacks, access>;
  Run run;

  const int warp = threadIdx.x / kWarpThreads;
  run.take_one_row();
  const int run_cols = Run::run_cols(args);
  const int first_col = warp * run_cols;
  const int left = static_cast<int>(args.cols) - first_col;
  run.cols = left < run_cols ? left : run_cols;

  for (std::int64_t row = blockIdx.x;;) {
    const std::int64_t first = row * args.cols + first_col;
    const X *x = static_cast<const X *>(args.x) + first;
    run.set_place(first, args.rows * args.cols);
    run.load(x);

    const Acc max = warp_max_or_nan(run.max(0));
    RowPart<Acc> part = run.all_lanes(run.sum(0, max, args.is_log), args.is_log);
    const int warps = blockDim.x / kWarpThreads;
    if (warps > 1) {
      if (run.lane == 0) parts[warp] = part;
      __syncthreads();
      part = merge_lone_parts<Acc, kRunsBits>(warps, Run::Held::kNearLimit, args.is_log,
                                              [&](int i) { return parts[i]; });
    }
    const RowFactors<Acc> factors =
        finish(part, Run::Held::kNearLimit, args.empty_is_zero, args.is_log);
    run.held[0].finish(
        {factors, part_scale(max, part.max, Run::Held::kNearLimit), unknown_zero(args)},
        args.is_log);

    // Made again rather than held: the row's registers are all there are.
    const std::int64_t y_first = anew(row) * args.cols + first_col;
    run.template store<kHeldStoreHint>(static_cast<Y *>(args.y) + y_first, args.is_log);
    row += gridDim.x;
    if (row >= args.rows) break;
    __syncthreads();  // a warp that is ahead must not write over a part that is still read
  }
}

}  // namespace softmax
