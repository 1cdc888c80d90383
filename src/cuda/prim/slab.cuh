// Rows in slabs: what CLUSTER and GRID share (compute capability 9.0 and above).
//
// A row is cut into slabs, a slab into one segment a warp, both by N and the types alone. Slabs come
// through a ring in shared memory, whose copies run ahead of the work; a warp takes its segment into
// registers, where it stays until it is written. One exchange of the slabs' (max, sum) makes a row
// of them: which block takes a slab, and how many blocks share a row, changes no bit.
//
// What only one warp need compute, only one does: at the speed of a copy there are 60 instructions
// for a float32 element, everything included.
//
// A block that has more than one slab of a row leaves them in their slots (in float32 and float64
// softmax their exponentials) and takes them from there again; if it has more slabs than slots, the
// first ones are copied a second time, the last of them first: those are likeliest to be in L2 still.
#pragma once

#include "cuda/prim/bulk.cuh"
#include "cuda/prim/part_reduce.cuh"
#include "cuda/prim/segment.cuh"

namespace softmax {

// Registers decide: 64 a thread hold 16 columns of float32, 96 hold 32 of 16 bits; float64 needs
// more, and so do 32 columns that become float32.
template <typename X, typename Y>
constexpr int kMostSlabThreads = sizeof(X) == 8 || sizeof(Y) > sizeof(X) ? 512
                                 : sizeof(X) == 2                        ? 640
                                                                         : 1024;

#if SOFTMAX_BULK_COPY

// The slabs of one block, in the order in which its ring takes them: for every row the slabs that
// will be copied again, those that stay, and the first ones again.
struct SlabOrder {
  int first;  // slab of the row
  int count;
  int again;  // of them, copied twice

  __device__ __forceinline__ SlabOrder(const RowArgs &args, int rank) {
    first = static_cast<int>(std::int64_t{args.slabs} * rank / args.row_blocks);
    count = static_cast<int>(std::int64_t{args.slabs} * (rank + 1) / args.row_blocks) - first;
    // A slot or two are left for what comes next.
    const int kept = args.slots > 2 ? args.slots - 2 : 1;
    again = count <= args.slots ? 0 : count - kept;
  }
  __device__ __forceinline__ int copies() const { return count + again; }
  __device__ __forceinline__ int slab(int copy) const {
    return first + (copy < count ? copy : again - 1 - (copy - count));
  }
};

// What the threads of a block share, besides the ring.
template <typename T>
struct SlabScratch {
  BlockScratch<T> block;
  OutputFactors<T> factors;
  RowFactors<T> row;  // for a block of several slabs
};

// One block's work on the rows first_row, first_row + row_step, ...
template <typename X, typename Y, typename Exchange>
class SlabRows {
 public:
  using Acc = AccOf<X>;

  __device__ __forceinline__ SlabRows(const RowArgs &args, const Ring<X> &ring,
                                      SlabScratch<Acc> &scratch, Exchange &exchange, int rank,
                                      std::int64_t first_row, std::int64_t row_step)
      : args_(args),
        ring_(ring),
        scratch_(scratch),
        exchange_(exchange),
        order_(args, rank),
        row_(first_row),
        row_step_(row_step),
        next_row_(first_row) {}

  // By thread 0, before run: the first copies need nobody else.
  __device__ __forceinline__ void fill() {
    for (int i = 0; i < ring_.count(); ++i) copy_next();
  }

  __device__ __forceinline__ void run() {
    for (; row_ < args_.rows; row_ += row_step_) {
      // All slabs of a row lie alike: their width is a multiple of 16 bytes.
      const std::int64_t begin = row_ * args_.cols;
      x_shift_ = bulk_shift(address_of(args_.x) + begin * sizeof(X));
      x_pairs_ = is_pair_aligned(static_cast<const X *>(args_.x) + begin);
      y_ = static_cast<Y *>(args_.y) + begin;
      y_pairs_ = is_pair_aligned(y_);
      if (order_.count == 1) {
        row_in_registers();
      } else {
        row_in_slots();
      }
      exchange_.next_row();
    }
  }

