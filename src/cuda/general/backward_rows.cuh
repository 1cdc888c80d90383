// Algorithms 10, 11 and 13, WARP, BLOCK and CLUSTER, for gradients of dense rows: y, or x, and dy
// in the registers of part of a warp, of a block or of a cluster's blocks. Both are read once, dx
// is written once.
//
// The arithmetic is that of gradient.h: wide of float32, narrow of 16-bit types but for p of x.
//
// A row that none of this is for (temperature 0, an unusual scale, statistics that are no usual
// numbers) is left to the threads that hold it: wide_row.cuh.
#pragma once

#include "core/gradient.h"
#include "cuda/general/held_gradient.cuh"
#include "cuda/general/row_team.cuh"
#include "cuda/general/wide_row.cuh"

namespace softmax {

// What p is taken from, and what for.
enum class Gradient {
  kSoftmax,       // y
  kSoftmaxFromX,  // x and statistics
  kLogSoftmax,    // y
  kLogSoftmaxFromX
};

// Which rows a kernel is for. What is asked of any stands between a block's start and its first
// word.
enum class GradientRows {
  kAny,
  kWords,        // whole words at one pitch, without a mask, in a block or less
  kClusterWords  // the same over a cluster
};

// What a warp tells the others of its part of a row.
struct alignas(16) GradientPiece {
  double sum;
  double some;  // elements that are neither masked nor -inf, where they are counted
};

template <Gradient kKind, typename In, typename Out, int kPacks, GradientRows kRows>
class GradientCall {
 public:
  __device__ __forceinline__ GradientCall(const GeneralArgs &args,
                                          const RowExchange<GradientPiece> &exchange,
                                          std::int64_t row, int rank)
      : args_(args), exchange_(exchange), held_(args, row, rank), row_(row) {}

  // False where nothing has been written: the row is one for wide_row.cuh. `is_present`: there is
  // such a row.
  __device__ __forceinline__ bool run(bool is_present) {
    const auto length = [&] { return kIsPlain ? args_.layout().cols : row_length(args_, row_); };
    held_.load(is_present ? length() : 0,
               kKind == Gradient::kSoftmax ? RawPack{} : empty_pack<In>());
#if SOFTMAX_BULK_COPY
    // A cluster that starts in this one's place has nobody else to ask for its words.
    if constexpr (kRows == GradientRows::kClusterWords) {
      const std::int64_t next = row_ + args_.ahead;
      if (threadIdx.x == 0 && next < args_.layout().rows) held_.prefetch(next);
    }
#endif
    // A row that is none for this comes along: shuffles are the whole warp's, whoever has its other
    // rows.
    const bool is_usual = !is_present || take_factors();
    double own;
    if constexpr (kIsLog) {
      own = held_.sum([](double sum, float, float dy) { return sum + double(dy); });
    } else if constexpr (kKind == Gradient::kSoftmaxFromX) {
      const WideTerms terms(from_.scale, from_.max);
      own =
          held_.sum([&](double sum, float x, float dy) { return fma(terms(x), double(dy), sum); });
    } else {
      own = held_.sum([](double sum, float p, float dy) {
        if constexpr (kIsNarrow) return sum + double(p * dy);
        return fma(double(p), double(dy), sum);
      });
    }
    // From y, empty rows are those without an element above -inf.
    const bool counts = kKind == Gradient::kLogSoftmax && args_.empty_is_zero;
    const GradientPiece row = whole({own, counts ? double(held_.count_some()) : 0.0}, counts);
    const double sum = row.sum;
    if (counts && row.some == 0.0) held_.mask_all();
    if (!is_usual) return false;
    if (kIsNarrow && fabs(sum) >= kMostNarrowDot) return false;
    if (!is_present) return true;
    if constexpr (kIsLog) {
      return write_log(sum);
    } else if constexpr (kKind == Gradient::kSoftmaxFromX) {
      write_from_x(sum);
    } else {
      using Both = std::conditional_t<kIsNarrow, NarrowGradient, WideGradient>;
      write_each(Both(scale_, sum));
    }
    return true;
  }

