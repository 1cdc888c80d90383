// Algorithms 10, 11 and 13, WARP, BLOCK and CLUSTER, for the general call: dense rows in the
// registers of part of a warp, of a block or of a cluster's blocks. Every input is read once, every
// output written once.
//
// Types of x alone are template arguments. Whatever else a call asks for is a branch that a whole
// row takes: the scale is in the exponential's constants, masked elements are -inf from where they
// are loaded, and a row that this arithmetic is not for (temperature 0, a scale that is no usual
// number) is computed in float64 by the threads that hold it: wide_row.cuh.
//
// Thread t of a row has the packs t, t + threads, ... of its block's part, which are elements that
// lie together, 16 bytes of them. Additions follow that order, whatever the strides and alignment.
#pragma once

#include <cuda_pipeline.h>

#include "core/rows_shape.h"
#include "core/scaled_exp.h"
#include "cuda/general/pack.cuh"
#include "cuda/general/row_numbers.cuh"
#include "cuda/general/row_team.cuh"
#include "cuda/general/wide_row.cuh"
#include "cuda/prim/held_parts.cuh"

namespace softmax {

// The elements that one thread holds of a row. They come by way of shared memory, each thread's own
// part of it: copies of later rows are on their way while a row is worked on, and nobody waits for
// anybody.
//
// kIsAdded: with an additive mask, v is more than a float32 holds. The values held are then v,
// rounded, and what rounding has taken is made again where it is needed, of what is still in shared
// memory.
template <typename X, int kPacks, bool kIsAdded>
class HeldRow {
 public:
  static constexpr int kCols = kWordBytes / static_cast<int>(sizeof(X));
  static constexpr int kValues = kPacks * kCols;
  static constexpr int kStages = rows_stages(kPacks);
  static constexpr int kSlotBytes = rows_slot_bytes(kPacks);
  static constexpr int kMaskBytes = kCols * (kIsAdded ? 4 : 1);  // of a pack

  // `slots`: of the block.
  __device__ __forceinline__ HeldRow(const GeneralArgs &args, int rank, unsigned char *slots)
      : args_(args), cols_(args, rank) {
    const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
    threads_ = static_cast<int>(blockDim.x * blockDim.y);
    slots_ = slots + thread * kWordBytes;
    mask_slots_ = slots + threads_ * kSlotBytes + thread * kMaskBytes;
  }

  // Asks for a row's inputs, `length` columns of it: 0 for no row.
  __device__ __forceinline__ void ask(std::int64_t row, std::int64_t length, int stage) const {
    const int end = cols_.within(length);
    if (end > 0) {
      const X *const x =
          static_cast<const X *>(args_.buffers.x) + row_begin(args_, kTensorX, row) + cols_.first();
      const bool is_aligned = is_word_aligned(x);
      if (is_aligned && cols_.is_whole(end)) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
          __pipeline_memcpy_async(slot(stage, p), x + cols_.col(p), kWordBytes);
        }
      } else {
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
          const int at = cols_.col(p);
          if (is_aligned && at + kCols <= end) {
            __pipeline_memcpy_async(slot(stage, p), x + at, kWordBytes);
          } else if (at < end) {
            ask_pieces(slot(stage, p), x + at, end - at);
          }
        }
      }
      if (kIsAdded) {
        ask_added(row, end, stage);
      } else if (has_mask()) {
        ask_mask(row, end, stage);
      }
    }
    __pipeline_commit();
  }

  // Takes what was asked for, when as many rows as `kStages - 1` have been asked for since. -inf is
  // what is masked or does not exist. The values are x with the scale's sign, or v with kIsAdded.
  __device__ __forceinline__ void take(std::int64_t length, int stage, double scale) {
    __pipeline_wait_prior(kStages - 1);
    stage_ = stage;
    const int end = cols_.within(length);
    if constexpr (kIsAdded) {
      scale_hi_ = static_cast<float>(scale);
      scale_lo_ = static_cast<float>(scale - double(scale_hi_));
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        Split<float> v[kCols];
        add_mask(p, v);
#pragma unroll
        for (int i = 0; i < kCols; ++i) value_[p * kCols + i] = v[i].hi;
      }
    } else {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        float value[kCols];
        unpack_raw<X>(load_raw(slot(stage, p)), args_.x_dtype, value);
#pragma unroll
        for (int i = 0; i < kCols; ++i) value_[p * kCols + i] = value[i];
      }
      if (scale < 0.0) {
#pragma unroll
        for (int i = 0; i < kValues; ++i) value_[i] = -value_[i];
      }
      if (has_mask()) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
          const auto keep = load_keep<kCols>(mask_slot(stage, p));
