// Algorithms 13 and 14, CLUSTER and GRID, for many rows that a team's blocks hold with a slab each:
// a row is written when the parts of two more have been taken.
//
// Slabs, runs, their parts and the order of additions are grid.cuh's, and so are the bits. Or those
// of cluster.cuh, for row lengths that clusters divide badly: then the parts of runs meet, not
// those of slabs. In grid_stream.cuh a block's warps stand still while a row's parts meet, which
// takes as long as half of the row's reading and writing. Here they do not:
//
//   a worker    takes the part of its run of row r + 2, which stays in its slot; takes the run of
//               row r out of its slot again, has that filled with what comes next, and writes row
//               r. There are no registers for two runs.
//   the last    merges the workers' parts and sends the slab's; receives all parts of row r, merges
//   warp        them, and tells the workers. While it waits for those of row r it sends those of
//               later rows as soon as the workers have posted them.
//
// So a row's parts have the time of two rows to meet in. With the time of one they were waited for
// at every row, and rows of 2^20 columns were read and written at 0.66 of copy speed.
//
// Nothing here is written before all have read what lay there:
//
//   in the block    A worker posts row r + 3 when it has seen row r decided, for which all parts of
//                   row r were read. Four rows' parts of runs, outcomes and barriers are enough. A
//                   barrier of row r changes again for row r + 4, when every worker has posted that
//                   and so has seen row r + 1 decided: nobody is two changes late.
//   in the mail     A block sends row q when it has read all parts of row q - 3, at least. So row
//                   r + 6 is sent when row r + 3 has been read of every block, each of which had
//                   read all of row r by then: eight rows' words are more than enough.
//
// Workspace: the mail, all 0 before the launch.
#pragma once

#include "cuda/grid_stream.cuh"

namespace softmax {

// Of the 17 warps five share one scheduler's registers, as if there were 20: 96 a thread.
constexpr int kGridLaggedThreads = 20 * kWarpThreads;
static_assert(kGridStreamWarps + 1 <= 20, "the launch has no more threads than that");

#if SOFTMAX_BULK_COPY

// Which buffer and barrier a row has, and which change of the barrier is its own.
constexpr int kLaggedBuffers = 4;
static_assert(kLaggedBuffers > kLaggedRows + 1, "see above");
__device__ __forceinline__ int buffer_of(std::uint32_t row) {
  return static_cast<int>(row % kLaggedBuffers);
}
__device__ __forceinline__ std::uint32_t phase_of(std::uint32_t row) {
  return row / kLaggedBuffers & 1;
}

// By a warp: lane 0 writes what others wait for at the barrier, and all that any lane has read
// before may be written by them. Every lane arrives: lane 0 alone, after the others have met it,
// would order as much, but racecheck follows a thread's own arrivals only (5 findings with lane 0,
// none with all).
template <typename Write>
__device__ __forceinline__ void post(std::uint64_t *barrier, int lane, Write write) {
  __syncwarp();
  if (lane == 0) write();
  __syncwarp();
  arrive_at(barrier);
}

// Shared memory of a block.
template <typename T>
struct LaggedMeeting {
  PartSlots<T, kLaggedBuffers * kGridStreamWarps> runs;
  PartSlots<T, kGridStreamWarps> groups;
  RowOutcome<T> outcome[kLaggedBuffers];
  std::uint64_t posted[kLaggedBuffers];   // all runs
  std::uint64_t decided[kLaggedBuffers];  // the outcome

  // By thread 0, before a barrier of the block.
  __device__ __forceinline__ void initialise(int workers) {
    for (std::uint64_t &barrier : posted) {
      cuda::ptx::mbarrier_init(&barrier, workers * kWarpThreads);
    }
    for (std::uint64_t &barrier : decided) cuda::ptx::mbarrier_init(&barrier, kWarpThreads);
  }
  __device__ __forceinline__ RowPart<T> &run(std::uint32_t row, int worker) {
    return runs[buffer_of(row) * kGridStreamWarps + worker];
  }
};

static_assert(sizeof(LaggedMeeting<float>) <= grid_meeting_bytes(4),
              "grid_slots leaves room for it");

// Which block this is, and what its team has.
struct TeamPlace {
  int slab;  // of the block's: its number in the team
  int team;
  int teams;
  std::uint32_t rows;

