// Algorithms 10, 11 and 13, WARP, BLOCK and CLUSTER, for gradients of dense rows: y, or x, and dy
// in the registers of part of a warp, of a block or of a cluster's blocks. Both are read once, dx
// is written once.
//
// The arithmetic is that of gradient.h: wide of float32, narrow of 16-bit types but for p of x.
//
// A row that none of this is for (temperature 0, an unusual scale, statistics that are no usual
// numbers) is left to the threads that hold it: wide_row.cuh. Columns are the threads' as in
// rows.cuh.
#pragma once

#include "core/gradient.h"
#include "cuda/general/pack.cuh"
#include "cuda/general/row_team.cuh"
#include "cuda/general/wide_row.cuh"
#include "cuda/prim/compile.cuh"

namespace softmax {

// A pack's elements where `kept` has a bit, the others of `other`.
template <typename X>
__device__ __forceinline__ RawPack kept_of(const RawPack &raw, std::uint32_t kept,
                                           const RawPack &other) {
  RawPack result;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (sizeof(X) == 2) {
      const std::uint32_t mask =
          ((kept >> (2 * i) & 1) * 0xffffu) | ((kept >> (2 * i + 1) & 1) * 0xffff0000u);
      result.part[i] = (raw.part[i] & mask) | (other.part[i] & ~mask);
    } else {
      result.part[i] = (kept >> i & 1) != 0 ? raw.part[i] : other.part[i];
    }
  }
  return result;
}

// What p is taken from, and what for.
enum class Gradient {
  kSoftmax,       // y
  kSoftmaxFromX,  // x and statistics
  kLogSoftmax,    // y
  kLogSoftmaxFromX
};

// The elements of y, or x, and of dy that one thread holds of a row.
template <typename In, int kPacks, bool kFromX>
class HeldGradient {
 public:
  static constexpr int kCols = kWordBytes / static_cast<int>(sizeof(In));
  static constexpr int kValues = kPacks * kCols;

  __device__ __forceinline__ HeldGradient(const GeneralArgs &args, std::int64_t row, int rank)
      : args_(args), cols_(args, rank, static_cast<int>(threadIdx.x)) {
    // All of it now: no call comes between loading and storing.
    const std::int64_t first = cols_.first();
    source_ = as_base(static_cast<const In *>(kFromX ? args.buffers.x : args.buffers.y) +
                          row_begin(args, kFromX ? kTensorX : kTensorY, row) + first,
                      args.zero);
    dy_ =
        as_base(static_cast<const In *>(args.buffers.dy) + row_begin(args, kTensorDy, row) + first,
                args.zero);
    dx_first_ = row_begin(args, kTensorX, row) + first;
    if (args.general.mask_kind == SOFTMAX_MASK_BOOL_KEEP) {
      mask_ = static_cast<const std::uint8_t *>(args.buffers.mask) +
              row_begin(args, kTensorMask, row) + first * args.layout().axis_stride[kTensorMask];
    }
  }

