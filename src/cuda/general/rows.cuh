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
#include "cuda/general/row_team.cuh"
#include "cuda/general/wide_row.cuh"
#include "cuda/prim/held_parts.cuh"

namespace softmax {

// The elements that one thread holds of a row.
template <typename X, int kPacks>
class HeldRow {
 public:
  static constexpr int kCols = kWordBytes / static_cast<int>(sizeof(X));
  static constexpr int kValues = kPacks * kCols;

  __device__ __forceinline__ HeldRow(const GeneralArgs &args, std::int64_t row, int rank)
      : args_(args), cols_(args, rank) {
    // All of it now: no call comes between loading and storing.
    x_ = static_cast<const X *>(args.buffers.x) + row_begin(args, kTensorX, row) + cols_.first();
    y_first_ = row_begin(args, kTensorY, row) + cols_.first();
    if (args.general.mask_kind == SOFTMAX_MASK_BOOL_KEEP) {
      mask_ = static_cast<const std::uint8_t *>(args.buffers.mask) +
              row_begin(args, kTensorMask, row) +
              cols_.first() * args.layout().axis_stride[kTensorMask];
    }
  }

  // sign * x, and -inf for what is masked or does not exist. `length`: of the row, 0 for none.
  __device__ __forceinline__ void load(std::int64_t length, float sign) {
    const X *const x = x_;
    const int end = cols_.within(length);
    const bool is_aligned = is_word_aligned(x);
    RawPack raw[kPacks];
    bool has_pieces = false;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int at = cols_.col(p);
      const bool is_whole = is_aligned && at + kCols <= end;
      raw[p] = is_whole ? load_raw(x + at) : empty_raw<X>(sign);
      has_pieces = has_pieces || (!is_whole && at < end);
    }
    if (has_pieces) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        const int at = cols_.col(p);
        if (!is_aligned || at + kCols > end) {
          raw[p] = load_raw_pieces(x + at, end - at, empty_raw<X>(sign));
        }
      }
    }
    if (mask_ != nullptr) return unpack_masked(raw, sign, end);