  explicit __device__ __forceinline__ TeamPlace(const RowArgs &args)
      : slab(static_cast<int>(blockIdx.x) % args.row_blocks),
        team(static_cast<int>(blockIdx.x) / args.row_blocks),
        teams(static_cast<int>(gridDim.x) / args.row_blocks),
        rows(static_cast<std::uint32_t>((args.rows - team + teams - 1) / teams)) {}
};

template <typename X, typename Y, int kPacks, RowAccess access, bool kIsLog>
class LaggedWorker {
 public:
  using Acc = AccOf<X>;
  using Run = SpreadRuns<X, Y, kPacks, access>;
  using Meeting = LaggedMeeting<Acc>;

  // `slots` are this warp's.
  __device__ __forceinline__ LaggedWorker(const RowArgs &args, const TeamPlace &place, int worker,
                                          const Ring<X> &slots, Meeting &meeting)
      : args_(args), slots_(slots), meeting_(meeting), worker_(worker), rows_(place.rows) {
    const int run_cols = Run::run_cols(args);
    const std::int64_t first_col =
        std::int64_t{place.slab} * args.slab_cols + std::int64_t{worker} * run_cols;
    // The row's last slab may have runs that are shorter, or none of them.
    run_.take_in_slot(run_cols, args.cols - first_col);
    first_ = place.team * args.cols + first_col;
    step_ = place.teams * args.cols;
  }

  // Asks for as many rows as there are slots. Needs nobody.
  __device__ __forceinline__ void fill() const {
    for (int i = 0; i < slots_.count() && i < static_cast<int>(rows_); ++i) {
      ask({i, 0}, first_ + i * step_);
    }
  }

  __device__ __forceinline__ void run() {
    Turn turn;
    Acc max[kLaggedRows + 1] = {};  // of the row that is taken, and of those before it
    for (std::uint32_t row = 0;; ++row, first_ += step_) {
#pragma unroll
      for (int i = kLaggedRows; i > 0; --i) max[i] = max[i - 1];
      if (row < rows_) max[0] = take(row, turn);
      if (row >= kLaggedRows) {
        const int slot = turn.slot - kLaggedRows;
        write(row - kLaggedRows, {slot < 0 ? slot + slots_.count() : slot, 0},
              first_ - kLaggedRows * step_, max[kLaggedRows]);
      }
      if (row == rows_ - 1 + kLaggedRows) break;
      turn.advance(slots_.count());
    }
  }

 private:
  static constexpr WaitingRun kWaiting = waiting_run<X, Y, access, kIsLog>();

  __device__ __forceinline__ const X *at(std::int64_t first) const {
    return static_cast<const X *>(args_.x) + first;
  }
  __device__ __forceinline__ void ask(Turn turn, std::int64_t first) const {
    ask_for_run(slots_, turn, at(first), run_.cols);
  }

  // This row's part, for the last warp. The run stays in its slot. Returns its maximum.
  __device__ __forceinline__ Acc take(std::uint32_t row, Turn turn) {
    slots_.wait(turn);
    X *const run = run_in_slot(slots_, turn, at(first_), run_.cols, access == RowAccess::kWords);
    run_.load(run);
    const Acc max = warp_max_or_nan(run_.max(0));
    const RowPart<Acc> lane_part = run_.sum(0, max, kIsLog);
    if constexpr (kWaiting == WaitingRun::kTerms) {
      run_.leave(run);
      fence_slot_writes();  // before the next copy into the slot
    }
    const RowPart<Acc> part = run_.all_lanes(lane_part, kIsLog);
    // The outcome of the row that was written last has been read by all lanes.
    post(&meeting_.posted[buffer_of(row)], run_.lane, [&] { meeting_.run(row, worker_) = part; });
    return max;
  }