 private:
  // Of a thread to the row's.
  __device__ __forceinline__ GradientPiece whole(GradientPiece own, bool counts) const {
    const int lanes = args_.row_threads < kWarpThreads ? args_.row_threads : kWarpThreads;
    own.sum = sum_of_lanes(own.sum, lanes);
    if (counts) own.some = sum_of_lanes(own.some, lanes);
    if constexpr (kRows == GradientRows::kWords) {
      if (args_.row_threads > kWarpThreads) meet(0, counts, &own);
    } else if constexpr (kRows == GradientRows::kClusterWords) {
      meet(0, counts, &own);
      meet(1, counts, &own);
    } else {
#pragma unroll 1
      for (int meeting = 0; meeting < exchange_.meetings(); ++meeting) {
        meet(meeting, counts, &own);
      }
    }
    return own;
  }
  __device__ __forceinline__ void meet(int meeting, bool counts, GradientPiece *own) const {
    exchange_.meet(meeting, *own);
    const int lane = static_cast<int>(threadIdx.x) % kWarpThreads;
    *own = {0.0, 0.0};
    if (lane < exchange_.count(meeting)) *own = exchange_.part(meeting, lane);
    own->sum = sum_of_lanes(own->sum, kWarpThreads);
    if (counts) own->some = sum_of_lanes(own->some, kWarpThreads);
  }

  // After the row's loads, which need not wait for these. False: for wide_row.cuh.
  __device__ __forceinline__ bool take_factors() {
    const GeneralBuffers &b = args_.buffers;
    if (b.row_scale != nullptr) scale_ *= double(b.row_scale[row_]);
    const bool is_usual =
        fabs(scale_) > 1.0 / kUsualGradientScale && fabs(scale_) < kUsualGradientScale;
    if (!kFromX) return is_usual;
    from_ = {scale_, b.row_max[row_], b.row_sum[row_]};
    return is_usual && fabs(from_.max) < 0x1p100 && from_.sum > 0x1p-60 && from_.sum < 0x1p60;
  }

  static constexpr bool kIsPlain = kRows != GradientRows::kAny;
  static constexpr bool kIsNarrow = sizeof(In) == 2;
  static constexpr bool kFromX =
      kKind == Gradient::kSoftmaxFromX || kKind == Gradient::kLogSoftmaxFromX;
  static constexpr bool kIsLog =
      kKind == Gradient::kLogSoftmax || kKind == Gradient::kLogSoftmaxFromX;
  static constexpr int kCols = HeldGradient<In, kPacks, kFromX, kIsPlain>::kCols;
  using Pack = float[kCols];

  // Calls use(i) for the elements of a pack, no more than two of them at the same time:
  // exponentials in float64 take many registers. The compiler does not know that nothing is left
  // out.
  template <typename Use>
  __device__ __forceinline__ void by_twos(Use use) const {
#pragma unroll
    for (int i = 0; i < kCols; i += 2) {
      if (args_.zero != 0) continue;
      use(i);
      use(i + 1);
    }
  }

  // Writes what one(source, dy) makes of each element.
  template <typename One>
  __device__ __forceinline__ void write_each(One one) const {
    held_.template store<Out>([&](const Pack &source, const Pack &dy, Pack &dx) {
#pragma unroll
      for (int i = 0; i < kCols; ++i) dx[i] = one(source[i], dy[i]);
      return true;
    });
  }
  template <typename One>
  __device__ __forceinline__ void write_by_twos(One one) const {
    held_.template store<Out>([&](const Pack &source, const Pack &dy, Pack &dx) {
      by_twos([&](int i) { dx[i] = one(source[i], dy[i]); });
      return true;
    });
  }