 private:
  // ---- where things are ----

  __device__ __forceinline__ int slab_cols(int slab) const {
    return slab + 1 < args_.slabs
               ? args_.slab_cols
               : static_cast<int>(args_.cols - std::int64_t{slab} * args_.slab_cols);
  }
  __device__ __forceinline__ ByteRange range(std::int64_t row, int slab) const {
    const std::int64_t begin = row * args_.cols + std::int64_t{slab} * args_.slab_cols;
    const std::uint64_t address = address_of(args_.x) + begin * sizeof(X);
    return {address, address + slab_cols(slab) * sizeof(X)};
  }
  // This warp's part of a slab: none or less in a slab's empty end.
  __device__ __forceinline__ int segment_begin() const {
    return warp_of_block() * args_.segment_cols;
  }
  __device__ __forceinline__ int segment_cols(int slab) const {
    const int left = slab_cols(slab) - segment_begin();
    return left < args_.segment_cols ? left : args_.segment_cols;
  }
  // A lane's columns.
  __device__ __forceinline__ int active() const { return args_.segment_cols / kWarpThreads; }

  __device__ __forceinline__ X *in_slot(Turn turn) const {
    return reinterpret_cast<X *>(ring_.slot(turn.slot) + x_shift_) + segment_begin();
  }

  // ---- the ring: thread 0 asks for copies, in order ----

  __device__ __forceinline__ void copy_next() {
    if (next_row_ >= args_.rows) return;
    ring_.load(copy_turn_, range(next_row_, order_.slab(next_copy_)));
    copy_turn_.advance(ring_.count());
    if (++next_copy_ == order_.copies()) {
      next_copy_ = 0;
      next_row_ += row_step_;
    }
  }
  // After a barrier that every thread passes after its last use of the oldest slot.
  __device__ __forceinline__ void free_slot() {
    if (threadIdx.x == 0) copy_next();
  }

  __device__ __forceinline__ void wait(Turn turn, int slab) const {
    ring_.wait(turn);
    // Only the first and the last slab of the tensor may have ends that no bulk copy brought.
    const bool first = row_ == 0 && slab == 0;
    const bool last = row_ == args_.rows - 1 && slab == args_.slabs - 1;
    if (first || last) ring_.fetch_ends(turn, range(row_, slab));
  }

  // ---- the steps of a slab ----

  __device__ __forceinline__ void load(Turn turn, int slab) {
    const int cols = segment_cols(slab);
    load_held(in_slot(turn), cols, x_pairs_, cols == kSegmentCols, held_);
  }
  __device__ __forceinline__ void store(int slab, const OutputFactors<Acc> &factors) {
    held_output<X, Y>(held_, active(), factors, args_.is_log);
    const int cols = segment_cols(slab);
    store_held(y_ + std::int64_t{slab} * args_.slab_cols + segment_begin(), cols, y_pairs_,
               cols == kSegmentCols, held_);
  }

  // One slab: it leaves its slot at once, and the next row's copy begins.
  __device__ __forceinline__ void row_in_registers() {
    const int slab = order_.first;
    wait(turn_, slab);
    load(turn_, slab);
    turn_.advance(ring_.count());
    const Acc max = block_max(held_max(held_), scratch_.block);
    free_slot();
    leave_sum(held_sum<X, Y>(held_, active(), max, args_.is_log), scratch_.block, args_.is_log);
    __syncthreads();
    if (warp_of_block() == 0) {
      const RowPart<Acc> part = block_sum(max, scratch_.block, args_.is_log);
      RowPart<Acc> row = part;
      if (args_.slabs > 1) {
        exchange_.post(slab, part);
        exchange_.wait();
        if (args_.slabs <= kFewParts) {
          row = merge_parts<Acc>(
              threadIdx.x, kWarpThreads, args_.slabs,
              [this](int i) { return exchange_.part(i); }, args_.is_log);
        }
      }
      if (args_.slabs <= kFewParts) finish_row(row, max);
    }
    if (args_.slabs > kFewParts) merge_with_all(max);
    __syncthreads();
    store(slab, scratch_.factors);
  }

