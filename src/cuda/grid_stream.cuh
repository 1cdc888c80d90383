// Algorithm 14, GRID, where there are more rows than the device holds at once: teams of blocks that
// go from row to row, while the next rows are on their way.
//
// The slabs, the runs, their parts and the order of additions are grid.cuh's, and so are the bits.
// As in cluster_stream.cuh a warp's runs come through slots of its own; see core/grid_schedule.h
// for which of them wait where. So the memory is busy while a row's parts meet.
//
// A row's parts meet thus. The warps leave their runs' parts in shared memory; the block's warps
// merge them, a slab each, and send the slabs' parts to all blocks of the team
// (prim/grid_mail.cuh), the own one included. The warps of each block take in all of a row's, a
// lane each; warp 0 merges them, or where they are many what every warp has made of its own. All
// others wait.
//
// Where a block has one slab and registers allow, grid_lagged.cuh takes its place.
//
// Workspace: the mail, all 0 before the launch.
#pragma once

#include "cuda/prim/grid_mail.cuh"
#include "cuda/prim/run_slots.cuh"
#include "cuda/prim/spread.cuh"

namespace softmax {

constexpr int kGridStreamThreads = kGridStreamWarps * kWarpThreads;

#if SOFTMAX_BULK_COPY

// What the outputs need of a row.
template <typename T>
struct RowOutcome {
  T max;  // as it is: `factors` have a finite one
  RowFactors<T> factors;
};

// Shared memory of a block. The barriers change once a row, so whoever waits for a row knows the
// phase; nothing of a row is written before all have read what lay there of the row before, since
// a warp posts its parts when it has seen that row's outcome.
template <typename T>
struct GridMeeting {
  PartSlots<T, kMostBlockSlabs * kGridStreamWarps> runs;
  PartSlots<T, kGridStreamWarps> groups;
  RowOutcome<T> outcome;
  std::uint64_t posted[kMostBlockSlabs];  // all runs of a slab
  std::uint64_t grouped;                  // all parts of the row, or all of `groups`
  std::uint64_t decided;                  // the outcome

  // By thread 0, before a barrier of the block.
  __device__ __forceinline__ void initialise(int warps) {
    for (std::uint64_t &barrier : posted) cuda::ptx::mbarrier_init(&barrier, warps);
    cuda::ptx::mbarrier_init(&grouped, warps);
    cuda::ptx::mbarrier_init(&decided, 1);
  }
};

static_assert(sizeof(GridMeeting<float>) <= grid_meeting_bytes(4), "grid_slots leaves room for it");

// All parts of a row, behind the slots of so many warps, and before the slots' barriers.
template <typename T>
__device__ __forceinline__ RowPart<T> *grid_row_parts(const RowArgs &args, int warps) {
  extern __shared__ __align__(128) unsigned char smem[];
  return reinterpret_cast<RowPart<T> *>(smem + warps * args.slots * args.slot_bytes);
}

// What a run has in its slot between its part and its outputs, and what is to be done before those.
enum class WaitingRun {
  kValues,      // log-softmax keeps values, and so does what is held as raw words
  kTerms,       // left in the values' places, which are as wide
  kTermsAgain,  // values, of which terms are made a second time
};
template <typename X, typename Y, RowAccess access, bool kIsLog>
constexpr WaitingRun waiting_run() {
  if (kIsLog || sizeof(Y) == 2) return WaitingRun::kValues;
  return sizeof(X) == sizeof(AccOf<X>) && access != RowAccess::kWindow ? WaitingRun::kTerms
                                                                       : WaitingRun::kTermsAgain;
}

template <typename X, typename Y, int kPacks, RowAccess access, bool kIsLog>
class GridStreamRows {
 public:
  using Acc = AccOf<X>;
  using Run = SpreadRuns<X, Y, kPacks, access>;
  using Meeting = GridMeeting<Acc>;