#pragma unroll
          for (int i = 0; i < kCols; ++i) {
            if (!keep.has(i)) value_[p * kCols + i] = -Limits<float>::infinity();
          }
        }
      }
    }
    if (!cols_.is_whole(end)) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
#pragma unroll
        for (int i = 0; i < kCols; ++i) {
          if (cols_.col(p) + i >= end) value_[p * kCols + i] = -Limits<float>::infinity();
        }
      }
    }
  }

  __device__ __forceinline__ float max() const { return tree_max<0, kValues>(value_); }

  // Of the values that equal the maximum, the most that one has lost.
  __device__ __forceinline__ float low_of(float max) const {
    float most = -Limits<float>::infinity();
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      float low[kCols];
      lows(p, low);
#pragma unroll
      for (int i = 0; i < kCols; ++i) {
        if (value_[p * kCols + i] == max) most = fmaxf(most, low[i]);
      }
    }
    return most;
  }

  // What make(value, low) makes comes in the values' places. `low` is what v has lost, 0 where
  // nothing is added.
  template <typename Make>
  __device__ __forceinline__ void change(Make make) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      float low[kCols];
      lows(p, low);
#pragma unroll
      for (int i = 0; i < kCols; ++i) {
        value_[p * kCols + i] = make(value_[p * kCols + i], low[i]);
      }
    }
  }

  // The same, and the sum, kMost of them at a time in float32.
  template <int kMost, typename Make>
  __device__ __forceinline__ double take_terms(Make make) {
    constexpr int kTogether = kMost < kCols ? kMost : kCols;
    double sum = 0.0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      float low[kCols];
      lows(p, low);
#pragma unroll
      for (int first = 0; first < kCols; first += kTogether) {
        float term[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
          float &value = value_[p * kCols + first + i];
          term[i] = make(value, low[first + i]);
          value = term[i];
        }
        sum += double(tree_sum(term));
      }
    }
    return sum;
  }
  // The sum alone; values that equal the maximum are counted.
  template <int kMost, typename Make>
  __device__ __forceinline__ RowSums sum_apart(float max, float max_low, Make make) const {
    constexpr int kTogether = kMost < kCols ? kMost : kCols;
    RowSums sums = {0.0, 0.0f};
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      float low[kCols];
      lows(p, low);
#pragma unroll
      for (int first = 0; first < kCols; first += kTogether) {
        float term[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
          const float x = value_[p * kCols + first + i];
          const bool is_one = x == max && (!kIsAdded || low[first + i] == max_low);
          term[i] = is_one ? 0.0f : make(x, low[first + i]);
          sums.ones += is_one ? 1.0f : 0.0f;
        }
        sums.others += double(tree_sum(term));
      }
    }
    return sums;
  }

  // Writes the values to all of the row's columns.
  __device__ __forceinline__ void store(std::int64_t row) {
    switch (args_.y_dtype) {
      case SOFTMAX_DTYPE_F16: return store_as<__half>(row);
      case SOFTMAX_DTYPE_BF16: return store_as<__nv_bfloat16>(row);
      case SOFTMAX_DTYPE_F8_E4M3: return store_as<f8_e4m3_t>(row);
      case SOFTMAX_DTYPE_F8_E5M2: return store_as<f8_e5m2_t>(row);
      default: return store_as<float>(row);
    }
  }

 private:
  __device__ __forceinline__ bool has_mask() const {
    return args_.general.mask_kind == SOFTMAX_MASK_BOOL_KEEP;
  }
  __device__ __forceinline__ unsigned char *slot(int stage, int p) const {
    return slots_ + (stage * kPacks + p) * threads_ * kWordBytes;
  }
  __device__ __forceinline__ unsigned char *mask_slot(int stage, int p) const {
    return mask_slots_ + (stage * kPacks + p) * threads_ * kMaskBytes;
  }
  // v of a pack, in two.
  __device__ __forceinline__ void add_mask(int p, Split<float> (&v)[kCols]) const {
    float x[kCols], added[kCols];
    unpack_raw<X>(load_raw(slot(stage_, p)), args_.x_dtype, x);
    const unsigned char *const from = mask_slot(stage_, p);
#pragma unroll
    for (int i = 0; i < kCols; i += 4) {
      const float4 four = *reinterpret_cast<const float4 *>(from + i * 4);
      added[i] = four.x;
      added[i + 1] = four.y;
      added[i + 2] = four.z;
      added[i + 3] = four.w;
    }
#pragma unroll
    for (int i = 0; i < kCols; ++i) {
      const float product = x[i] * scale_hi_;
      const float error = fmaf(x[i], scale_lo_, fmaf(x[i], scale_hi_, -product));
      const Split<float> sum = two_sum(product, added[i]);
      const float low = error + sum.lo;
      v[i] = {sum.hi, fabsf(sum.hi) < Limits<float>::infinity() ? low : 0.0f};
    }
  }
  __device__ __forceinline__ void lows(int p, float (&low)[kCols]) const {
    if constexpr (kIsAdded) {
      Split<float> v[kCols];
      add_mask(p, v);
#pragma unroll
      for (int i = 0; i < kCols; ++i) low[i] = v[i].lo;
    } else {
#pragma unroll
      for (int i = 0; i < kCols; ++i) low[i] = 0.0f;
    }
  }

  // What is no whole word, or lies in none.
  __device__ __forceinline__ void ask_pieces(unsigned char *to, const X *from, int left) const {
#pragma unroll
    for (int i = 0; i < kCols; ++i) {
      if (i >= left) continue;
      if constexpr (sizeof(X) == 4) {
        __pipeline_memcpy_async(to + i * sizeof(X), from + i, sizeof(X));
      } else {
        reinterpret_cast<X *>(to)[i] = from[i];
      }
    }
  }
  // BOOL_KEEP: a mask byte an element.
  __device__ __forceinline__ void ask_mask(std::int64_t row, int end, int stage) const {
    const std::int64_t stride = args_.layout().axis_stride[kTensorMask];
    const auto *const mask = static_cast<const std::uint8_t *>(args_.buffers.mask) +
                             row_begin(args_, kTensorMask, row) + cols_.first() * stride;
    const bool is_aligned = stride == 1 && reinterpret_cast<std::uintptr_t>(mask) % kCols == 0;
    if (is_aligned && cols_.is_whole(end)) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        __pipeline_memcpy_async(mask_slot(stage, p), mask + cols_.col(p), kCols);
      }
      return;
    }
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int at = cols_.col(p);
      if (is_aligned && at + kCols <= end) {
        __pipeline_memcpy_async(mask_slot(stage, p), mask + at, kCols);
      } else {
#pragma unroll
        for (int i = 0; i < kCols; ++i) {
          if (at + i < end) mask_slot(stage, p)[i] = mask[(at + i) * stride];
        }
      }
    }
  }

  // ADDITIVE: a float an element.
  __device__ __forceinline__ void ask_added(std::int64_t row, int end, int stage) const {
    const std::int64_t stride = args_.layout().axis_stride[kTensorMask];
    const float *const mask = static_cast<const float *>(args_.buffers.mask) +
                              row_begin(args_, kTensorMask, row) + cols_.first() * stride;
    const bool is_aligned = stride == 1 && is_word_aligned(mask);
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int at = cols_.col(p);
      unsigned char *const to = mask_slot(stage, p);
      if (is_aligned && at + kCols <= end) {
#pragma unroll
        for (int i = 0; i < kMaskBytes; i += kWordBytes) {
          __pipeline_memcpy_async(to + i, mask + at + i / 4, kWordBytes);
        }
      } else {
#pragma unroll
        for (int i = 0; i < kCols; ++i) {
          if (at + i < end) __pipeline_memcpy_async(to + i * 4, mask + (at + i) * stride, 4);
        }
      }
    }
  }

  template <int kCount>
  static __device__ __forceinline__ float tree_sum(float (&term)[kCount]) {
#pragma unroll
    for (int width = kCount / 2; width > 0; width /= 2) {
#pragma unroll
      for (int i = 0; i < width; ++i) term[i] += term[i + width];
    }
    return term[0];
  }

  template <typename Y>
  __device__ __forceinline__ void store_as(std::int64_t row) {
    Y *const y =
        static_cast<Y *>(args_.buffers.y) + row_begin(args_, kTensorY, row) + cols_.first();
    const int end = cols_.within(args_.layout().cols);
    constexpr int kBytes = kCols * static_cast<int>(sizeof(Y));
    constexpr int kAlign = kBytes < kWordBytes ? kBytes : kWordBytes;
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(y) % kAlign == 0;
    if constexpr (sizeof(Y) == 1) {
#pragma unroll
      for (int i = 0; i < kValues; ++i) {
        value_[i] = static_cast<float>(double(value_[i]) * args_.general.y_scale);
      }
    }
    if (is_aligned && cols_.is_whole(end)) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        float value[kCols];
        copy(p, value);
        store_values(y + cols_.col(p), value);
      }
      return;
    }
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int at = cols_.col(p);
      float value[kCols];
      copy(p, value);
      if (is_aligned && at + kCols <= end) {
        store_values(y + at, value);
      } else {
#pragma unroll
        for (int i = 0; i < kCols; ++i) {
          if (at + i < end) y[at + i] = narrow_value<Y>(value[i]);
        }
      }
    }
  }
  __device__ __forceinline__ void copy(int p, float (&value)[kCols]) const {
#pragma unroll
    for (int i = 0; i < kCols; ++i) value[i] = value_[p * kCols + i];
  }

  const GeneralArgs &args_;
  const HeldCols<kCols, kPacks> cols_;
  int threads_;  // of the block
  unsigned char *slots_;
  unsigned char *mask_slots_;
  int stage_ = 0;
  float scale_hi_, scale_lo_;  // with kIsAdded
  float value_[kValues];
};

