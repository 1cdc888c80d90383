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

#include "core/scaled_exp.h"
#include "cuda/general/pack.cuh"
#include "cuda/general/row_numbers.cuh"
#include "cuda/general/row_team.cuh"
#include "cuda/general/wide_row.cuh"
#include "cuda/prim/held_parts.cuh"

namespace softmax {

// Thirty-two elements a thread halve what is done for a row beside its elements.
template <typename X, int kPacks>
constexpr int kRowsRegisters = kPacks *kWordBytes / static_cast<int>(sizeof(X)) > 16 ? 128 : 64;

// The elements that one thread holds of a row.
//
// kIsAdded: with an additive mask, v is more than a float32 holds. The values held are then v,
// rounded, and what rounding has taken is made again where it is needed, of inputs that are read
// again, from the cache.
template <typename X, int kPacks, bool kIsAdded>
class HeldRow {
 public:
  static constexpr int kCols = kWordBytes / static_cast<int>(sizeof(X));
  static constexpr int kValues = kPacks * kCols;

  __device__ __forceinline__ HeldRow(const GeneralArgs &args, std::int64_t row, int rank)
      : args_(args), cols_(args, rank) {
    // All of it now: no call comes between loading and storing.
    x_ = static_cast<const X *>(args.buffers.x) + row_begin(args, kTensorX, row) + cols_.first();
    y_first_ = row_begin(args, kTensorY, row) + cols_.first();
    if (kIsAdded || args.general.mask_kind == SOFTMAX_MASK_BOOL_KEEP) {
      mask_first_ = row_begin(args, kTensorMask, row) + cols_.first() * mask_stride();
    }
  }

  // The values, and -inf for what is masked or does not exist: x with the scale's sign, or v with
  // kIsAdded. `length`: of the row, 0 for none. `factor`: of the row's scale, read when its
  // elements have been asked for. Returns the scale.
  __device__ __forceinline__ double load(std::int64_t length, const float *factor) {
    double scale = args_.general.scale;
    end_ = cols_.within(length);
    is_whole_ = cols_.is_whole(end_) && is_word_aligned(x_);
    if constexpr (kIsAdded) {
      if (factor != nullptr) scale *= double(*factor);
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
      RawPack raw[kPacks];
      load_x(raw);
      if (args_.general.mask_kind == SOFTMAX_MASK_BOOL_KEEP) {
        KeepPack<kCols> keep[kPacks];
        load_keeps(keep);
        if (factor != nullptr) scale *= double(*factor);
        unpack_all(raw, scale < 0.0);
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
#pragma unroll
          for (int i = 0; i < kCols; ++i) {
            if (!keep[p].has(i)) value_[p * kCols + i] = -Limits<float>::infinity();
          }
        }
      } else {
        if (factor != nullptr) scale *= double(*factor);
        unpack_all(raw, scale < 0.0);
      }
    }
    if (cols_.is_whole(end_)) return scale;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
#pragma unroll
      for (int i = 0; i < kCols; ++i) {
        if (cols_.col(p) + i >= end_) value_[p * kCols + i] = -Limits<float>::infinity();
      }
    }
    return scale;
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
  __device__ __forceinline__ void store() {
    switch (args_.y_dtype) {
      case SOFTMAX_DTYPE_F16: return store_as<__half>();
      case SOFTMAX_DTYPE_BF16: return store_as<__nv_bfloat16>();
      case SOFTMAX_DTYPE_F8_E4M3: return store_as<f8_e4m3_t>();
      case SOFTMAX_DTYPE_F8_E5M2: return store_as<f8_e5m2_t>();
      default: return store_as<float>();
    }
  }

 private:
  __device__ __forceinline__ std::int64_t mask_stride() const {
    return args_.layout().axis_stride[kTensorMask];
  }

