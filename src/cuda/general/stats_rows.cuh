// Statistics alone (op STATS) of dense rows in BLOCK and CLUSTER: nothing is written but a few
// numbers a row, so nobody waits for a row's parts to meet, and no row's elements are kept. Blocks
// stay, and a thread asks for the next row's words as it uses up this one's. Warps meet every few
// rows, and then each of them has a row to merge: were it one row and one warp at a time, all would
// wait for that one.
//
// The order of additions is that of rows.cuh, and so are the bits.
#pragma once

#include <cooperative_groups.h>

#include "cuda/general/pack.cuh"
#include "cuda/general/row_numbers.cuh"
#include "cuda/general/row_piece.cuh"
#include "cuda/prim/compile.cuh"

namespace softmax {

// Rows of a team whose numbers wait in shared memory, to be finished by a lane each, and rows after
// which warps meet.
constexpr int kStatsBatch = 32;
constexpr int kStatsTogether = 4;
// As few as hold the words and their terms: with 64, a thread spilled 72 bytes in 16-bit rows and
// 260 in float32.
template <typename X>
constexpr int kStatsRegisters = sizeof(X) == 4 ? 80 : 72;

// A block's shared memory.
struct StatsRoom {
  // Of the rows that warps meet for, and of those before.
  RowPiece warps[2][kStatsTogether][kRowsMostThreads / kWarpThreads];
  RowPiece blocks[2][kStatsTogether][kRowsMostBlocks];  // of a cluster, of rows that it finishes
  std::uint64_t barriers[2];                            // that count their bytes
  RowNumbers numbers[kStatsBatch];
  bool is_wide[kStatsBatch];
  TeamScratch scratch;
};

// The words of a row that one thread has, as rows.cuh deals them out.
template <typename X, int kPacks>
class StatsWords {
 public:
  static constexpr int kCols = kWordBytes / static_cast<int>(sizeof(X));

  __device__ __forceinline__ StatsWords(const GeneralArgs &args, int rank)
      : cols_(args, rank, static_cast<int>(threadIdx.x)),
        end_(cols_.within(args.layout().cols)),
        zero_(args.zero) {}

  __device__ __forceinline__ std::int64_t first() const { return cols_.first(); }