  // What is masked or does not exist is `nothing` with a dy of 0. `length`: of the row.
  __device__ __forceinline__ void load(std::int64_t length, const RawPack &nothing) {
    const int end = cols_.within(length);
    const bool is_aligned = is_word_aligned(source_);
    const bool is_dy_aligned = is_word_aligned(dy_);
    bool has_pieces = false;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int at = cols_.col(p);
      const bool is_whole = at + kCols <= end;
      raw_[p] = is_aligned && is_whole ? load_raw(source_ + at) : nothing;
      raw_dy_[p] = is_dy_aligned && is_whole ? load_raw(dy_ + at) : RawPack{};
      has_pieces = has_pieces || (!(is_aligned && is_dy_aligned && is_whole) && at < end);
    }
    if (has_pieces) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        const int at = cols_.col(p);
        const bool is_whole = at + kCols <= end;
        if (!is_aligned || !is_whole) raw_[p] = load_raw_pieces(source_ + at, end - at, nothing);
        if (!is_dy_aligned || !is_whole) {
          raw_dy_[p] = load_raw_pieces(dy_ + at, end - at, RawPack{});
        }
      }
    }
    if (args_.general.mask_kind != SOFTMAX_MASK_NONE) take_mask(end, nothing);
  }

  // add(sum, source, dy) over the elements, one after another.
  template <typename Add>
  __device__ __forceinline__ double sum(Add add) const {
    double sum[2] = {0.0, 0.0};
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      float source[kCols], dy[kCols];
      unpack<In>(raw_[p], source);
      unpack<In>(raw_dy_[p], dy);
#pragma unroll
      for (int i = 0; i < kCols; ++i) sum[i % 2] = add(sum[i % 2], source[i], dy[i]);
    }
    return sum[0] + sum[1];
  }

  // Of 16-bit source elements the largest, or a NaN.
  __device__ __forceinline__ float max() const {
    using Pair = typename RawElements<In>::Pair;
    std::uint32_t most = raw_[0].part[0];
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
#pragma unroll
      for (int i = 0; i < 4; ++i) most = pair_max<Pair>(most, raw_[p].part[i]);
    }
    const float2 ends = RawElements<In>::unpack(most);
    return max_or_nan(ends.x, ends.y);
  }

  // Elements that are neither masked nor -inf.
  __device__ __forceinline__ float count_some() const {
    float count = 0.0f;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      float source[kCols];
      unpack<In>(raw_[p], source);
#pragma unroll
      for (int i = 0; i < kCols; ++i)
        count += source[i] == -Limits<float>::infinity() ? 0.0f : 1.0f;
    }
    return count;
  }

  __device__ __forceinline__ void mask_all() { kept_ = 0; }

  // Writes what make(source, dy, dx) makes of a pack, to all of the row's columns, 0 where masked.
  // Returns a bit for each pack that has been left as it was because `make` has returned false.
  template <typename Out, typename Make>
  __device__ __forceinline__ std::uint32_t store(Make make) const {
    Out *const dx = as_base(static_cast<Out *>(args_.buffers.dx) + dx_first_, args_.zero);
    const int end = cols_.within(args_.layout().cols);
    constexpr int kBytes = kCols * static_cast<int>(sizeof(Out));
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(dx) % kBytes == 0;
    std::uint32_t left = 0;
    // All packs, of which the compiler knows nothing: their work side by side would not fit the
    // registers.
    const std::uint32_t packs = ~args_.zero;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if ((packs >> p & 1) == 0) continue;
      const int at = cols_.col(p);
      float source[kCols], dy[kCols], value[kCols];
      unpack<In>(as_new(raw_[p]), source);
      unpack<In>(as_new(raw_dy_[p]), dy);
      const bool is_made = make(source, dy, value);
      const std::uint32_t kept = kept_of_pack(p);
      if ((~kept & kAll) != 0) {
#pragma unroll
        for (int i = 0; i < kCols; ++i) value[i] = (kept >> i & 1) != 0 ? value[i] : 0.0f;
      }
      if (!is_made) {
        left |= 1u << p;
      } else if (is_aligned && at + kCols <= end) {
        store_values(dx + at, value);
      } else {
#pragma unroll
        for (int i = 0; i < kCols; ++i) {
          if (at + i < end) dx[at + i] = DeviceElement<Out>::store(value[i]);
        }
      }
    }
    return left;
  }

  // The same of packs that have been left, from memory once more: nothing is held meanwhile.
  template <typename Out, typename One>
  __device__ __forceinline__ void store_left(std::uint32_t left, One one) const {
    Out *const dx = static_cast<Out *>(args_.buffers.dx) + dx_first_;
    const int end = cols_.within(args_.layout().cols);
#pragma unroll 1
    for (; left != 0; left &= left - 1) {
      const int p = __ffs(static_cast<int>(left)) - 1;
      const int at = cols_.col(p);
      const std::uint32_t kept = kept_of_pack(p);
#pragma unroll 1
      for (int i = 0; i < kCols && at + i < end; ++i) {
        float value = 0.0f;
        if ((kept >> i & 1) != 0) {
          value =
              one(DeviceElement<In>::load(source_[at + i]), DeviceElement<In>::load(dy_[at + i]));
        }
        dx[at + i] = DeviceElement<Out>::store(value);
      }
    }
  }

 private:
  static constexpr std::uint32_t kAll = (1u << kCols) - 1;
  static_assert(kValues <= 32, "a bit an element");

  __device__ __forceinline__ std::uint32_t kept_of_pack(int p) const {
    return kept_ >> (p * kCols);
  }

  // For the compiler, elements of which nothing has been made yet: what was made of them for the
  // sum would take twice their registers, or more.
  __device__ __forceinline__ RawPack as_new(RawPack raw) const {
#pragma unroll
    for (std::uint32_t &part : raw.part) {
      asm volatile("xor.b32 %0, %0, %1;" : "+r"(part) : "r"(args_.zero));
    }
    return raw;
  }

  // What `end` has masked has not been loaded.
  __device__ __forceinline__ void take_mask(int end, const RawPack &nothing) {
    const std::int64_t stride = args_.layout().axis_stride[kTensorMask];
    const std::uint8_t *const mask = mask_;
    const bool is_aligned =
        stride == 1 && reinterpret_cast<std::uintptr_t>(mask) % sizeof(KeepPack<kCols>) == 0;
    kept_ = 0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int at = cols_.col(p);
      const int count = end - at;
      std::uint32_t kept = count >= kCols ? kAll : count <= 0 ? 0u : (1u << count) - 1;
      if (mask != nullptr) {
        const KeepPack<kCols> keep =
            is_aligned && count >= kCols
                ? load_keep<kCols>(mask + at)
                : load_keep_pieces<kCols>(mask + at * stride, stride, count);
        kept = 0;
#pragma unroll
        for (int i = 0; i < kCols; ++i) kept |= keep.has(i) ? 1u << i : 0u;
        raw_[p] = kept_of<In>(raw_[p], kept, nothing);
        raw_dy_[p] = kept_of<In>(raw_dy_[p], kept, RawPack{});
      }
      kept_ |= kept << (p * kCols);
    }
  }

  const GeneralArgs &args_;
  const HeldCols<kCols, kPacks> cols_;
  const In *source_;
  const In *dy_;
  const std::uint8_t *mask_ = nullptr;
  std::int64_t dx_first_;
  std::uint32_t kept_ = 0xffffffffu;  // a bit an element
  RawPack raw_[kPacks];
  RawPack raw_dy_[kPacks];
};