  // `slots` are this warp's.
  __device__ __forceinline__ GridStreamRows(const RowArgs &args, const Ring<X> &slots,
                                            Meeting &meeting, const GridMail<Acc> &mail)
      : args_(args), slots_(slots), meeting_(meeting), mail_(mail) {
    const int rank = static_cast<int>(blockIdx.x) % args.row_blocks;
    const int team = static_cast<int>(blockIdx.x) / args.row_blocks;
    const int teams = static_cast<int>(gridDim.x) / args.row_blocks;
    first_slab_ = static_cast<int>(std::int64_t{args.slabs} * rank / args.row_blocks);
    slabs_ =
        static_cast<int>(std::int64_t{args.slabs} * (rank + 1) / args.row_blocks) - first_slab_;
    again_ = runs_read_again(slabs_, slots.count());
    rows_ = static_cast<std::uint32_t>((args.rows - team + teams - 1) / teams);
    step_ = teams * args.cols;
    first_ = team * args.cols + std::int64_t{first_slab_} * args.slab_cols + warp() * run_cols();
    copy_first_ = first_;
    copy_rows_ = rows_;
    run_.take_one_row();
    // In a slot there is room around every run.
    run_.before = run_.after = 1 << 30;
  }

  // Asks for as many runs as there are slots. Needs nobody.
  __device__ __forceinline__ void fill() {
    for (int slot = 0; slot < slots_.count(); ++slot) refill(slot);
  }

  __device__ __forceinline__ void run() {
    for (; row_ < rows_; ++row_, first_ += step_) {
      Acc max = Acc(0);
      for (int slab = 0; slab < slabs_; ++slab) {
        const int slot = next_copy();
        X *const run = load(slot, slab);
        // It has all been read when its maximum is there.
        max = warp_max_or_nan(run_.max(0));
        const bool waits = slab >= again_ && slab < slabs_ - 1;
        if (waits) {
          waiting_.push(slot);
        } else {
          refill(slot);
        }
        const RowPart<Acc> part = run_.sum(0, max, kIsLog);
        if constexpr (kWaiting == WaitingRun::kTerms) {
          if (waits) {
            run_.leave(run);
            fence_slot_writes();  // before the next copy into the slot
          }
        }
        post(slab, run_.all_lanes(part, kIsLog));
      }
      meet();
      const RowOutcome<Acc> row = meeting_.outcome;
      for (int slab = slabs_ - 1;; --slab) {
        store(slab, max, row);
        if (slab == 0) break;
        max = load_again(slab - 1);
      }
    }
  }

 private:
  static constexpr WaitingRun kWaiting = waiting_run<X, Y, access, kIsLog>();

  static __device__ __forceinline__ int warp() { return threadIdx.x / kWarpThreads; }
  static __device__ __forceinline__ int warps() { return blockDim.x / kWarpThreads; }
  __device__ __forceinline__ int run_cols() const { return Run::run_cols(args_); }

  // ---- runs ----

  // Columns of this warp's run in a slab of the block's: the row's last slab may have runs that
  // are shorter, or none of them.
  __device__ __forceinline__ int cols_in(int slab) const {
    const std::int64_t first =
        std::int64_t{first_slab_ + slab} * args_.slab_cols + warp() * run_cols();
    const std::int64_t left = args_.cols - first;
    return left < run_cols() ? (left > 0 ? static_cast<int>(left) : 0) : run_cols();
  }
  __device__ __forceinline__ std::int64_t to_slab(int slab) const {
    return std::int64_t{slab} * args_.slab_cols;
  }

