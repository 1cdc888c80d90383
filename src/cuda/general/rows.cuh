// Algorithms 10, 11 and 13, WARP, BLOCK and CLUSTER, for the general call: dense rows in the
// registers of part of a warp, of a block or of a cluster's blocks. Every input is read once, every
// output written once.
//
// Types of x alone are template arguments. Whatever else a call asks for is a branch that a whole
// row takes: the scale is in the exponential's constants, masked elements are -inf from where they
// are loaded, and a row that this arithmetic is not for (temperature 0, a scale that is no usual
// number) is computed in float64 by the threads that hold it: wide_row.cuh.
#pragma once

#include "core/scaled_exp.h"
#include "cuda/general/held_row.cuh"
#include "cuda/general/row_numbers.cuh"
#include "cuda/general/row_piece.cuh"
#include "cuda/general/wide_row.cuh"

namespace softmax {

// Registers of a thread. Few are enough for 32 values because nothing is called between loading and
// storing: what a function needs would come on top. Rows of float32 in a block alone are quicker
// with more registers and fewer blocks at once, if results are stored: 0.98 of a copy's speed
// against 0.90 at 4096 columns; clusters are not (0.61 against 0.88 at 128256), nor 16-bit
// elements.
constexpr int kRowsRegisters = 64;
constexpr int kRowsManyRegisters = 96;

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
  __device__ __forceinline__ RowsCall(const GeneralArgs &args,
                                      const RowExchange<RowPiece> &exchange, std::int64_t row,
                                      int rank)
      : args_(args),
        exchange_(exchange),
        is_present_(row < args.layout().rows),
        row_(is_present_ ? row : 0),
        rank_(rank),
        held_(args, row_, rank) {}

  // kWide: nothing has been written, the row is one for wide_row.cuh. kStats: `numbers` are the
  // row's, the same in all of its threads.
  __device__ __forceinline__ RowRest run(RowNumbers *numbers) {
    const GeneralBuffers &b = args_.buffers;
    const float *const factor = b.row_scale != nullptr ? b.row_scale + row_ : nullptr;
    const float *const sink_at =
        b.sink != nullptr ? b.sink + row_begin(args_, kTensorSink, row_) : nullptr;
    const double scale = held_.load(is_present_ ? row_length(args_, row_) : 0, factor);
    float sink = -Limits<float>::infinity();
    if (sink_at != nullptr) sink = *sink_at;
    // Of v itself, where that is what is held.
    const RowScaling scaling = RowScaling::of(kIsAdded ? 1.0 : scale);

    // Of this warp's part of the row.
    const int lanes = args_.row_threads < kWarpThreads ? args_.row_threads : kWarpThreads;
    const auto most = [&](float own) {
      return lanes == kWarpThreads ? warp_max_or_nan(own) : lanes_max_or_nan(own, lanes);
    };
    const float part_max = most(held_.max());
    const float part_low = kIsAdded ? most(held_.low_of(part_max)) : 0.0f;
    const ScaledTerms terms = terms_of(part_max, scaling);
    const float part_exponent = exponent_of(part_max, ScaledTerms(part_max, scaling));
    const bool needs_apart = !args_.general.given_stats && (args_.is_log || args_.writes_stats());
    const bool needs_plain = !args_.general.given_stats && !args_.is_log && !args_.is_stats;
    const bool is_coarse = args_.y_dtype != SOFTMAX_DTYPE_F32;
    // Where lanes of a warp have other rows, they go along: all of them shuffle.
    RowSums apart = {0.0, 0.0f};
    if (needs_apart) {
      apart = held_.template sum_apart<ScaledTerms>(
          part_max, part_low,
          [&](float v, float low) { return row_term<kIsAdded>(terms, v, low); });
      apart = sum_of_lanes<true>(apart, lanes);
    }
    double plain = 0.0;
    if (needs_plain) {
      if (is_coarse) {
        const ScaledCoarseTerms coarse(finite_or_zero(part_max), scaling, terms);
        plain = held_.template take_terms<ScaledCoarseTerms>(
            [&](float v, float) { return coarse(v); });
      } else {
        plain = held_.template take_terms<ScaledTerms>(
            [&](float v, float low) { return softmax_term<kIsAdded>(terms, v, low); });
      }
      plain =
          lanes == kWarpThreads ? warp_sum_of_units<kSumBits>(plain) : sum_of_lanes(plain, lanes);
    }

    RowTotal whole = {part_max, part_low, apart, plain};
#pragma unroll 1
    for (int meeting = 0; meeting < exchange_.meetings(); ++meeting) {
      exchange_.meet(meeting, whole.piece(scaling));
      whole = merge_pieces<kIsAdded>(
          exchange_.count(meeting),
          [&](int i) -> const RowPiece & { return exchange_.part(meeting, i); }, scaling,
          needs_apart, needs_plain);
    }
    const float max = whole.max;
    const ScaledTerms all(finite_or_zero(max), scaling);
    bool is_wide = !RowScaling::of(scale).is_usual || !all.is_well_near();
    // An infinite v may be one in float32 alone.
    is_wide = is_wide || (kIsAdded && !is_finite_number(max) && max == max);
    if (!is_present_) return RowRest::kNothing;
    if (is_wide) return RowRest::kWide;
    if (args_.general.given_stats) return run_given(all, max, scaling.size);
    const double reference = all.reference();
    if (needs_plain) {
      write_softmax(max, sink, whole.plain, part_exponent - all.exponent(), reference);
    } else if (!args_.is_stats) {
      write_log(max, whole.low, sink, reference, scaling, whole.apart);
    }
    if (!args_.writes_stats()) return RowRest::kNothing;
    *numbers = {max, whole.apart.ones, whole.apart.others, reference, whole.low};
    return RowRest::kStats;
  }