// What is left to do of a row when its elements have been written, or cannot be.
enum class RowRest { kNothing, kStats, kWide };

// What a row is left with: by all of its threads.
static __device__ __forceinline__ void finish_row(const GeneralArgs &args, std::int64_t row,
                                                  RowRest rest, const RowNumbers &numbers,
                                                  TeamScratch *scratch) {
  const bool is_first = blockIdx.x % args.row_blocks == 0;
  if (rest == RowRest::kStats && is_first && threadIdx.x == 0) {
    write_row_stats(args, row, numbers);
  }
  if (args.row_threads > kWarpThreads) {
    if (rest == RowRest::kWide && is_first) run_wide_row(args, row, Team::of_block(scratch));
    return;
  }
  unsigned left = __ballot_sync(kFullWarp, rest == RowRest::kWide && threadIdx.x == 0);
  for (; left != 0; left &= left - 1) {
    const int lane = __ffs(static_cast<int>(left)) - 1;
    run_wide_row(args, __shfl_sync(kFullWarp, row, lane), Team::of_warp());
  }
}

template <typename X, int kPacks, bool kIsAdded>
class RowsCall {
 public:
  using Held = HeldRow<X, kPacks, kIsAdded>;

  __device__ __forceinline__ RowsCall(const GeneralArgs &args, RowsScratch (&scratch)[2],
                                      RowsMail &room, int rank, unsigned char *slots)
      : args_(args),
        scratch_(scratch),
        team_(args, scratch[0]),
#if SOFTMAX_BULK_COPY
        mail_(room, args.row_blocks, rank),
#endif
        held_(args, rank, slots),
        rank_(rank) {
  }