// What a warp tells the others of its part of a row.
struct alignas(16) GradientPiece {
  double sum;
  double some;  // elements that are neither masked nor -inf, where they are counted
};

template <Gradient kKind, typename In, typename Out, int kPacks>
class GradientCall {
 public:
  __device__ __forceinline__ GradientCall(const GeneralArgs &args,
                                          const RowExchange<GradientPiece> &exchange,
                                          std::int64_t row, int rank)
      : args_(args), exchange_(exchange), held_(args, row, rank), row_(row) {}

  // False where nothing has been written: the row is one for wide_row.cuh. `is_present`: there is
  // such a row.
  __device__ __forceinline__ bool run(bool is_present) {
    held_.load(is_present ? row_length(args_, row_) : 0,
               kKind == Gradient::kSoftmax ? RawPack{} : empty_pack<In>());
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
#pragma unroll 1
    for (int meeting = 0; meeting < exchange_.meetings(); ++meeting) {
      exchange_.meet(meeting, own);
      const int lane = static_cast<int>(threadIdx.x) % kWarpThreads;
      own = {0.0, 0.0};
      if (lane < exchange_.count(meeting)) own = exchange_.part(meeting, lane);
      own.sum = sum_of_lanes(own.sum, kWarpThreads);
      if (counts) own.some = sum_of_lanes(own.some, kWarpThreads);
    }
    return own;
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

  static constexpr bool kIsNarrow = sizeof(In) == 2;
  static constexpr bool kFromX =
      kKind == Gradient::kSoftmaxFromX || kKind == Gradient::kLogSoftmaxFromX;
  static constexpr bool kIsLog =
      kKind == Gradient::kLogSoftmax || kKind == Gradient::kLogSoftmaxFromX;
  static constexpr int kCols = HeldGradient<In, kPacks, kFromX>::kCols;
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
  HeldGradient<In, kPacks, kFromX> held_;
  std::int64_t row_;
  double scale_ = args_.general.scale;
  GradientSource from_;
};

// A block is as in rows.cuh.
template <Gradient kKind, typename In, typename Out, int kPacks>
__global__ void __launch_bounds__(kRowsMostThreads, 2)
    general_backward_kernel(const __grid_constant__ GeneralArgs args) {
  extern __shared__ __align__(16) unsigned char room[];
  __shared__ TeamScratch wide_scratch;
  // A power of two of them.
  const int rank = static_cast<int>(blockIdx.x) & (args.row_blocks - 1);
  const int team = static_cast<int>(blockIdx.x >> (__ffs(args.row_blocks) - 1));
  const std::int64_t row = std::int64_t{team} * blockDim.y + threadIdx.y;
  const bool is_present = row < args.layout().rows;
  const RowExchange<GradientPiece> exchange(args, room, rank);
  exchange.open();
  GradientCall<kKind, In, Out, kPacks> call(args, exchange, is_present ? row : 0, rank);
  const bool is_done = call.run(is_present);
  if (args.row_threads > kWarpThreads || args.row_blocks > 1) {
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
