// Statistics alone (op STATS) of dense rows in BLOCK and CLUSTER: nothing is written but a few
// numbers a row, so nobody waits for a row's parts to meet, and no row's elements are kept. Blocks
// stay, and a thread asks for the next row's words as it uses up this one's. Warps meet every few
// rows, and then each of them has a row to merge: were it one row and one warp at a time, all would
// wait for that one.
//
// Where row_sum is wanted the order of additions is that of rows.cuh, and so are the bits. The
// log-sum-exp without it takes half of the instructions: see stats_sums.cuh.
#pragma once

#include <cooperative_groups.h>

#include "cuda/general/stats_sums.cuh"
#include "cuda/general/stats_words.cuh"

namespace softmax {

// Rows of a team whose numbers wait in shared memory, to be finished by a lane each, and rows after
// which warps meet.
constexpr int kStatsBatch = 32;
constexpr int kStatsTogether = 4;

// A block's shared memory.
template <typename Piece>
struct StatsRoom {
  // Of the rows that warps meet for, and of those before.
  Piece warps[2][kStatsTogether][kRowsMostThreads / kWarpThreads];
  Piece blocks[2][kStatsTogether][kRowsMostBlocks];  // of a cluster, of rows that it finishes
  std::uint64_t barriers[2];                         // that count their bytes
  RowNumbers numbers[kStatsBatch];
  bool is_wide[kStatsBatch];
  TeamScratch scratch;
};

// The rows team, team + teams, ..., of fewer than 2^31.
template <typename X, int kPacks, typename Sums>
class StatsRows {
 public:
  using Piece = typename Sums::Piece;
  using Total = typename Sums::Total;
  using Room = StatsRoom<Piece>;

  __device__ __forceinline__ StatsRows(const GeneralArgs &args, Room *room, int rank, unsigned team,
                                       unsigned teams)
      : args_(args), room_(*room), rank_(rank), teams_(teams), row_(team), words_(args, rank) {}

  __device__ __forceinline__ void run() {
    const auto rows = static_cast<unsigned>(args_.layout().rows);
    open();
#pragma unroll 1
    for (; row_ < rows; row_ += kStatsBatch * teams_) {
      run_batch(static_cast<int>(min((rows - 1 - row_) / teams_ + 1, unsigned{kStatsBatch})));
    }
  }

 private:
  __device__ __forceinline__ int warp() const {
    return static_cast<int>(threadIdx.x) / kWarpThreads;
  }
  __device__ __forceinline__ int lane() const {
    return static_cast<int>(threadIdx.x) % kWarpThreads;
  }
  __device__ __forceinline__ int warps() const { return args_.row_threads / kWarpThreads; }
  __device__ __forceinline__ std::int64_t row(int i) const {
    return row_ + static_cast<unsigned>(i) * teams_;
  }
  // Where row i begins, or this block's part of it.
  __device__ __forceinline__ const X *x_of(int i) const {
    return static_cast<const X *>(args_.buffers.x) + args_.layout().offset(kTensorX, row(i)) +
           words_.first();
  }
  // The block of a cluster that finishes row i.
  __device__ __forceinline__ int owner(int i) const { return i & (args_.row_blocks - 1); }

  __device__ __forceinline__ RowScaling scaling_of(int i) const {
    const float *const row_scale = args_.buffers.row_scale;
    if (!Sums::kScalesRows || row_scale == nullptr) return args_.scaling;
    return RowScaling::of(args_.general.scale * double(row_scale[row(i)]));
  }

  __device__ __forceinline__ void run_batch(int count) {
    words_.load(x_of(0));
#pragma unroll 1
    for (int first = 0; first < count; first += kStatsTogether) {
      const int end = min(first + kStatsTogether, count);
#pragma unroll 1
      for (int i = first; i < end; ++i) {
        const Piece own = take_piece(scaling_of(i), i + 1 < count ? x_of(i + 1) : nullptr);
        if (lane() == 0) pieces(i)[warp()] = own;
      }
      __syncthreads();
      if (first > 0) finish_in_cluster(turn_ ^ 1, first - kStatsTogether, first);
#pragma unroll 1
      for (int i = first + warp(); i < end; i += warps()) merge_warps(i);
      arrive();
      turn_ ^= 1;
    }
    finish_in_cluster(turn_ ^ 1, (count - 1) / kStatsTogether * kStatsTogether, count);
    __syncthreads();
    write(count);
  }

  __device__ __forceinline__ Piece take_piece(const RowScaling &scaling, const X *next) {
    if (scaling.sign < 0.0f) words_.negate();
    return Sums::template take<X>(&words_, scaling, next);
  }

  // Of row i, the warps': written over two turns later, when warps have met once more.
  __device__ __forceinline__ Piece *pieces(int i) const {
    return room_.warps[turn_][i % kStatsTogether];
  }
  __device__ __forceinline__ void merge_warps(int i) const {
    const RowScaling scaling = scaling_of(i);
    const Total total = Sums::merge(pieces(i), warps(), scaling);
    if (args_.row_blocks == 1) {
      keep(i, total, scaling);
      return;
    }
#if SOFTMAX_BULK_COPY
    if (lane() != 0) return;
    const Piece piece = Sums::piece(total, scaling);
    const auto cluster = cooperative_groups::this_cluster();
    send_part(piece,
              cluster.map_shared_rank(&room_.blocks[turn_][i % kStatsTogether][rank_], owner(i)),
              cluster.map_shared_rank(&room_.barriers[turn_], owner(i)));
#endif
  }