  // Begins to bring a row, one that exists or not.
  __device__ __forceinline__ void ask(std::int64_t row, int stage) const {
    held_.ask(row, length_of(row), stage);
  }

  // Before a row: its factor is loaded while the row before it is worked on.
  __device__ __forceinline__ void expect(std::int64_t row) {
    const float *const factors = args_.buffers.row_scale;
    if (factors != nullptr && row < args_.layout().rows) row_scale_ = factors[row];
  }

  // The row that was asked for there, and which was expected. kWide: nothing has been written, the
  // row is one for wide_row.cuh. kStats: `numbers` are the row's, the same in all of its threads.
  __device__ __forceinline__ RowRest run(std::int64_t row, std::int64_t step, int stage, int round,
                                         RowNumbers *numbers) {
    row_ = row;
    team_.use(&scratch_[round & 1]);
    const bool is_present = row < args_.layout().rows;
    const GeneralBuffers &b = args_.buffers;
    const double scale = args_.general.scale * double(row_scale_);
    expect(row + step);
    double sink = -Limits<double>::infinity();
    if (is_present && b.sink != nullptr) {
      sink = b.sink[row_begin(args_, kTensorSink, row_)];
    }
    const bool is_usual = RowScaling::of(scale).is_usual;
    // Of v itself, where that is what is held.
    const RowScaling scaling = RowScaling::of(kIsAdded ? 1.0 : scale);
    held_.take(length_of(row), stage, scale);
    // Of this block's part of the row, which is all of it but in a cluster.
    const float part_max = team_.part_max(held_.max(), 0);
    // What rounding has taken from it.
    float part_low = 0.0f;
    if (kIsAdded) part_low = team_.part_max(held_.low_of(part_max), 1);
    const float reference = is_finite(part_max) ? part_max : 0.0f;
    const ScaledTerms terms(reference, scaling);
    const bool needs_apart = !args_.general.given_stats && (args_.is_log || args_.writes_stats());
    const bool needs_plain = !args_.general.given_stats && !args_.is_log && !args_.is_stats;
    const bool is_coarse = args_.y_dtype != SOFTMAX_DTYPE_F32;
    // Where lanes of a warp have other rows, they go along: all of them shuffle.
    RowSums apart = {0.0, 0.0f};
    if (needs_apart) {
      apart =
          team_.part_sum(held_.template sum_apart<ScaledTerms::kTermsTogether>(
                             part_max, [&](float v, float low) { return term_of(terms, v, low); }),
                         0);
    }
    double plain = 0.0;
    if (needs_plain) {
      if (is_coarse) {
        const ScaledCoarseTerms coarse(reference, scaling);
        plain = held_.template take_terms<ScaledCoarseTerms::kTermsTogether>(
            [&](float v, float) { return coarse(v); });
      } else {
        plain = held_.template take_terms<ScaledTerms::kTermsTogether>(
            [&](float v, float low) { return term_of(terms, v, low); });
      }
      plain = team_.part_sum(plain, 1);
    }

    float max = part_max;
    float max_low = kIsAdded ? part_low : 0.0f;
    float exponent = terms.exponent();
    float part_scale = 1.0f;  // from what this part's terms are against to what the row's are
    bool is_wide = !is_usual || !terms.is_near();
#if SOFTMAX_BULK_COPY
    if (args_.row_blocks > 1) {
      mail_.exchange({apart.others, plain, part_max, apart.ones, is_wide ? 1.0f : 0.0f, part_low},
                     static_cast<unsigned>(round));
      const ClusterPart part = mail_.of_lane(static_cast<unsigned>(round));
      is_wide = __any_sync(kFullWarp, part.is_wide != 0.0f);
      max = lanes_max_or_nan(part.max, kWarpThreads);
      if (kIsAdded) {
        max_low =
            lanes_max_or_nan(part.max == max ? part.low : -Limits<float>::infinity(), kWarpThreads);
      }
      const ScaledTerms all(is_finite(max) ? max : 0.0f, scaling);
      exponent = all.exponent();
      const auto scale_of_part = [&](float of) {
        if (!is_finite(of)) return 0.0f;
        if (is_coarse && needs_plain) return coarse_power_of_two((of - max) * scaling.log2_hi);
        return all.scale_of(ScaledTerms(of, scaling).exponent());
      };
      part_scale = scale_of_part(part_max);
      if (needs_plain) {
        plain = team_.lanes_sum(part.plain * double(scale_of_part(part.max)));
      }
      if (needs_apart) {
        const bool has_values = is_finite(part.max);
        const float fine =
            has_values ? all.scale_of(ScaledTerms(part.max, scaling).exponent()) : 0.0f;
        apart = {part.apart * double(fine), part.ones};
        if (part.max != max || (kIsAdded && part.low != max_low)) {
          // Its maximum is an element like any other.
          apart.others +=
              has_values ? double(part.ones) * double(term_of(all, part.max, part.low)) : 0.0;
          apart.ones = 0.0f;
        }
        apart = team_.lanes_sum(apart);
      }
    }
#endif
    // An infinite v may be one in float32 alone.
    is_wide = is_present && (is_wide || (kIsAdded && !is_finite(max) && max == max));
    if (is_wide) return RowRest::kWide;
    if (!is_present) return RowRest::kNothing;
    if (args_.general.given_stats) return run_given(terms, max, scaling.size);
    const double row_reference = double(exponent) * kLn2;
    if (needs_plain) {
      const double top = double(max) * scaling.size;
      write_softmax(max, sink, plain, double(part_scale), is_coarse ? top : row_reference);
    } else if (!args_.is_stats) {
      write_log(max, max_low, sink, row_reference, scaling, apart);
    }
    if (!args_.writes_stats()) return RowRest::kNothing;
    *numbers = {max, apart.ones, apart.others, row_reference, max_low};
    return RowRest::kStats;
  }