  // Whether a row that begins there is whole words.
  __device__ __forceinline__ bool is_words(const X *x) const {
    return is_word_aligned(x) && end_ % kCols == 0;
  }
  // All of a row's words, of whatever address.
  __device__ __forceinline__ void load(const X *x) {
    ColPlace place(cols_);
    if (is_words(x)) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p, place.advance()) {
        raw_[p] = empty_pack<X>();
        load_word(p, x + place.at, end_ - place.at);
      }
      return;
    }
#pragma unroll
    for (int p = 0; p < kPacks; ++p, place.advance()) {
      const int left = end_ - place.at;
      raw_[p] = is_word_aligned(x) && left >= kCols
                    ? load_raw(x + place.at)
                    : load_raw_pieces(x + place.at, left, empty_pack<X>());
    }
  }

  // -x in place of x.
  __device__ __forceinline__ void negate() {
    constexpr std::uint32_t kSigns = sizeof(X) == 2 ? 0x80008000u : 0x80000000u;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
#pragma unroll
      for (std::uint32_t &part : raw_[p].part) part ^= kSigns;
      clear_from<X>(end_ - cols_.col(p), &raw_[p]);
    }
  }

  __device__ __forceinline__ float max() {
    float most = -Limits<float>::infinity();
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        const std::uint32_t largest = max_of_group(p, g);
        if constexpr (kKeepsMax) group_max_[p * kGroups + g] = largest;
        most = max_or_nan(most, wide_max(largest));
      }
    }
    return most;
  }

  // Sums of terms, against this maximum of the warp, apart from what equals it. From words that
  // have been used up on, those of the row at `next`, if it is one of whole words; null for none.
  __device__ __forceinline__ RowSums take_sums(float max, const ScaledTerms &terms, const X *next) {
    const int end = next != nullptr && is_words(next) ? end_ : 0;
    const std::uint32_t narrow_max = narrow(max);
    RowSums sums = {0.0, 0.0f};
    ColPlace place(cols_);
#pragma unroll
    for (int p = 0; p < kPacks; ++p, place.advance()) {
      float value[kCols];
      unpack<X>(raw_[p], value);
      load_word(p, next + place.at, end - place.at);
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        float term[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) term[i] = terms.quick(value[g * kTogether + i]);
        if (has_max(p * kGroups + g, value + g * kTogether, max, narrow_max)) {
#pragma unroll
          for (int i = 0; i < kTogether; ++i) {
            const bool is_one = value[g * kTogether + i] == max;
            sums.ones += is_one ? 1.0f : 0.0f;
            term[i] = is_one ? 0.0f : term[i];
          }
        }
        sums.others += sum_of<ScaledTerms>(term);
      }
    }
    if (next != nullptr && end == 0) load(as_base(next, zero_));
    return sums;
  }

 private:
  static constexpr int kTogether = ScaledTerms::kTermsTogether;
  static constexpr int kGroups = kCols / kTogether;
  static_assert(kTogether == 4);

  // 16-bit elements are compared two by two, as they are.
  static constexpr bool kKeepsMax = sizeof(X) == 2;

  // What is past the end is -inf, and stays so.
  __device__ __forceinline__ void load_word(int p, const X *from, int left) {
    if (left > 0) raw_[p] = load_raw(from);
  }

  // The largest of a group, of 16-bit elements at even and at odd places.
  __device__ __forceinline__ std::uint32_t max_of_group(int p, int g) const {
    if constexpr (sizeof(X) == 4) {
      float value[4];
      unpack<X>(raw_[p], value);
      return __float_as_uint(
          max_or_nan(max_or_nan(value[0], value[1]), max_or_nan(value[2], value[3])));
    } else {
      return pair_max<typename RawElements<X>::Pair>(raw_[p].part[2 * g], raw_[p].part[2 * g + 1]);
    }
  }
  static __device__ __forceinline__ float wide_max(std::uint32_t of_group) {
    if constexpr (sizeof(X) == 4) {
      return __uint_as_float(of_group);
    } else {
      const float2 two = RawElements<X>::unpack(of_group);
      return max_or_nan(two.x, two.y);
    }
  }
  // One of the row's elements, as groups' maxima are.
  static __device__ __forceinline__ std::uint32_t narrow(float max) {
    if constexpr (sizeof(X) == 4) {
      return __float_as_uint(max);
    } else {
      return RawElements<X>::pack(max, max);
    }
  }
  // Whether any of a group equals the maximum, in a row without a NaN.
  __device__ __forceinline__ bool has_max(int group, const float *value, float max,
                                          std::uint32_t narrow_max) const {
    if constexpr (kKeepsMax) {
      using Pair = typename RawElements<X>::Pair;
      return __heq2_mask(pair_of<Pair>(group_max_[group]), pair_of<Pair>(narrow_max)) != 0;
    } else {
      bool has = false;
#pragma unroll
      for (int i = 0; i < kTogether; ++i) has |= value[i] == max;
      return has;
    }
  }

  const HeldCols<kCols, kPacks> cols_;
  const int end_;  // of the row's columns in the block's part
  const std::uint32_t zero_;
  RawPack raw_[kPacks];
  std::uint32_t group_max_[kKeepsMax ? kPacks * kGroups : 1];
};

// The rows team, team + teams, ..., of fewer than 2^31.
template <typename X, int kPacks>
class StatsRows {
 public:
  __device__ __forceinline__ StatsRows(const GeneralArgs &args, StatsRoom *room, int rank,
                                       unsigned team, unsigned teams)
      : args_(args),
        room_(*room),
        rank_(rank),
        teams_(teams),
        row_(team),
        step_(std::int64_t{teams} * args.layout().stride[kTensorX][0]),
        words_(args, rank) {}

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
  // The block of a cluster that finishes row i.
  __device__ __forceinline__ int owner(int i) const { return i & (args_.row_blocks - 1); }

