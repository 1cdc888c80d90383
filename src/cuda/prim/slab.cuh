// Rows in slabs: what CLUSTER and GRID share (compute capability 9.0 and above).
//
// A row is cut into slabs of a size that depends on N and the types alone. A block takes a run of
// a row's slabs through a ring in shared memory, forms each slab's PartSum, exchanges them with the
// blocks that share the row, and writes its slabs' outputs. Which block takes a slab, and how many
// share a row, changes no bit: the order of additions is fixed within a slab and over the slabs.
//
// Slabs stay in their slots from the first step to the last. Where a block has more slabs than
// slots, the first ones are read a second time, the last of them first: those are likeliest to be
// in L2 still.
#pragma once

#include "cuda/prim/bulk.cuh"
#include "cuda/prim/part_reduce.cuh"

namespace softmax {

constexpr int kMaxSlabThreads = 512;

#if SOFTMAX_BULK_COPY

// The slabs of one block, in the order in which its ring takes them: for every row the slabs that
// will be read again, those that stay, and the first ones again.
struct SlabOrder {
  int first;  // slab of the row
  int count;
  int again;  // of them, read twice

  __device__ __forceinline__ SlabOrder(const RowArgs &args, int rank) {
    const std::int64_t slabs = args.slabs;
    first = static_cast<int>(slabs * rank / args.row_blocks);
    count = static_cast<int>(slabs * (rank + 1) / args.row_blocks) - first;
    // A slot or two are left for what comes next.
    const int kept = args.slots > 2 ? args.slots - 2 : 1;
    again = count <= args.slots ? 0 : count - kept;
  }
  __device__ __forceinline__ int loads() const { return count + again; }
  __device__ __forceinline__ int slab(int load) const {
    return first + (load < count ? load : again - 1 - (load - count));
  }
};

// One block's work on the rows row, row + row_step, ...
template <typename X, typename Y, typename Exchange>
class SlabRows {
 public:
  using Acc = AccOf<X>;

  __device__ __forceinline__ SlabRows(const RowArgs &args, const Ring<X> &ring,
                                      const BlockReduction<Acc> &reduction, Exchange &exchange,
                                      int rank, std::int64_t first_row, std::int64_t row_step)
      : args_(args),
        ring_(ring),
        reduction_(reduction),
        exchange_(exchange),
        order_(args, rank),
        row_step_(row_step),
        next_row_(first_row) {
    in_slot_ = sizeof(X) == sizeof(Y) &&
               bulk_shift(address_of(args.x)) == bulk_shift(address_of(args.y));
  }

  __device__ __forceinline__ void run() {
    const std::int64_t first_row = next_row_;
    fill();
    for (std::int64_t row = first_row; row < args_.rows; row += row_step_) {
      const Turn first_turn = turn_;
      for (int i = 0; i < order_.count; ++i) reduce(row, i);
      const RowFactors<Acc> factors =
          exchange_.template merge<Acc>(reduction_, args_.is_log, args_.empty_is_zero);
      // The slabs that stayed, then those that come again.
      Turn kept_turn = first_turn;
      for (int i = 0; i < order_.again; ++i) kept_turn.advance(ring_.count());
      for (int i = order_.again; i < order_.count; ++i) {
        output(row, i, kept_turn, factors);
        kept_turn.advance(ring_.count());
      }
      for (int i = order_.count; i < order_.loads(); ++i) {
        make_loaded();
        output(row, i, turn_, factors);
        turn_.advance(ring_.count());
        ++taken_;
      }
      exchange_.next_row();
    }
    if (threadIdx.x == 0) wait_for_stores<0>();
  }

 private:
  __device__ __forceinline__ int slab_cols(int slab) const {
    const std::int64_t begin = std::int64_t{slab} * args_.slab_cols;
    const std::int64_t left = args_.cols - begin;
    return static_cast<int>(left < args_.slab_cols ? left : args_.slab_cols);
  }
  template <typename T>
  __device__ __forceinline__ ByteRange range(const void *base, std::int64_t row, int slab) const {
    const std::int64_t begin = row * args_.cols + std::int64_t{slab} * args_.slab_cols;
    const std::uint64_t address = address_of(base) + begin * sizeof(T);
    return {address, address + slab_cols(slab) * sizeof(T)};
  }

  // ---- the ring: thread 0 asks for copies, in order; a slot is free once its output is stored ----