 private:
  static constexpr double kLn2 = 0x1.62e42fefa39efp-1;

  static __device__ __forceinline__ bool is_finite(float v) {
    return v < Limits<float>::infinity() && v > -Limits<float>::infinity();
  }
  // A row with a NaN or a +inf, or without an element above -inf, is the same throughout.
  __device__ __forceinline__ bool write_extreme(float max, double sink) {
    const bool has_nan = !(max < Limits<float>::infinity()) || !(sink < Limits<double>::infinity());
    if (!has_nan && max > -Limits<float>::infinity()) return false;
    const bool is_zero = !has_nan && (sink > -Limits<double>::infinity() || args_.empty_is_zero);
    const float nothing = args_.is_log ? -Limits<float>::infinity() : 0.0f;
    const float nan = Limits<float>::infinity() - Limits<float>::infinity();
    held_.change([&](float, float) { return is_zero ? nothing : nan; });
    held_.store(row_);
    return true;
  }
  __device__ __forceinline__ void write_softmax(float max, double sink, double total,
                                                double part_scale, double reference) {
    if (write_extreme(max, sink)) return;
    if (sink > -Limits<double>::infinity()) total += 0x1p64 * exp(sink - reference);
    scale_terms(part_scale / total);
    held_.store(row_);
  }
  __device__ __forceinline__ void write_log(float max, float max_low, double sink, double reference,
                                            const RowScaling &scaling, const RowSums &apart) {
    if (write_extreme(max, sink)) return;
    const double top = double(max) * scaling.size + double(max_low);
    const double d = reference - top;  // moderate
    const float hi = static_cast<float>(d);
    const Split<float> e = exp_in_units(Split<float>{hi, static_cast<float>(d - double(hi))});
    const double rest =
        double(apart.ones) - 1.0 + apart.others * ((double(e.hi) + double(e.lo)) * 0x1p-128);
    const float log_sum = sink > -Limits<double>::infinity() ? row_log_sum(rest, sink, top)
                                                             : log_1_plus(static_cast<float>(rest));
    held_.change([&](float v, float low) {
      return scaled_log_value(v, max, scaling, log_sum) + (low - max_low);
    });
    held_.store(row_);
  }