#pragma unroll
    for (int p = 0; p < kPacks; ++p) unpack(raw[p], sign, p, end);
  }

  __device__ __forceinline__ float max() const { return tree_max<0, kValues>(value_); }

  // What `make` makes of the values comes in their place.
  template <typename Make>
  __device__ __forceinline__ void change(Make make) {
#pragma unroll
    for (int i = 0; i < kValues; ++i) value_[i] = make(value_[i]);
  }

  // The same, and the sum, kTogether of them at a time in float32.
  template <int kTogether, typename Make>
  __device__ __forceinline__ double take_terms(Make make) {
    double sum = 0.0;
#pragma unroll
    for (int first = 0; first < kValues; first += kTogether) {
      float term[kTogether];
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        term[i] = make(value_[first + i]);
        value_[first + i] = term[i];
      }
      sum += double(tree_sum(term));
    }
    return sum;
  }
  // The sum alone; values that equal the maximum are counted.
  template <int kTogether, typename Make>
  __device__ __forceinline__ RowSums sum_apart(float max, Make make) const {
    RowSums sums = {0.0, 0.0f};
#pragma unroll
    for (int first = 0; first < kValues; first += kTogether) {
      float term[kTogether];
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const float x = value_[first + i];
        const bool is_one = x == max;
        term[i] = is_one ? 0.0f : make(x);
        sums.ones += is_one ? 1.0f : 0.0f;
      }
      sums.others += double(tree_sum(term));
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
  __device__ __forceinline__ void unpack(const RawPack &raw, float sign, int p, int end) {
    float value[kCols];
    unpack_raw<X>(raw, args_.x_dtype, value);
#pragma unroll
    for (int i = 0; i < kCols; ++i) {
      value_[p * kCols + i] =
          sizeof(X) > 1 || cols_.col(p) + i < end ? sign * value[i] : -Limits<float>::infinity();
    }
  }
  // BOOL_KEEP: a mask byte an element.
  __device__ __forceinline__ void unpack_masked(const RawPack (&raw)[kPacks], float sign, int end) {
    const std::int64_t stride = args_.layout().axis_stride[kTensorMask];
    const std::uint8_t *const mask = mask_;
    KeepPack<kCols> keep[kPacks];
    const bool is_aligned =
        stride == 1 && reinterpret_cast<std::uintptr_t>(mask) % sizeof(KeepPack<kCols>) == 0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int at = cols_.col(p);
      keep[p] = is_aligned && at + kCols <= end
                    ? load_keep<kCols>(mask + at)
                    : load_keep_pieces<kCols>(mask + at * stride, stride, end - at);
    }
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      unpack(raw[p], sign, p, end);
#pragma unroll
      for (int i = 0; i < kCols; ++i) {
        if (!keep[p].has(i)) value_[p * kCols + i] = -Limits<float>::infinity();
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
  __device__ __forceinline__ void store_as() {
    Y *const y = static_cast<Y *>(args_.buffers.y) + y_first_;
    const int end = cols_.within(args_.layout().cols);
    constexpr int kBytes = kCols * static_cast<int>(sizeof(Y));
    constexpr int kAlign = kBytes < kWordBytes ? kBytes : kWordBytes;
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(y) % kAlign == 0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int at = cols_.col(p);
      float value[kCols];
#pragma unroll
      for (int i = 0; i < kCols; ++i) {
        value[i] = value_[p * kCols + i];
        if (sizeof(Y) == 1) value[i] = static_cast<float>(double(value[i]) * args_.general.y_scale);
      }
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

  const GeneralArgs &args_;
  const HeldCols<kCols, kPacks> cols_;
  const X *x_;
  const std::uint8_t *mask_ = nullptr;
  std::int64_t y_first_;
  float value_[kValues];
};

// row_max, row_sum and lse of a row whose maximum is `max`, as sign * x, and `top`, as v. `sums`
// count the maximum's equals apart; `reference` is the terms'. A row has no sink where that is
// -inf.
static __device__ __noinline__ void write_row_stats(const GeneralArgs &args, std::int64_t row,
                                                    float max, double top, double sink,
                                                    double reference, double others, float ones) {
  const GeneralBuffers &b = args.buffers;
  const double infinity = Limits<double>::infinity();
  const bool is_nan = !(max < Limits<float>::infinity()) || !(sink < infinity);
  double stored = -infinity, sum = 0.0, lse = -infinity;
  if (is_nan) {
    stored = sum = lse = infinity - infinity;
  } else if (max > -Limits<float>::infinity() || sink > -infinity) {
    // The sum less a maximum's own 1.
    double rest = 0.0;
    if (max == -Limits<float>::infinity()) {
      top = sink;
    } else {
      rest = double(ones) - 1.0 + others * 0x1p-64 * wide_exp(reference - top);
      const double less = wide_exp(-fabs(sink - top));
      rest = sink > top ? (1.0 + rest) * less : rest + less;
      top = sink > top ? sink : top;
    }
    stored = static_cast<float>(top);
    const bool is_finite = stored > -infinity && stored < infinity;
    sum = is_finite ? (1.0 + rest) * wide_exp(top - stored) : 0.0;
    lse = is_finite ? top + log1p(rest) : stored;
  }
  if (b.row_max != nullptr) b.row_max[row] = float(stored);
  if (b.row_sum != nullptr) b.row_sum[row] = float(sum);
  if (b.lse != nullptr) b.lse[row] = float(lse);
}

// log(1 + rest), rest being what is less than the maximum's own 1, of a row with this sink: by way
// of float32 where that is enough.
static __device__ __noinline__ float row_log_sum(double rest, double sink, double top) {
  const double over = sink - top;
  if (over > 60.0) return static_cast<float>(over + log1p((1.0 + rest) * wide_exp(-over)));
  return log_1_plus(static_cast<float>(rest + wide_exp(over)));
}

template <typename X, int kPacks>
class RowsCall {
 public:
  __device__ __forceinline__ RowsCall(const GeneralArgs &args, const RowTeam &team,
                                      std::int64_t row, int rank)
      : args_(args), team_(team), held_(args, row, rank), row_(row), rank_(rank) {}

  // False where nothing has been written: the row is one for wide_row.cuh. `is_present`: there is
  // such a row.
  __device__ __forceinline__ bool run(bool is_present) {
    const GeneralBuffers &b = args_.buffers;
    double scale = args_.general.scale;
    double sink = -Limits<double>::infinity();
    if (is_present) {
      if (b.row_scale != nullptr) scale *= double(b.row_scale[row_]);
      if (b.sink != nullptr) sink = b.sink[row_begin(args_, kTensorSink, row_)];
    }
    const RowScaling scaling = RowScaling::of(scale);
    held_.load(is_present ? row_length(args_, row_) : 0, scaling.sign);
    const float max = team_.max(held_.max());
    const bool is_finite = max < Limits<float>::infinity() && max > -Limits<float>::infinity();
    // What such a row's terms come to is not used.
    const ScaledTerms terms(is_finite ? max : 0.0f, scaling);
    if (!scaling.is_usual || !terms.is_near()) return false;
    if (args_.general.given_stats) return run_given(is_present, terms, max, scaling.size);

    RowSums apart = {0.0, 0.0f};
    if (args_.is_log || args_.writes_stats()) {
      apart = team_.sum(held_.template sum_apart<ScaledTerms::kTermsTogether>(max, terms), 0);
    }
    if (!args_.is_stats) write(is_present, max, sink, terms, scaling, apart);
    if (args_.writes_stats() && is_present && rank_ == 0 && threadIdx.x == 0) {
      write_row_stats(args_, row_, max, double(max) * scaling.size, sink, terms.reference(),
                      apart.others, apart.ones);
    }
    return true;
  }

 private:
  __device__ __forceinline__ void write(bool is_present, float max, double sink,
                                        const ScaledTerms &terms, const RowScaling &scaling,
                                        const RowSums &apart) {
    const bool is_finite = max < Limits<float>::infinity() && max > -Limits<float>::infinity();
    const double top = double(max) * scaling.size;
    const bool has_nan = !(max < Limits<float>::infinity()) || !(sink < Limits<double>::infinity());
    if (!is_finite || has_nan) {
      const bool is_zero = !has_nan && (sink > -Limits<double>::infinity() || args_.empty_is_zero);
      const float nothing = args_.is_log ? -Limits<float>::infinity() : 0.0f;
      const float nan = Limits<float>::infinity() - Limits<float>::infinity();
      if (team_.is_block()) team_.sum({}, 1);  // barriers are for all rows
      held_.change([&](float) { return is_zero ? nothing : nan; });
    } else if (args_.is_log) {
      const double d = terms.reference() - top;  // moderate
      const float hi = static_cast<float>(d);
      const Split<float> e = exp_in_units(Split<float>{hi, static_cast<float>(d - double(hi))});
      const double rest =
          double(apart.ones) - 1.0 + apart.others * ((double(e.hi) + double(e.lo)) * 0x1p-128);
      const float log_sum = sink > -Limits<double>::infinity()
                                ? row_log_sum(rest, sink, top)
                                : log_1_plus(static_cast<float>(rest));
      held_.change([&](float x) { return scaled_log_value(x, max, scaling, log_sum); });
    } else {
      double reference = terms.reference();
      RowSums sums = {0.0, 0.0f};
      if (args_.y_dtype == SOFTMAX_DTYPE_F32) {
        sums.others = held_.template take_terms<ScaledTerms::kTermsTogether>(terms);
      } else {
        const ScaledCoarseTerms coarse(max, scaling);
        sums.others = held_.template take_terms<ScaledCoarseTerms::kTermsTogether>(coarse);
        reference = top;
      }
      double total = team_.sum(sums, 1).others;
      if (sink > -Limits<double>::infinity()) total += 0x1p64 * exp(sink - reference);
      scale_terms(1.0 / total);
    }
    if (is_present) held_.store();
  }

  // Terms, which are in units, times a factor.
  __device__ __forceinline__ void scale_terms(double factor) {
    // Where the factor is far below 1, results are below the normal range: 2^64 changes places.
    const bool is_small = factor < 0x1p-100;
    const double shifted = is_small ? factor * 0x1p64 : factor;
    const float before = is_small ? 0x1p-64f : 1.0f;
    const float hi = static_cast<float>(shifted);
    const float lo = static_cast<float>(shifted - double(hi));
    held_.change([&](float term) {
      term *= before;
      return fmaf(term, hi, term * lo);
    });
  }

  __device__ __forceinline__ bool run_given(bool is_present, const ScaledTerms &terms, float max,
                                            double size) {
    if (!is_present) return true;
    const double given_max = args_.buffers.row_max[row_];
    const double given_sum = args_.buffers.row_sum[row_];
    const double way = double(max) * size - given_max;
    // What is not finite, or far from what is given, goes the long way.
    const bool is_usual = way > -60.0 && way < 60.0 && given_sum > 0x1p-60 && given_sum < 0x1p60;
    if (!is_usual) return false;
    const double log_sum = log(given_sum);
    if (args_.buffers.lse != nullptr && rank_ == 0 && threadIdx.x == 0) {
      args_.buffers.lse[row_] = float(given_max + log_sum);
    }
    if (args_.is_log) {
      held_.change(
          [&](float x) { return static_cast<float>((double(x) * size - given_max) - log_sum); });
    } else {
      held_.change(terms);
      scale_terms(exp(terms.reference() - given_max) / given_sum * 0x1p-64);
    }
    held_.store();
    return true;
  }

  const GeneralArgs &args_;
  const RowTeam &team_;
  HeldRow<X, kPacks> held_;
  std::int64_t row_;
  int rank_;
};

// A block is row_threads threads a row by as many rows as blockDim.y; more than one row only where
// they are lanes of a warp.
template <typename X, int kPacks>
__global__ void __launch_bounds__(kRowsMostThreads, HeldRow<X, kPacks>::kValues > 16 ? 1 : 2)
    general_rows_kernel(const __grid_constant__ GeneralArgs args) {
  __shared__ RowsScratch scratch;
  __shared__ TeamScratch wide_scratch;
  const int rank = static_cast<int>(blockIdx.x % args.row_blocks);
  const std::int64_t row = std::int64_t{blockIdx.x / args.row_blocks} * blockDim.y + threadIdx.y;
  const bool is_present = row < args.layout().rows;
  const RowTeam team(args, scratch);
  RowsCall<X, kPacks> call(args, team, is_present ? row : 0, rank);
  const bool is_done = call.run(is_present);
  if (team.is_block()) {
    if (!is_done && rank == 0) run_wide_row(args, row, Team::of_block(&wide_scratch));
    team.part();
    return;
  }
  const bool is_first = threadIdx.x == 0;
  unsigned left = __ballot_sync(kFullWarp, is_present && !is_done && is_first);
  for (; left != 0; left &= left - 1) {
    const std::int64_t wide_row = __shfl_sync(kFullWarp, row, __ffs(static_cast<int>(left)) - 1);
    run_wide_row(args, wide_row, Team::of_warp());
  }
}

}  // namespace softmax