 private:
  // Of a lane's terms.
  static constexpr int kSumBits = unit_bits(HeldRow<X, kPacks, kIsAdded>::kValues);

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
                                                float part_exponent, double reference) {
    if (write_extreme(max, sink)) return;
    if (sink > -Limits<double>::infinity()) total += 0x1p64 * exp_of_sink(sink - reference);
    scale_terms(times_power(near_reciprocal(total), part_exponent));
    held_.store();
  }
  __device__ __forceinline__ void write_log(float max, float max_low, double sink, double reference,
                                            const RowScaling &scaling, const RowSums &apart) {
    if (write_extreme(max, sink)) return;
    const double top = double(max) * scaling.size + double(max_low);
    const double rest = rest_of_sum(apart.ones, apart.others, reference, top);
    const float log_sum = sink > -Limits<double>::infinity() ? row_log_sum(rest, sink, top)
                                                             : log_of_rest(rest);
    if (args_.y_dtype != SOFTMAX_DTYPE_F32) {
      held_.change([&](float v, float low) {
        return coarse_log_value(v, max, scaling.hi, log_sum) + (low - max_low);
      });
    } else {
      held_.change([&](float v, float low) {
        return scaled_log_value(v, max, scaling, log_sum) + (low - max_low);
      });
    }
    held_.store();
  }

  __device__ __forceinline__ void scale_terms(double factor) {
    softmax::scale_terms(factor, args_.y_dtype, [&](auto make) {
      held_.change([&](float term, float) { return make(term); });
    });
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
      held_.change([&](float v, float low) { return softmax_term<kIsAdded>(terms, v, low); });
      scale_terms(exp_of_sink(terms.reference() - given_max) * near_reciprocal(given_sum) *
                  0x1p-64);
    }
    held_.store();
    return RowRest::kNothing;
  }

  const GeneralArgs &args_;
  const RowExchange<RowPiece> &exchange_;
  const bool is_present_;
  const std::int64_t row_;
  const int rank_;
  HeldRow<X, kPacks, kIsAdded> held_;
};

// A block is row_threads threads a row by as many rows as blockDim.y; more than one row only where
// they are lanes of a warp.
//
// What a row is left with is done by functions, at the end.
template <typename X, int kPacks, bool kIsAdded, int kRegisters>
__global__ void __maxnreg__(kRegisters)
    general_rows_kernel(const __grid_constant__ GeneralArgs args) {
  if constexpr (std::is_same_v<X, F8Byte> && !kConvertsF8) return;
  extern __shared__ __align__(16) unsigned char room[];
  __shared__ TeamScratch wide_scratch;
  // A power of two of them.
  const int rank = static_cast<int>(blockIdx.x) & (args.row_blocks - 1);
  const int team = static_cast<int>(blockIdx.x >> (__ffs(args.row_blocks) - 1));
  const std::int64_t row = std::int64_t{team} * blockDim.y + threadIdx.y;
  const RowExchange<RowPiece> exchange(args, room, rank);
  exchange.open();
  RowNumbers numbers;
  const RowRest rest = RowsCall<X, kPacks, kIsAdded>(args, exchange, row, rank).run(&numbers);
  finish_row(args, row, rest, numbers, &wide_scratch);
}

}  // namespace softmax