  // Has a slot filled with what comes next, if anything does.
  __device__ __forceinline__ void refill(int slot) {
    if (copy_rows_ == 0) return;
    const int slab = slab_of_copy(copy_, slabs_, again_);
    ask_for_run(slots_, {slot, 0}, static_cast<const X *>(args_.x) + copy_first_ + to_slab(slab),
                cols_in(slab));
    filling_.push(slot);
    if (++copy_ < slabs_ + again_) return;
    copy_ = 0;
    copy_first_ += step_;
    --copy_rows_;
  }
  // The slot of the oldest copy, when that is there.
  __device__ __forceinline__ int next_copy() {
    const int slot = filling_.pop();
    slots_.wait({slot, phases_ >> slot & 1});
    phases_ ^= 1u << slot;
    return slot;
  }
  __device__ __forceinline__ const X *at(int slab) const {
    return static_cast<const X *>(args_.x) + first_ + to_slab(slab);
  }
  __device__ __forceinline__ void take(int slab) {
    run_.cols = cols_in(slab);
    run_.present = run_.cols > 0 ? 1 : 0;
  }
  // A run whose copy has come. Returns where it lies.
  __device__ __forceinline__ X *load(int slot, int slab) {
    take(slab);
    X *const run = run_in_slot(slots_, {slot, 0}, at(slab), run_.cols, access == RowAccess::kWords);
    run_.load(run);
    return run;
  }
  // A run whose part has long been posted: its maximum, where that is still needed.
  __device__ __forceinline__ Acc load_again(int slab) {
    const bool waits = slab >= again_;
    const int slot = waits ? waiting_.pop() : next_copy();
    Acc max = Acc(0);
    if (waits) {
      // What no whole word brings is in the slot since it was first read.
      take(slab);
      run_.load(
          reinterpret_cast<const X *>(slots_.place({slot, 0}, run_range(at(slab), run_.cols))));
    } else {
      load(slot, slab);
    }
    if constexpr (kWaiting == WaitingRun::kTerms) {
      if (waits) {
        refill(slot);
        return meeting_.runs[slab * kGridStreamWarps + warp()].max;
      }
    }
    if constexpr (kWaiting != WaitingRun::kValues) max = warp_max_or_nan(run_.max(0));
    refill(slot);
    if constexpr (kWaiting != WaitingRun::kValues) run_.sum(0, max, kIsLog);
    return max;
  }
  __device__ __forceinline__ void store(int slab, Acc max, const RowOutcome<Acc> &row) {
    const Split<Acc> scale = part_scale(max, row.max, Run::Held::kNearLimit);
    run_.held[0].finish({row.factors, scale, unknown_zero(args_)}, kIsLog);
    run_.template store<kHeldStoreHint>(static_cast<Y *>(args_.y) + anew(first_ + to_slab(slab)),
                                        kIsLog);
  }

  // ---- parts ----

  __device__ __forceinline__ std::uint32_t phase() const { return row_ & 1; }

  __device__ __forceinline__ void post(int slab, const RowPart<Acc> &part) const {
    __syncwarp();  // the row before has been read by all lanes
    if (run_.lane != 0) return;
    meeting_.runs[slab * kGridStreamWarps + warp()] = part;
    arrive_at(&meeting_.posted[slab]);
  }

  // Until the row's outcome is there.
  __device__ __forceinline__ void meet() const {
    for (int slab = warp(); slab < slabs_; slab += warps()) {
      wait_for(&meeting_.posted[slab], phase());
      const auto part = merge_parts<Acc, kRunsBits>(
          0, kWarpThreads, warps(), Run::Held::kNearLimit, kIsLog,
          [&](int i) { return meeting_.runs[slab * kGridStreamWarps + i]; });
      mail_.send(row_, first_slab_ + slab, part);
    }
    // A part a lane, as long as there are lanes enough.
    const bool is_short = args_.slabs <= kWarpThreads;
    if (warp() == 0 || !is_short) {
      RowPart<Acc> *const parts = grid_row_parts<Acc>(args_, warps());
      const int first = warp() * kWarpThreads;
      const int stride = is_short ? kWarpThreads : static_cast<int>(blockDim.x);
      mail_.receive(row_, first + run_.lane, stride, args_.slabs, parts);
      __syncwarp();
      const bool is_few = args_.slabs <= kFewParts;
      if (!is_few) {
        const RowPart<Acc> group = merge(first, stride, args_.slabs, parts);
        if (run_.lane == 0) meeting_.groups[warp()] = group;
      }
      if (!is_short && run_.lane == 0) arrive_at(&meeting_.grouped);
      if (warp() == 0) {
        if (!is_short) wait_for(&meeting_.grouped, phase());
        decide(is_few ? merge(0, kWarpThreads, args_.slabs, parts)
                      : merge(0, kWarpThreads, warps(), &meeting_.groups[0]));
      }
    }
    wait_for(&meeting_.decided, phase());
  }