  __device__ __forceinline__ void load_next() {
    if (next_row_ >= args_.rows) return;
    ring_.load(load_turn_, range<X>(args_.x, next_row_, order_.slab(next_load_)));
    load_turn_.advance(ring_.count());
    ++asked_;
    if (++next_load_ == order_.loads()) {
      next_load_ = 0;
      next_row_ += row_step_;
    }
  }
  __device__ __forceinline__ void fill() {
    if (threadIdx.x != 0) return;
    for (int i = 0; i < ring_.count(); ++i) load_next();
  }
  // By every thread, when all of them are past a barrier after their last use of `freed` slots in
  // all since the start.
  __device__ __forceinline__ void refill(unsigned freed) {
    if (threadIdx.x != 0) return;
    while (asked_ != freed + ring_.count() && next_row_ < args_.rows) load_next();
  }
  // Before waiting for the next slab: its copy must have been asked for, which with few slots may
  // have waited for the last store.
  __device__ __forceinline__ void make_loaded() {
    if (threadIdx.x != 0 || asked_ != taken_) return;
    wait_for_stores<0>();
    load_next();
  }

  // ---- the steps of a slab ----

  __device__ __forceinline__ Units units(const void *first, int cols) const {
    return {cols, static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x),
            is_pair_aligned(static_cast<const X *>(first))};
  }

  __device__ __forceinline__ void reduce(std::int64_t row, int load) {
    make_loaded();
    const int slab = order_.slab(load);
    X *const x = ring_.wait(turn_, range<X>(args_.x, row, slab));
    const Units mine = units(x, slab_cols(slab));
    const bool keep = load >= order_.again;
    const Acc max = reduction_.max(staged_max(x, mine));
    reduction_.put(
        staged_sum<X, Y>(x, mine, finite_reference(max), args_.is_log, keep), args_.is_log);
    __syncthreads();
    turn_.advance(ring_.count());
    ++taken_;
    if (!keep) {
      ++freed_;
      refill(freed_);
    }
    if (threadIdx.x < kWarpThreads) {
      exchange_.post(slab, PartSum<Acc>::of(max, reduction_.take(args_.is_log)));
    }
  }

  __device__ __forceinline__ void output(std::int64_t row, int load, Turn turn,
                                         const RowFactors<Acc> &factors) {
    const int slab = order_.slab(load);
    const bool again = load >= order_.count;
    const ByteRange x_range = range<X>(args_.x, row, slab);
    const ByteRange y_range = range<Y>(args_.y, row, slab);
    X *const x = again ? ring_.wait(turn, x_range)
                       : reinterpret_cast<X *>(ring_.slot(turn.slot) + bulk_shift(x_range.begin));
    const Acc part_max = exchange_.part_max(slab);
    const int cols = slab_cols(slab);
    const Units mine = units(x, cols);
    const bool kept = kKeepsExp<X, Y> && !args_.is_log && !again;
    if (in_slot_) {
      Y *const y = reinterpret_cast<Y *>(x);
      staged_output<X, Y>(x, y, mine, mine, part_max, factors, args_.is_log, kept);
      fence_slot_writes();
      __syncthreads();
      if (threadIdx.x < kWarpThreads) store_range(y, y_range);
      // The store before this one has been read by now, or soon.
      if (threadIdx.x == 0) wait_for_stores<1>();
      refill(freed_);
      ++freed_;
    } else {
      Y *const y = reinterpret_cast<Y *>(y_range.begin);
      Units out = mine;
      out.pairs = is_pair_aligned(y);
      staged_output<X, Y>(x, y, mine, out, part_max, factors, args_.is_log, kept);
      fence_slot_writes();
      __syncthreads();
      ++freed_;
      refill(freed_);
    }
  }

  const RowArgs &args_;
  const Ring<X> &ring_;
  const BlockReduction<Acc> &reduction_;
  Exchange &exchange_;
  const SlabOrder order_;
  const std::int64_t row_step_;
  bool in_slot_;

  Turn turn_;           // the next slab to take
  unsigned taken_ = 0;  // slabs taken, and freed again; they wrap around
  unsigned freed_ = 0;

  // Thread 0's: the next copy to ask for.
  Turn load_turn_;
  unsigned asked_ = 0;
  int next_load_ = 0;
  std::int64_t next_row_;
};

#endif  // SOFTMAX_BULK_COPY

}  // namespace softmax