  __device__ __forceinline__ void load_x(RawPack (&raw)[kPacks]) const {
    if (is_whole_) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) raw[p] = load_raw(x_ + cols_.col(p));
    } else {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) raw[p] = load_part(p);
    }
  }
  // A pack of a row that is cut somewhere, or lies in no words.
  __device__ __forceinline__ RawPack load_part(int p) const {
    const int at = cols_.col(p);
    if (is_word_aligned(x_) && at + kCols <= end_) return load_raw(x_ + at);
    return load_raw_pieces(x_ + at, end_ - at, RawPack{});
  }
  __device__ __forceinline__ void unpack_all(const RawPack (&raw)[kPacks], bool is_negative) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      float value[kCols];
      unpack_raw<X>(raw[p], args_.x_dtype, value);
#pragma unroll
      for (int i = 0; i < kCols; ++i) value_[p * kCols + i] = value[i];
    }
    if (is_negative) {
#pragma unroll
      for (int i = 0; i < kValues; ++i) value_[i] = -value_[i];
    }
  }

  // BOOL_KEEP: a mask byte an element.
  __device__ __forceinline__ void load_keeps(KeepPack<kCols> (&keep)[kPacks]) const {
    const std::int64_t stride = mask_stride();
    const auto *const mask = static_cast<const std::uint8_t *>(args_.buffers.mask) + mask_first_;
    const bool is_aligned = stride == 1 && reinterpret_cast<std::uintptr_t>(mask) % kCols == 0;
    if (is_aligned && cols_.is_whole(end_)) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) keep[p] = load_keep<kCols>(mask + cols_.col(p));
      return;
    }
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int at = cols_.col(p);
      keep[p] = is_aligned && at + kCols <= end_
                    ? load_keep<kCols>(mask + at)
                    : load_keep_pieces<kCols>(mask + at * stride, stride, end_ - at);
    }
  }
  // ADDITIVE: a float an element.
  __device__ __forceinline__ void load_added(int p, float (&added)[kCols]) const {
    const std::int64_t stride = mask_stride();
    const float *const mask = static_cast<const float *>(args_.buffers.mask) + mask_first_;
    const int at = cols_.col(p);
    if (stride == 1 && is_word_aligned(mask) && at + kCols <= end_) {
#pragma unroll
      for (int i = 0; i < kCols; i += 4) {
        const float4 four = *reinterpret_cast<const float4 *>(mask + at + i);
        added[i] = four.x;
        added[i + 1] = four.y;
        added[i + 2] = four.z;
        added[i + 3] = four.w;
      }
    } else {
#pragma unroll
      for (int i = 0; i < kCols; ++i) added[i] = at + i < end_ ? mask[(at + i) * stride] : 0.0f;
    }
  }

  // v of a pack, in two.
  __device__ __forceinline__ void add_mask(int p, Split<float> (&v)[kCols]) const {
    float x[kCols], added[kCols];
    unpack_raw<X>(is_whole_ ? load_raw(x_ + cols_.col(p)) : load_part(p), args_.x_dtype, x);
    load_added(p, added);
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
  __device__ __forceinline__ void store_as() {
    Y *const y = static_cast<Y *>(args_.buffers.y) + y_first_;
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
  const X *x_;
  std::int64_t y_first_;
  std::int64_t mask_first_ = 0;
  int end_ = 0;  // of the row's columns in the block's part
  bool is_whole_ = false;
  float scale_hi_, scale_lo_;  // with kIsAdded
  float value_[kValues];
};

// What is left to do of a row when its elements have been written, or cannot be.
enum class RowRest { kNothing, kStats, kWide };

// What a row is left with: by all of its threads.
static __device__ __forceinline__ void finish_row(const GeneralArgs &args, std::int64_t row,
                                                  RowRest rest, const RowNumbers &numbers,
                                                  TeamScratch *scratch) {
  const bool is_first = (blockIdx.x & (args.row_blocks - 1)) == 0;
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
  // A row that exists or not.
  __device__ __forceinline__ RowsCall(const GeneralArgs &args, RowsScratch &scratch, RowsMail &mail,
                                      std::int64_t row, int rank)
      : args_(args),
        team_(args, scratch),
        mail_(mail),
        is_present_(row < args.layout().rows),
        row_(is_present_ ? row : 0),
        rank_(rank),
        held_(args, row_, rank) {}

  // kWide: nothing has been written, the row is one for wide_row.cuh. kStats: `numbers` are the
  // row's, the same in all of its threads.
  __device__ __forceinline__ RowRest run(RowNumbers *numbers) {
    const GeneralBuffers &b = args_.buffers;
    const float *const factor = b.row_scale != nullptr ? b.row_scale + row_ : nullptr;
    const double scale = held_.load(is_present_ ? row_length(args_, row_) : 0, factor);
    double sink = -Limits<double>::infinity();
    if (b.sink != nullptr) sink = b.sink[row_begin(args_, kTensorSink, row_)];
#if SOFTMAX_BULK_COPY
    // What has been asked for comes meanwhile.
    const ClusterMail mail(mail_, args_.row_blocks, rank_);
    if (args_.row_blocks > 1) mail.open();
#endif
    const bool is_usual = RowScaling::of(scale).is_usual;
    // Of v itself, where that is what is held.
    const RowScaling scaling = RowScaling::of(kIsAdded ? 1.0 : scale);
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
      apart = team_.part_sum(
          held_.template sum_apart<ScaledTerms::kTermsTogether>(
              part_max, part_low, [&](float v, float low) { return term_of(terms, v, low); }),
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
      mail.exchange({apart.others, plain, part_max, apart.ones, is_wide ? 1.0f : 0.0f, part_low},
                    0);
      const ClusterPart part = mail.of_lane(0);
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
    is_wide = is_present_ && (is_wide || (kIsAdded && !is_finite(max) && max == max));
    if (is_wide) return RowRest::kWide;
    if (!is_present_) return RowRest::kNothing;
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
    held_.store();
    return true;
  }
  __device__ __forceinline__ void write_softmax(float max, double sink, double total,
                                                double part_scale, double reference) {
    if (write_extreme(max, sink)) return;
    if (sink > -Limits<double>::infinity()) total += 0x1p64 * exp(sink - reference);
    scale_terms(part_scale / total);
    held_.store();
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
    held_.store();
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
    held_.store();
    return RowRest::kNothing;
  }

  const GeneralArgs &args_;
  const RowTeam team_;
  RowsMail &mail_;
  const bool is_present_;
  const std::int64_t row_;
  const int rank_;
  HeldRow<X, kPacks, kIsAdded> held_;
};

// A block is row_threads threads a row by as many rows as blockDim.y; more than one row only where
// they are lanes of a warp.
//
// What a row is left with is done by functions, at the end: a call between loading and storing
// would take registers from all rows.
template <typename X, int kPacks, bool kIsAdded>
__global__ void __maxnreg__((kRowsRegisters<X, kPacks>))
    general_rows_kernel(const __grid_constant__ GeneralArgs args) {
  __shared__ RowsScratch scratch;
  __shared__ TeamScratch wide_scratch;
  __shared__ RowsMail mail;
  // A power of two of them.
  const int rank = static_cast<int>(blockIdx.x) & (args.row_blocks - 1);
  const int team = static_cast<int>(blockIdx.x >> (__ffs(args.row_blocks) - 1));
  const std::int64_t row = std::int64_t{team} * blockDim.y + threadIdx.y;
  RowNumbers numbers;
  const RowRest rest = RowsCall<X, kPacks, kIsAdded>(args, scratch, mail, row, rank).run(&numbers);
#if SOFTMAX_BULK_COPY
  // Nobody leaves whose shared memory others still write to.
  if (args.row_blocks > 1) cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_relaxed);
#endif
  finish_row(args, row, rest, numbers, &wide_scratch);
#if SOFTMAX_BULK_COPY
  if (args.row_blocks > 1) cuda::ptx::barrier_cluster_wait(cuda::ptx::sem_acquire);
#endif
}

}  // namespace softmax
