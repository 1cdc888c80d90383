// Rows spread over several blocks, in registers: what CLUSTER and GRID share (compute
// capability 9.0 and above).
//
// A row is cut into runs by N and the types alone, one for a warp as in BLOCK; a block's runs are a
// slab. The parts' (max, sum) go to whoever shares the row as soon as they are there, and when all
// of the row have come every warp merges them for itself. Which block takes a slab, and how many
// share a row, changes no bit.
//
// A block with several slabs of a row keeps the last of them in its registers and reads the others
// again, the latest first: those are likeliest to be in L2 still.
#pragma once

#include "core/slabs.h"
#include "core/window.h"
#include "cuda/prim/bulk.cuh"
#include "cuda/prim/compile.cuh"
#include "cuda/prim/part_merge.cuh"
#include "cuda/prim/warp_runs.cuh"

namespace softmax {

// A block's threads, at most, and how many such blocks should find room on a multiprocessor.
constexpr int kSpreadMostThreads = 512;
template <typename X, typename Y, int kPacks>
constexpr int kSpreadWishedBlocks = sizeof(X) == 8 || sizeof(Y) > sizeof(X) || kPacks > 4 ? 2 : 3;
template <typename X, typename Y, int kPacks>
constexpr int kSpreadBlocksPerSm = kResident<kSpreadWishedBlocks<X, Y, kPacks>, kSpreadMostThreads>;

#if SOFTMAX_BULK_COPY

// One block's work on the rows first_row, first_row + row_step, ....
//
// An Exchange has kOfBlocks, which says whether parts are the blocks' (one barrier more) or the
// warps'; post(i, part) for whole warps; wait() and then part(i) for every thread; and next_row().
template <typename X, typename Y, int kPacks, RowAccess access, typename Exchange>
class SpreadRows {
 public:
  using Acc = AccOf<X>;
  using Run = SpreadRuns<X, Y, kPacks, access>;
  using Held = typename Run::Held;

  // `slots`: for the block's warps to merge many parts together.
  __device__ __forceinline__ SpreadRows(const RowArgs &args, PartSlots<Acc, kWarpThreads> &slots,
                                        Exchange &exchange, int rank, std::int64_t first_row,
                                        std::int64_t row_step)
      : args_(args), slots_(slots), exchange_(exchange), row_(first_row), row_step_(row_step) {
    first_slab_ = static_cast<int>(std::int64_t{args.slabs} * rank / args.row_blocks);
    end_slab_ = static_cast<int>(std::int64_t{args.slabs} * (rank + 1) / args.row_blocks);
    run_.take_one_row();
  }

  // The loads of the first row's first slab need nobody: they may be under way before the blocks
  // have met.
  __device__ __forceinline__ void begin() {
    if (row_ < args_.rows) load(first_slab_);
  }

  __device__ __forceinline__ void run() {
    bool is_loaded = true;
    for (; row_ < args_.rows; row_ += row_step_) {
      RowPart<Acc> own = RowPart<Acc>::of(Acc(0));
      for (int slab = first_slab_; slab < end_slab_; ++slab) {
        if (!is_loaded) load(slab);
        is_loaded = false;
        own = take_terms();
        post(slab, own);
      }
      prefetch_next_row();
      exchange_.wait();
      const RowPart<Acc> row = merge();
      const RowFactors<Acc> factors =
          finish(row, Held::kNearLimit, args_.empty_is_zero, args_.is_log);
      for (int slab = end_slab_ - 1;; --slab) {
        store(slab, own.max, row.max, factors);
        if (slab == first_slab_) break;
        load(slab - 1);
        own = take_terms();
      }
      exchange_.next_row();
    }
  }

 private:
  __device__ __forceinline__ int warp() const { return threadIdx.x / kWarpThreads; }
  __device__ __forceinline__ int warps() const { return blockDim.x / kWarpThreads; }
  __device__ __forceinline__ int run_cols() const { return Run::run_cols(args_); }

  // The first column of this warp's run in a slab, from the row's first.
  __device__ __forceinline__ std::int64_t first_col(int slab) const {
    return std::int64_t{slab} * args_.slab_cols + warp() * run_cols();
  }