  // A row whose part was posted before others'. All that needs no outcome comes first.
  __device__ __forceinline__ void write(std::uint32_t row, Turn turn, std::int64_t first, Acc max) {
    // What no whole word brings is in the slot since it was first read.
    run_.load(reinterpret_cast<const X *>(slots_.place(turn, run_range(at(first), run_.cols))));
    const auto slots = static_cast<std::uint32_t>(slots_.count());
    if (row + slots < rows_) ask(turn, first + slots * step_);
    if constexpr (kWaiting == WaitingRun::kTermsAgain) run_.sum(0, max, kIsLog);
    wait_for(&meeting_.decided[buffer_of(row)], phase_of(row));
    const RowOutcome<Acc> outcome = meeting_.outcome[buffer_of(row)];
    const Split<Acc> scale = part_scale(max, outcome.max, Run::Held::kNearLimit);
    run_.held[0].finish({outcome.factors, scale, unknown_zero(args_)}, kIsLog);
    run_.template store<kHeldStoreHint>(static_cast<Y *>(args_.y) + anew(first), kIsLog);
  }

  const RowArgs &args_;
  const Ring<X> &slots_;
  Meeting &meeting_;
  Run run_;
  int worker_;
  std::uint32_t rows_;  // of the team's
  std::int64_t first_;  // element of the tensor: where the run of the row to be taken begins
  std::int64_t step_;   // to the next row's
};

// The last warp's work. `near_limit`: see part_scale.
template <typename Acc, bool kIsLog>
class LaggedExchange {
 public:
  using Meeting = LaggedMeeting<Acc>;

  // `parts`: for all of a row.
  __device__ __forceinline__ LaggedExchange(const RowArgs &args, const TeamPlace &place,
                                            int workers, float near_limit, RowPart<Acc> *parts,
                                            Meeting &meeting)
      : args_(args),
        parts_(parts),
        meeting_(meeting),
        mail_(args.workspace, place.team, args.parts),
        slab_(place.slab),
        workers_(workers),
        runs_meet_(args.parts != args.slabs),
        near_limit_(near_limit),
        rows_(place.rows),
        lane_(static_cast<int>(threadIdx.x) % kWarpThreads) {}

  __device__ __forceinline__ void run() {
    for (std::uint32_t row = 0; row < rows_; ++row) {
      if (sent_ == row) wait_for(&meeting_.posted[buffer_of(row)], phase_of(row));
      receive(row);
      __syncwarp();
      decide(row, merge_row());
    }
  }

 private:
  // Parts that a lane looks for at once: all their words are on their way together.
  static constexpr int kTogether = 16 / GridMail<Acc>::kWords;

  // Until all of a row's parts are in `parts`, of which lane i has i, i + 32, ....
  __device__ __forceinline__ void receive(std::uint32_t row) {
    // Of those that may be sent.
    const std::uint32_t end = row + kLaggedRows + 1 < rows_ ? row + kLaggedRows + 1 : rows_;
    for (int first = lane_; first - lane_ < args_.parts; first += kTogether * kWarpThreads) {
      std::uint32_t missing = 0;
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        if (first + i * kWarpThreads < args_.parts) missing |= 1u << i;
      }
      do {
        if (sent_ < end && has_been_posted(sent_)) send();
        missing = mail_.template look<kTogether>(row, first, kWarpThreads, missing, parts_);
      } while (__any_sync(kFullWarp, missing != 0));
    }
  }

  // Whether the workers' parts are there. The same for the whole warp.
  __device__ __forceinline__ bool has_been_posted(std::uint32_t row) const {
    const bool is_there =
        cuda::ptx::mbarrier_test_wait_parity(cuda::ptx::sem_acquire, cuda::ptx::scope_cta,
                                             &meeting_.posted[buffer_of(row)], phase_of(row));
    return __all_sync(kFullWarp, is_there);
  }
  // The workers' parts of the next row that is to be sent, when they are there.
  __device__ __forceinline__ void send() {
    wait_for(&meeting_.posted[buffer_of(sent_)], phase_of(sent_));
    if (runs_meet_) {
      const int first = slab_ * workers_;
      const int left = args_.parts - first;  // the row's last slab may lack some
      mail_.send_all(sent_, first, left < workers_ ? left : workers_, &meeting_.run(sent_, 0));
      ++sent_;
      return;
    }
    const auto part = merge_parts<Acc, kRunsBits>(0, kWarpThreads, workers_, near_limit_, kIsLog,
                                                  [this](int i) { return meeting_.run(sent_, i); });
    mail_.send(sent_, slab_, part);
    ++sent_;
  }

