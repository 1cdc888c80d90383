// Rows in slabs: what CLUSTER and GRID share (compute capability 9.0 and above).
//
// A row is cut into slabs, a slab into one segment a warp, both by N and the types alone. Slabs come
// through a ring in shared memory, whose copies run ahead of the work; a warp takes its segment into
// registers, where it stays until it is written. One exchange of sums makes a row of the slabs:
// which block takes a slab, and how many blocks share a row, changes no bit.
//
// A block that has more than one slab of a row keeps them in its slots and reads them from there
// again; if it has more slabs than slots, the first ones are copied a second time, the last of them
// first: those are likeliest to be in L2 still.
#pragma once

#include "cuda/prim/bulk.cuh"
#include "cuda/prim/part_reduce.cuh"
#include "cuda/prim/segment.cuh"

namespace softmax {

// 64 registers a thread. float64 needs more, and so do 32 columns that become float32.
template <typename X, typename Y>
constexpr int kMostSlabThreads = sizeof(X) == 8 || sizeof(Y) > sizeof(X) ? 512 : 1024;

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

// One block's work on the rows first_row, first_row + row_step, ...
template <typename X, typename Y, typename Exchange>
class SlabRows {
 public:
  using Acc = AccOf<X>;

  __device__ __forceinline__ SlabRows(const RowArgs &args, const Ring<X> &ring,
                                      PartSlots<Acc> (&slots)[2], Exchange &exchange, int rank,
                                      std::int64_t first_row, std::int64_t row_step)
      : args_(args),
        ring_(ring),
        slots_(slots),
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
      if (order_.count == 1 && order_.again == 0) {
        whole_row_in_registers();
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
  // This warp's first column in its slab, and how many it has: none or less in a slab's empty end.
  __device__ __forceinline__ int segment_begin() const {
    return static_cast<int>(threadIdx.x) / kWarpThreads * args_.segment_cols;
  }
  __device__ __forceinline__ int segment_cols(int slab) const {
    const int left = slab_cols(slab) - segment_begin();
    return left < args_.segment_cols ? left : args_.segment_cols;
  }

  // A lane's columns.
  __device__ __forceinline__ int active() const { return args_.segment_cols / kWarpThreads; }

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
    const X *const x = reinterpret_cast<const X *>(ring_.slot(turn.slot) + x_shift_);
    load_held(x + segment_begin(), lane_of_warp(), segment_cols(slab), x_pairs_, held_);
  }

  __device__ __forceinline__ Acc segment_max() const {
    return group_lanes_max(held_max(held_), kWarpThreads);
  }

  // Leaves the segment's part in the step's slots; true for warps that merge them.
  __device__ __forceinline__ void sum_up(Acc max) {
    const RowPart<Acc> part =
        group_lanes_sum(held_sum<X, Y>(held_, active(), max, args_.is_log), kWarpThreads, args_.is_log);
    if (threadIdx.x % kWarpThreads == 0) *slots_[step_ & 1].at(threadIdx.x / kWarpThreads) = part;
    __syncthreads();
  }

  // The first warp's: the slab's part goes to whoever shares the row.
  __device__ __forceinline__ void post(int slab) {
    if (threadIdx.x < kWarpThreads) {
      exchange_.post(slab, merge_warps(slots_[step_ & 1], args_.is_log));
    }
    ++step_;
  }

  __device__ __forceinline__ RowFactors<Acc> row_factors() {
    return finish(exchange_.merge(slots_[step_ & 1], args_.is_log), args_.empty_is_zero,
                  args_.is_log);
  }

  __device__ __forceinline__ void store(int slab, Acc max, const RowFactors<Acc> &factors) {
    held_output<X, Y>(held_, active(), max, factors, args_.is_log);
    Y *const y = y_ + std::int64_t{slab} * args_.slab_cols + segment_begin();
    if constexpr (sizeof(Y) == 2) {
      if (!y_pairs_) {
        store_held_shifted(y, segment_cols(slab), held_);
        return;
      }
    }
    store_held(y, lane_of_warp(), segment_cols(slab), y_pairs_, held_);
  }

  // One slab: it leaves its slot at once, and the next row's copy begins.
  __device__ __forceinline__ void whole_row_in_registers() {
    const int slab = order_.first;
    wait(turn_, slab);
    load(turn_, slab);
    turn_.advance(ring_.count());
    const Acc max = segment_max();
    sum_up(max);
    free_slot();
    RowFactors<Acc> factors;
    if (args_.slabs == 1) {
      factors = finish(merge_warps(slots_[step_ & 1], args_.is_log), args_.empty_is_zero,
                       args_.is_log);
      ++step_;
    } else {
      post(slab);
      factors = row_factors();
    }
    store(slab, max, factors);
  }

  // Several: all of them are summed up, then each is taken again and written.
  __device__ __forceinline__ void row_in_slots() {
    Turn kept = turn_;
    for (int copy = 0; copy < order_.count; ++copy) {
      const int slab = order_.slab(copy);
      wait(turn_, slab);
      load(turn_, slab);
      turn_.advance(ring_.count());
      sum_up(segment_max());
      post(slab);
      if (copy < order_.again) {
        kept.advance(ring_.count());
        free_slot();
      }
    }
    const RowFactors<Acc> factors = row_factors();
    for (int copy = order_.again; copy < order_.copies(); ++copy) {
      const int slab = order_.slab(copy);
      Turn turn = kept;
      kept.advance(ring_.count());
      if (copy >= order_.count) {
        turn = turn_;
        wait(turn, slab);
        turn_.advance(ring_.count());
      }
      load(turn, slab);
      __syncthreads();
      free_slot();
      const Acc max = segment_max();
      if (!args_.is_log) held_sum<X, Y>(held_, active(), max, false);  // for the exponentials it leaves
      store(slab, max, factors);
    }
  }

  const RowArgs &args_;
  const Ring<X> &ring_;
  PartSlots<Acc> (&slots_)[2];
  Exchange &exchange_;
  const SlabOrder order_;
  std::int64_t row_;
  const std::int64_t row_step_;

  Held<X, Y> held_;
  unsigned step_ = 0;  // slabs summed up: says which slots are in use
  Turn turn_;          // the next slab to take

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