  static __device__ __forceinline__ float term_of(const ScaledTerms &terms, float v, float low) {
    return kIsAdded ? terms(v, low) : terms(v);
  }

  // Terms, which are in units, times a factor.
  __device__ __forceinline__ void scale_terms(double factor) {
    if (factor < 0x1p-100) {
      // Results are below the normal range, mostly: 2^64 changes places.
      const float hi = static_cast<float>(factor * 0x1p64);
      held_.change([&](float term, float) { return term * 0x1p-64f * hi; });
      return;
    }
    const float hi = static_cast<float>(factor);
    if (args_.y_dtype != SOFTMAX_DTYPE_F32) {
      held_.change([&](float term, float) { return term * hi; });
      return;
    }
    const float lo = static_cast<float>(factor - double(hi));
    held_.change([&](float term, float) { return fmaf(term, hi, term * lo); });
  }

  __device__ __forceinline__ RowRest run_given(const ScaledTerms &terms, float max, double size) {
    const double given_max = args_.buffers.row_max[row_];
    const double given_sum = args_.buffers.row_sum[row_];
    const double way = double(max) * size - given_max;
    // What is not finite, or far from what is given, goes the long way.
    const bool is_usual = way > -60.0 && way < 60.0 && given_sum > 0x1p-60 && given_sum < 0x1p60;
    if (!is_usual) return RowRest::kWide;
    const double log_sum = log(given_sum);
    if (args_.buffers.lse != nullptr && rank_ == 0 && threadIdx.x == 0) {
      args_.buffers.lse[row_] = float(given_max + log_sum);
    }
    if (args_.is_log) {
      held_.change([&](float v, float low) {
        return static_cast<float>(((double(v) * size - given_max) + double(low)) - log_sum);
      });
    } else {
      held_.change([&](float v, float low) { return term_of(terms, v, low); });
      scale_terms(exp(terms.reference() - given_max) / given_sum * 0x1p-64);
    }
    held_.store(row_);
    return RowRest::kNothing;
  }