  // ---- a cluster: what blocks have sent is taken when they meet for the next time ----
  //
  // So what is sent in one turn has been taken before the next but one. No fence: it would wait for
  // words that are on their way.

  __device__ __forceinline__ void open() const {
#if SOFTMAX_BULK_COPY
    if (args_.row_blocks == 1) return;
    if (threadIdx.x == 0) {
      for (std::uint64_t &barrier : room_.barriers) cuda::ptx::mbarrier_init(&barrier, 1);
      cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
    }
    arrive();
    cuda::ptx::barrier_cluster_wait(cuda::ptx::sem_acquire);
#endif
  }
  __device__ __forceinline__ void arrive() const {
#if SOFTMAX_BULK_COPY
    if (args_.row_blocks > 1) cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_relaxed);
#endif
  }
  // The rows first, ... end - 1, which warps met for in that turn.
  __device__ __forceinline__ void finish_in_cluster(int turn, int first, int end) {
#if SOFTMAX_BULK_COPY
    namespace ptx = cuda::ptx;
    if (args_.row_blocks == 1) return;
    ptx::barrier_cluster_wait(ptx::sem_acquire);
    int own = 0;
    for (int i = first; i < end; ++i) own += owner(i) == rank_ ? 1 : 0;
    if (own == 0) return;
    if (threadIdx.x == 0) {
      ptx::mbarrier_arrive_expect_tx(
          ptx::sem_release, ptx::scope_cta, ptx::space_shared, &room_.barriers[turn],
          static_cast<std::uint32_t>(own * args_.row_blocks * sizeof(Piece)));
    }
    wait_for(&room_.barriers[turn], phases_ >> turn & 1);
    phases_ ^= 1u << turn;
#pragma unroll 1
    for (int i = first + warp(); i < end; i += warps()) {
      if (owner(i) != rank_) continue;
      const RowScaling scaling = scaling_of(i);
      keep(i, Sums::merge(room_.blocks[turn][i % kStatsTogether], args_.row_blocks, scaling),
           scaling);
    }
#endif
  }

  // ---- rows whose sums are there ----

  __device__ __forceinline__ void keep(int i, const Total &total, const RowScaling &scaling) const {
    bool is_wide = false;
    const RowNumbers numbers = Sums::numbers(total, scaling, &is_wide);
    if (lane() != 0) return;
    room_.numbers[i] = numbers;
    room_.is_wide[i] = is_wide;
  }
  // Those of the batch that are this block's.
  __device__ __forceinline__ void write(int count) const {
    const int own = static_cast<int>(threadIdx.x);
    if (own < count && owner(own) == rank_ && !room_.is_wide[own]) {
      write_row_stats(args_, row(own), room_.numbers[own]);
    }
#pragma unroll 1
    for (int i = rank_; i < count; i += args_.row_blocks) {
      if (room_.is_wide[i]) run_wide_row(args_, row(i), Team::of_block(&room_.scratch));
    }
  }

  const GeneralArgs &args_;
  Room &room_;
  const int rank_;
  const unsigned teams_;
  unsigned row_;              // the batch's first
  int turn_ = 0;              // of the two that room is for
  std::uint32_t phases_ = 0;  // of the barriers, a bit each
  StatsWords<X, kPacks, Sums::kIsApart> words_;
};

// As few as hold the words and their terms: with 64, a thread spilled 72 bytes in 16-bit rows and
// 260 in float32 with ApartSums. LseSums in 32768 x 4096, us: float32 with 64, 72, 80, 96 registers
// 153, 144, 130, 125, bf16 with 48, 56, 64 88, 81, 78; with 64 elements a thread 80, 96 registers
// 83, 70.
template <typename X, int kPacks, typename Sums>
constexpr int stats_registers() {
  if (Sums::kIsApart) return sizeof(X) == 4 ? 80 : 72;
  if (sizeof(X) == 4) return 96;
  return kPacks * kPackCols<X> > 32 ? 96 : 64;
}
template <typename X, int kPacks, typename Sums>
constexpr int kStatsRegisters = stats_registers<X, kPacks, Sums>();

template <typename X, int kPacks, typename Sums>
__global__ void __maxnreg__((kStatsRegisters<X, kPacks, Sums>))
    general_stats_kernel(const __grid_constant__ GeneralArgs args) {
  using Rows = StatsRows<X, kPacks, Sums>;
  __shared__ typename Rows::Room room;
  // A power of two of them.
  const int rank = static_cast<int>(blockIdx.x) & (args.row_blocks - 1);
  const int shift = __ffs(args.row_blocks) - 1;
  Rows(args, &room, rank, blockIdx.x >> shift, gridDim.x >> shift).run();
}

}  // namespace softmax