  // The order of cluster.cuh; or of grid_stream.cuh, where many parts are merged by as many warps
  // as a slab has runs.
  __device__ __forceinline__ RowPart<Acc> merge_row() {
    if (runs_meet_) {
      return merge_parts<Acc, kRunsBits>(0, kWarpThreads, args_.parts, near_limit_, kIsLog,
                                         [this](int i) { return parts_[i]; });
    }
    if (args_.slabs <= kFewParts) return merge(0, kWarpThreads, args_.slabs, parts_);
    // Groups that have no part would change nothing.
    const int some = (args_.slabs + kWarpThreads - 1) / kWarpThreads;
    const int groups = some < workers_ ? some : workers_;
#pragma unroll 1
    for (int i = 0; i < groups; ++i) {
      const auto group = merge(i * kWarpThreads, workers_ * kWarpThreads, args_.slabs, parts_);
      if (lane_ == 0) meeting_.groups[i] = group;
    }
    __syncwarp();
    return merge(0, kWarpThreads, groups, &meeting_.groups[0]);
  }
  __device__ __forceinline__ RowPart<Acc> merge(int first, int stride, int count,
                                                const RowPart<Acc> *parts) const {
    return merge_parts<Acc, 0>(first, stride, count, near_limit_, kIsLog,
                               [=](int i) { return parts[i]; });
  }

  __device__ __forceinline__ void decide(std::uint32_t row, const RowPart<Acc> &part) const {
    const RowFactors<Acc> factors = finish(part, near_limit_, args_.empty_is_zero, kIsLog);
    // The runs' parts have been read by all lanes.
    post(&meeting_.decided[buffer_of(row)], lane_, [&] {
      meeting_.outcome[buffer_of(row)] = {part.max, factors};
    });
  }

  const RowArgs &args_;
  RowPart<Acc> *const parts_;
  Meeting &meeting_;
  const GridMail<Acc> mail_;
  const int slab_;  // the block's
  const int workers_;
  const bool runs_meet_;
  const float near_limit_;
  const std::uint32_t rows_;  // of the team's
  const int lane_;
  std::uint32_t sent_ = 0;  // of those
};

#endif  // SOFTMAX_BULK_COPY

// The operation is an argument here, as in cluster_stream.cuh.
template <typename X, typename Y, int kPacks, RowAccess access, bool kIsLog>
__global__ void __launch_bounds__(kGridLaggedThreads, 1) grid_lagged_kernel(RowArgs args) {
#if SOFTMAX_BULK_COPY
  using Acc = AccOf<X>;
  using Worker = LaggedWorker<X, Y, kPacks, access, kIsLog>;
  extern __shared__ __align__(128) unsigned char smem[];
  __shared__ LaggedMeeting<Acc> meeting;
  const int workers = static_cast<int>(blockDim.x) / kWarpThreads - 1;
  const int warp = static_cast<int>(threadIdx.x) / kWarpThreads;
  const TeamPlace place(args);
  RowPart<Acc> *const parts = grid_row_parts<Acc>(args, workers);
  std::uint64_t *const full = reinterpret_cast<std::uint64_t *>(parts + args.parts);
  const std::uint64_t begin = address_of(args.x);
  const Ring<X> slots(smem + warp * args.slots * args.slot_bytes, full + warp * args.slots,
                      args.slots, args.slot_bytes,
                      {begin, begin + args.rows * args.cols * sizeof(X)});
  if (threadIdx.x == 0) meeting.initialise(workers);
  if (threadIdx.x % kWarpThreads == 0) {
    if (warp < workers) slots.initialise();
    cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
  }
  // No copy is asked for while a neighbour's barrier is still being made: racecheck reports the
  // two.
  __syncthreads();
  if (warp == workers) {
    LaggedExchange<Acc, kIsLog>(args, place, workers, Worker::Run::Held::kNearLimit, parts, meeting)
        .run();
    return;
  }
  Worker rows(args, place, warp, slots, meeting);
  rows.fill();
  rows.run();
#endif
}

}  // namespace softmax