  __device__ __forceinline__ std::int64_t length_of(std::int64_t row) const {
    return row < args_.layout().rows ? row_length(args_, row) : 0;
  }

  const GeneralArgs &args_;
  RowsScratch (&scratch_)[2];
  RowTeam team_;
#if SOFTMAX_BULK_COPY
  const ClusterMail mail_;
#endif
  Held held_;
  std::int64_t row_ = 0;
  float row_scale_ = 1.0f;
  const int rank_;
};

// A block is row_threads threads a row by as many rows as blockDim.y; more than one row only where
// they are lanes of a warp. Blocks go on to further rows.
//
// What a row is left with is done by functions, and outside of the loop over rows, which begins
// anew with the next one: a call in it would take registers from all rows.
template <typename X, int kPacks, bool kIsAdded>
__global__ void __launch_bounds__(kRowsMostThreads,
                                  HeldRow<X, kPacks, kIsAdded>::kValues > 16 ? 1 : 2)
    general_rows_kernel(const __grid_constant__ GeneralArgs args) {
  extern __shared__ __align__(16) unsigned char slots[];
  __shared__ RowsScratch scratch[2];
  __shared__ TeamScratch wide_scratch;
  __shared__ int round_of_warp[kRowsMostThreads / kWarpThreads];
  using Call = RowsCall<X, kPacks, kIsAdded>;
  constexpr int kStages = Call::Held::kStages;
  __shared__ RowsMail mail;
#if SOFTMAX_BULK_COPY
  if (args.row_blocks > 1) ClusterMail(mail, args.row_blocks, 0).open();
#endif
  const int warp = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x) / kWarpThreads;
  for (int round = -1;;) {
    RowNumbers numbers;
    RowRest rest = RowRest::kNothing;
    std::int64_t row;
    {
      const int rank = static_cast<int>(blockIdx.x % args.row_blocks);
      const std::int64_t step = std::int64_t{gridDim.x / args.row_blocks} * blockDim.y;
      row = std::int64_t{blockIdx.x / args.row_blocks} * blockDim.y + threadIdx.y;
      Call call(args, scratch, mail, rank, slots);
      if (round < 0) {
#pragma unroll 1
        for (int i = 0; i < kStages - 1; ++i) call.ask(row + i * step, i);
        round = 0;
      }
      row += round * step;
      int stage = round % kStages;
      call.expect(row);
      // Rows of lanes: the first one decides for the warp.
#pragma unroll 1
      for (; row - threadIdx.y < args.layout().rows; row += step, ++round) {
        // Into the slots that were read last.
        call.ask(row + (kStages - 1) * step, stage == 0 ? kStages - 1 : stage - 1);
        rest = call.run(row, step, stage, round, &numbers);
        if (__any_sync(kFullWarp, rest != RowRest::kNothing)) break;
        stage = stage == kStages - 1 ? 0 : stage + 1;
      }
      if (row - threadIdx.y >= args.layout().rows) break;
    }
    if (threadIdx.x % kWarpThreads == 0) round_of_warp[warp] = round;
    finish_row(args, row, rest, numbers, &wide_scratch);
    __syncwarp();
    round = round_of_warp[warp] + 1;
  }
#if SOFTMAX_BULK_COPY
  // The others may still read this block's shared memory.
  if (args.row_blocks > 1) cooperative_groups::this_cluster().sync();
#endif
}

}  // namespace softmax