  // `sum`: of terms, which are less the factor that makes them p.
  __device__ __forceinline__ void write_from_x(double sum) const {
    const WideTerms terms(from_.scale, from_.max);
    const double factor = terms.rest() * near_reciprocal(from_.sum);
    const WideGradient gradient(scale_ * factor, sum * factor);
    write_by_twos([&](float x, float dy) { return gradient(terms(x), dy); });
  }

  __device__ __forceinline__ bool write_log(double sum) const {
    const WideLogGradient wide =
        kFromX ? WideLogGradient(from_, scale_, sum) : WideLogGradient(scale_, sum);
    if constexpr (!kIsNarrow) {
      write_by_twos(wide);
    } else {
      constexpr float kLeast =
          std::is_same_v<In, __half> ? NarrowDifference::kLeastF16 : NarrowDifference::kLeastBf16;
      std::uint32_t hard;
      if constexpr (kFromX) {
        const NarrowLogGradient narrow(from_, scale_, wide.dot(), kLeast);
        if (!narrow.is_near()) return false;
        hard = write_easy(narrow, true);
      } else {
        const bool all = held_.max() <= NarrowLogGradientOfLogs::kMost;
        hard = write_easy(NarrowLogGradientOfLogs(scale_, sum, kLeast), all);
      }
      if (hard != 0) held_.template store_left<Out>(hard, wide);
    }
    return true;
  }
  // Returns a bit for each pack that is left, because of elements that are hard, or all of them.
  template <typename Narrow>
  __device__ __forceinline__ std::uint32_t write_easy(const Narrow &narrow, bool may) const {
    return held_.template store<Out>([&](const Pack &source, const Pack &dy, Pack &dx) {
      bool is_hard = !may;
#pragma unroll
      for (int i = 0; i < kCols; ++i) dx[i] = narrow(source[i], dy[i], &is_hard);
      return !is_hard;
    });
  }

  const GeneralArgs &args_;
  const RowExchange<GradientPiece> &exchange_;
  HeldGradient<In, kPacks, kFromX, kIsPlain> held_;
  std::int64_t row_;
  double scale_ = args_.general.scale;
  GradientSource from_;
};

// A block is as in rows.cuh.
template <Gradient kKind, typename In, typename Out, int kPacks,
          GradientRows kRows = GradientRows::kAny>
__global__ void __launch_bounds__(kRowsMostThreads, 2)
    general_backward_kernel(const __grid_constant__ GeneralArgs args) {
  extern __shared__ __align__(16) unsigned char room[];
  __shared__ TeamScratch wide_scratch;
  // A power of two of them.
  constexpr bool kIsBlock = kRows == GradientRows::kWords;
  const int rank = kIsBlock ? 0 : static_cast<int>(blockIdx.x) & (args.row_blocks - 1);
  const int team =
      static_cast<int>(kIsBlock ? blockIdx.x : blockIdx.x >> (__ffs(args.row_blocks) - 1));
  const std::int64_t row = std::int64_t{team} * blockDim.y + threadIdx.y;
  const bool is_present = row < args.layout().rows;
  const RowExchange<GradientPiece> exchange(args, room, rank);
  if constexpr (!kIsBlock) exchange.open();
  GradientCall<kKind, In, Out, kPacks, kRows> call(args, exchange, is_present ? row : 0, rank);
  const bool is_done = call.run(is_present);
  if (args.row_threads > kWarpThreads || (!kIsBlock && args.row_blocks > 1)) {
    if (!is_done && rank == 0) run_wide_row_backward(args, row, Team::of_block(&wide_scratch));
    return;
  }
  const bool is_first = threadIdx.x == 0;
  unsigned left = __ballot_sync(kFullWarp, is_present && !is_done && is_first);
  for (; left != 0; left &= left - 1) {
    const std::int64_t wide_row = __shfl_sync(kFullWarp, row, __ffs(static_cast<int>(left)) - 1);
    run_wide_row_backward(args, wide_row, Team::of_warp());
  }
}

}  // namespace softmax