  // By the first warp.
  __device__ __forceinline__ void finish_row(const RowPart<Acc> &row, Acc part_max) {
    const RowFactors<Acc> factors = finish(row, args_.empty_is_zero, args_.is_log);
    const OutputFactors<Acc> output = output_factors(part_max, factors);
    if (threadIdx.x == 0) {
      scratch_.factors = output;
      scratch_.row = factors;
    }
  }
  // By every thread: the other warps wait for what the first has waited for.
  __device__ __forceinline__ void merge_with_all(Acc part_max) {
    __syncthreads();
    const RowPart<Acc> row = merge_many_parts<Acc>(
        args_.slabs, [this](int i) { return exchange_.part(i); }, scratch_.block, args_.is_log);
    if (warp_of_block() == 0) finish_row(row, part_max);
  }

  // Several: all of them are summed up, then each is taken again and written.
  __device__ __forceinline__ void row_in_slots() {
    const bool keep = kKeepsExp<X, Y> && !args_.is_log;
    Turn kept = turn_;
    for (int copy = 0; copy < order_.count; ++copy) {
      const int slab = order_.slab(copy);
      wait(turn_, slab);
      load(turn_, slab);
      const Acc max = block_max(held_max(held_), scratch_.block);
      if (copy < order_.again) {
        kept.advance(ring_.count());
        free_slot();
      }
      leave_sum(held_sum<X, Y>(held_, active(), max, args_.is_log), scratch_.block, args_.is_log);
      if constexpr (kKeepsExp<X, Y>) {
        if (keep && copy >= order_.again) {
          const int cols = segment_cols(slab);
          store_held(in_slot(turn_), cols, true, cols == kSegmentCols, held_);
        }
      }
      turn_.advance(ring_.count());
      __syncthreads();
      if (warp_of_block() == 0) {
        exchange_.post(slab, block_sum(max, scratch_.block, args_.is_log));
      }
    }
    if (warp_of_block() == 0) {
      exchange_.wait();
      if (args_.slabs <= kFewParts) {
        finish_row(merge_parts<Acc>(
                       threadIdx.x, kWarpThreads, args_.slabs,
                       [this](int i) { return exchange_.part(i); }, args_.is_log),
                   Acc(0));
      }
    }
    if (args_.slabs > kFewParts) merge_with_all(Acc(0));
    __syncthreads();
    const RowFactors<Acc> row = scratch_.row;
    for (int copy = order_.again; copy < order_.copies(); ++copy) {
      const int slab = order_.slab(copy);
      Turn turn = kept;
      kept.advance(ring_.count());
      const bool again = copy >= order_.count;
      if (again) {
        turn = turn_;
        wait(turn, slab);
        turn_.advance(ring_.count());
      }
      load(turn, slab);
      if (kKeepsExp<X, Y>) fence_slot_writes();
      __syncthreads();
      free_slot();
      const Acc max = exchange_.part(slab).max;
      if (!args_.is_log && (again || !keep)) held_sum<X, Y>(held_, active(), max, false);
      store(slab, output_factors(max, row));
    }
  }

  static constexpr int kSegmentCols = kUnitStep<X> * kHeldUnits<X>;

  const RowArgs &args_;
  const Ring<X> &ring_;
  SlabScratch<Acc> &scratch_;
  Exchange &exchange_;
  const SlabOrder order_;
  std::int64_t row_;
  const std::int64_t row_step_;

  Held<X> held_;
  Turn turn_;  // the next slab to take

  // Of this row.
  int x_shift_ = 0;
  bool x_pairs_ = false;
  bool y_pairs_ = false;
  Y *y_ = nullptr;

  // Thread 0's: the next copy to ask for.
  Turn copy_turn_;
  int next_copy_ = 0;
  std::int64_t next_row_;
};

#endif  // SOFTMAX_BULK_COPY

}  // namespace softmax