  __device__ __forceinline__ void load(int slab) {
    const std::int64_t first = first_col(slab);
    const std::int64_t left = args_.cols - first;
    run_.cols = left < run_cols() ? static_cast<int>(left) : run_cols();
    run_.present = left > 0 ? 1 : 0;  // the last slab may be shorter by whole runs
    run_.set_place(row_ * args_.cols + first, args_.rows * args_.cols);
    run_.load(static_cast<const X *>(args_.x) + row_ * args_.cols + first);
  }

  __device__ __forceinline__ RowPart<Acc> take_terms() {
    const Acc max = warp_max_or_nan(run_.max(0));
    return run_.all_lanes(run_.sum(0, max, args_.is_log), args_.is_log);
  }

  // What the next row's loads will ask for comes to L2 while this row's sums meet.
  __device__ __forceinline__ void prefetch_next_row() const {
    if (row_ + row_step_ >= args_.rows || run_.lane != 0) return;
    const std::int64_t first = first_col(first_slab_);
    if (first >= args_.cols) return;
    const std::int64_t left = args_.cols - first;
    const std::int64_t cols = left < run_cols() ? left : std::int64_t{run_cols()};
    const std::uint64_t begin = reinterpret_cast<std::uint64_t>(args_.x) +
                                ((row_ + row_step_) * args_.cols + first) * sizeof(X);
    prefetch_range({begin, begin + cols * sizeof(X)});
  }

  __device__ __forceinline__ void post(int slab, const RowPart<Acc> &own) {
    if constexpr (Exchange::kOfBlocks) {
      __syncthreads();  // not over what is still read
      if (run_.lane == 0) slots_[warp()] = own;
      __syncthreads();
      if (warp() == 0) exchange_.post(slab, merge_warps());
    } else {
      exchange_.post(slab * warps() + warp(), own);
    }
  }

  template <int kBits, typename Read>
  __device__ __forceinline__ RowPart<Acc> merge_over(int first, int stride, int count,
                                                     Read read) const {
    return merge_parts<Acc, kBits>(first, stride, count, Held::kNearLimit, args_.is_log, read);
  }
  __device__ __forceinline__ RowPart<Acc> merge() {
    const auto part = [this](int i) { return exchange_.part(i); };
    if constexpr (!Exchange::kOfBlocks) {
      return merge_over<kRunsBits>(0, kWarpThreads, args_.slabs * warps(), part);
    } else {
      if (args_.slabs <= kFewParts) return merge_over<0>(0, kWarpThreads, args_.slabs, part);
      const RowPart<Acc> some =
          merge_over<0>(warp() * kWarpThreads, static_cast<int>(blockDim.x), args_.slabs, part);
      __syncthreads();  // not over what is still read of the row before
      if (run_.lane == 0) slots_[warp()] = some;
      __syncthreads();
      return merge_over<0>(0, kWarpThreads, warps(), [this](int i) { return slots_[i]; });
    }
  }
  __device__ __forceinline__ RowPart<Acc> merge_warps() const {
    return merge_over<kRunsBits>(0, kWarpThreads, warps(), [this](int i) { return slots_[i]; });
  }

  __device__ __forceinline__ void store(int slab, Acc own_max, Acc row_max,
                                        const RowFactors<Acc> &factors) {
    const Split<Acc> scale = part_scale(own_max, row_max, Held::kNearLimit);
    run_.held[0].finish({factors, scale, unknown_zero(args_)}, args_.is_log);
    Y *const y = static_cast<Y *>(args_.y) + row_ * args_.cols + first_col(slab);
    run_.template store<kHeldStoreHint>(y, args_.is_log);
  }

  const RowArgs &args_;
  PartSlots<Acc, kWarpThreads> &slots_;
  Exchange &exchange_;
  Run run_;
  std::int64_t row_;
  const std::int64_t row_step_;
  int first_slab_;
  int end_slab_;
};

#endif  // SOFTMAX_BULK_COPY

}  // namespace softmax