  // By a warp: the parts of which lane i has first + i, first + i + stride, ....
  __device__ __forceinline__ RowPart<Acc> merge(int first, int stride, int count,
                                                const RowPart<Acc> *parts) const {
    return merge_parts<Acc, 0>(first, stride, count, Run::Held::kNearLimit, kIsLog,
                               [=](int i) { return parts[i]; });
  }
  __device__ __forceinline__ void decide(const RowPart<Acc> &row) const {
    const RowFactors<Acc> factors = finish(row, Run::Held::kNearLimit, args_.empty_is_zero, kIsLog);
    if (run_.lane != 0) return;
    meeting_.outcome = {row.max, factors};
    arrive_at(&meeting_.decided);
  }

  const RowArgs &args_;
  const Ring<X> &slots_;
  Meeting &meeting_;
  const GridMail<Acc> &mail_;
  Run run_;
  int first_slab_;           // of the block's, in a row
  int slabs_;                // of the block's
  int again_;                // of those, how many are read again
  std::uint32_t rows_;       // of the team's
  std::uint32_t row_ = 0;    // of those
  std::int64_t first_;       // element of the tensor: where this row's run of the first slab begins
  std::int64_t step_;        // to the next row's
  std::int64_t copy_first_;  // the same of the row that copies are asked for
  std::uint32_t copy_rows_;  // still to ask for
  int copy_ = 0;             // number of the next copy in its row
  std::uint32_t phases_ = 0;  // of the slots' next copies, a bit each
  SlotQueue filling_;
  SlotStack waiting_;
};

#endif  // SOFTMAX_BULK_COPY

// The operation is an argument here, as in cluster_stream.cuh.
template <typename X, typename Y, int kPacks, RowAccess access, bool kIsLog>
__global__ void __launch_bounds__(kGridStreamThreads, 1) grid_stream_kernel(RowArgs args) {
#if SOFTMAX_BULK_COPY
  using Acc = AccOf<X>;
  extern __shared__ __align__(128) unsigned char smem[];
  __shared__ GridMeeting<Acc> meeting;
  const int warps = blockDim.x / kWarpThreads;
  const int warp = threadIdx.x / kWarpThreads;
  const std::uint64_t begin = address_of(args.x);
  std::uint64_t *const full =
      reinterpret_cast<std::uint64_t *>(grid_row_parts<Acc>(args, warps) + args.slabs);
  const Ring<X> slots(smem + warp * args.slots * args.slot_bytes, full + warp * args.slots,
                      args.slots, args.slot_bytes,
                      {begin, begin + args.rows * args.cols * sizeof(X)});
  const GridMail<Acc> mail(args.workspace, static_cast<int>(blockIdx.x) / args.row_blocks,
                           args.slabs);
  GridStreamRows<X, Y, kPacks, access, kIsLog> rows(args, slots, meeting, mail);
  if (threadIdx.x == 0) meeting.initialise(warps);
  if (threadIdx.x % kWarpThreads == 0) {
    slots.initialise();
    cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
  }
  // No copy is asked for while a neighbour's barrier is still being made: racecheck reports the
  // two.
  __syncthreads();
  rows.fill();
  rows.run();
#endif
}

}  // namespace softmax