  __device__ __forceinline__ RowScaling scaling_of(int i) const {
    const float *const row_scale = args_.buffers.row_scale;
    if (row_scale == nullptr) return args_.scaling;
    return RowScaling::of(args_.general.scale * double(row_scale[row(i)]));
  }

  __device__ __forceinline__ void run_batch(int count) {
    const X *x = static_cast<const X *>(args_.buffers.x) +
                 std::int64_t{row_} * args_.layout().stride[kTensorX][0] + words_.first();
    words_.load(x);
#pragma unroll 1
    for (int first = 0; first < count; first += kStatsTogether) {
      const int end = min(first + kStatsTogether, count);
#pragma unroll 1
      for (int i = first; i < end; ++i) {
        x += step_;
        const RowPiece own = take_piece(scaling_of(i), i + 1 < count ? x : nullptr);
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

  __device__ __forceinline__ RowPiece take_piece(const RowScaling &scaling, const X *next) {
    if (scaling.sign < 0.0f) words_.negate();
    const float max = warp_max_or_nan(words_.max());
    const float exponent = exponent_of(max, ScaledTerms(max, scaling));
    const RowSums sums =
        sum_of_lanes<true>(words_.take_sums(max, terms_of(max, scaling), next), kWarpThreads);
    return {sums.others, 0.0, max, sums.ones, 0.0f, exponent};
  }

  // Of row i, the warps': written over two turns later, when warps have met once more.
  __device__ __forceinline__ RowPiece *pieces(int i) const {
    return room_.warps[turn_][i % kStatsTogether];
  }
  static __device__ __forceinline__ RowTotal merge(const RowPiece *pieces, int count,
                                                   const RowScaling &scaling) {
    return merge_pieces<false>(
        count, [&](int p) -> const RowPiece & { return pieces[p]; }, scaling, true, false);
  }
  __device__ __forceinline__ void merge_warps(int i) const {
    const RowScaling scaling = scaling_of(i);
    const RowTotal total = merge(pieces(i), warps(), scaling);
    if (args_.row_blocks == 1) {
      keep(i, total, scaling);
      return;
    }
#if SOFTMAX_BULK_COPY
    if (lane() != 0) return;
    const RowPiece piece = total.piece(scaling);
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
          static_cast<std::uint32_t>(own * args_.row_blocks * sizeof(RowPiece)));
    }
    wait_for(&room_.barriers[turn], phases_ >> turn & 1);
    phases_ ^= 1u << turn;
#pragma unroll 1
    for (int i = first + warp(); i < end; i += warps()) {
      if (owner(i) != rank_) continue;
      const RowScaling scaling = scaling_of(i);
      keep(i, merge(room_.blocks[turn][i % kStatsTogether], args_.row_blocks, scaling), scaling);
    }
#endif
  }

  // ---- rows whose sums are there ----

  __device__ __forceinline__ void keep(int i, const RowTotal &total,
                                       const RowScaling &scaling) const {
    const ScaledTerms all(finite_or_zero(total.max), scaling);
    if (lane() != 0) return;
    room_.numbers[i] = {total.max, total.apart.ones, total.apart.others, all.reference(), 0.0f};
    room_.is_wide[i] = !scaling.is_usual || !all.is_well_near();
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
  StatsRoom &room_;
  const int rank_;
  const unsigned teams_;
  unsigned row_;              // the batch's first
  int turn_ = 0;              // of the two that room is for
  std::uint32_t phases_ = 0;  // of the barriers, a bit each
  const std::int64_t step_;
  StatsWords<X, kPacks> words_;
};

template <typename X, int kPacks>
__global__ void __maxnreg__(kStatsRegisters<X>)
    general_stats_kernel(const __grid_constant__ GeneralArgs args) {
  __shared__ StatsRoom room;
  // A power of two of them.
  const int rank = static_cast<int>(blockIdx.x) & (args.row_blocks - 1);
  const int shift = __ffs(args.row_blocks) - 1;
  StatsRows<X, kPacks>(args, &room, rank, blockIdx.x >> shift, gridDim.x >> shift).run();
}

}  // namespace softmax
