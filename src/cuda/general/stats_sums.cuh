// How the kernels for statistics alone add up a row, in two ways: with the maximum's own 1 apart,
// as row_sum wants it and rows.cuh does it, and for the log-sum-exp alone.
#pragma once

#include "core/lse_terms.h"
#include "cuda/general/row_numbers.cuh"
#include "cuda/general/row_piece.cuh"

namespace softmax {

// Of each: what a warp finds of its part, and what parts come to together, by all lanes of a warp.
// `is_wide`: the row is one for wide_row.cuh.
struct ApartSums {
  static constexpr bool kIsApart = true;
  static constexpr bool kScalesRows = true;
  using Piece = RowPiece;
  using Total = RowTotal;

  template <typename X, typename Words>
  static __device__ __forceinline__ Piece take(Words *words, const RowScaling &scaling,
                                               const X *next) {
    const float max = warp_max_or_nan(words->max());
    const float exponent = exponent_of(max, ScaledTerms(max, scaling));
    const RowSums sums =
        sum_of_lanes<true>(words->take_sums(max, terms_of(max, scaling), next), kWarpThreads);
    return {sums.others, 0.0, max, sums.ones, 0.0f, exponent};
  }
  static __device__ __forceinline__ Total merge(const Piece *pieces, int count,
                                                const RowScaling &scaling) {
    return merge_pieces<false>(
        count, [&](int p) -> const RowPiece & { return pieces[p]; }, scaling, true, false);
  }
  static __device__ __forceinline__ Piece piece(const Total &total, const RowScaling &scaling) {
    return total.piece(scaling);
  }
  static __device__ __forceinline__ RowNumbers numbers(const Total &total,
                                                       const RowScaling &scaling, bool *is_wide) {
    const ScaledTerms all(finite_or_zero(total.max), scaling);
    *is_wide = !scaling.is_usual || !all.is_well_near();
    return {total.max, total.apart.ones, total.apart.others, all.reference(), 0.0f};
  }
};

// The log-sum-exp alone: the maximum's own term is taken out of the sum when all are in it.
struct LseSums {
  static constexpr bool kIsApart = false;
  static constexpr bool kScalesRows = false;  // not every scale is one for LseTerms
  // A lane's sum is below so many bits: its terms are 2^8 at most.
  template <typename Words>
  static constexpr int kSumBits = 8 + unit_bits(Words::kValues);
  struct alignas(16) Piece {
    double sum;  // in units, against the part's own reference
    float max;
    float exponent;  // of the reference; -inf where there is no term to speak of
  };
  using Total = Piece;

  template <typename X, typename Words>
  static __device__ __forceinline__ Piece take(Words *words, const RowScaling &scaling,
                                               const X *next) {
    const float max = warp_max_or_nan(words->max());
    const LseTerms terms(finite_or_zero(max), scaling);
    const double sum = warp_sum_of_units<kSumBits<Words>>(words->take_sum(terms, next) * 0x1p64);
    return {sum, max, exponent_of(max, terms)};
  }
  static __device__ __forceinline__ Total merge(const Piece *pieces, int count,
                                                const RowScaling &scaling) {
    const int lane = static_cast<int>(threadIdx.x) % kWarpThreads;
    Piece own = {0.0, -Limits<float>::infinity(), -Limits<float>::infinity()};
    if (lane < count) own = pieces[lane];
    const float max = warp_max_or_nan(own.max);
    const LseTerms all(finite_or_zero(max), scaling);
    const double sum =
        sum_of_lanes(times_power(own.sum, own.exponent - all.exponent()), kWarpThreads);
    return {sum, max, exponent_of(max, all)};
  }
  static __device__ __forceinline__ Piece piece(const Total &total, const RowScaling &) {
    return total;
  }
  static __device__ __forceinline__ RowNumbers numbers(const Total &total,
                                                       const RowScaling &scaling, bool *is_wide) {
    const float max = finite_or_zero(total.max);
    const LseTerms all(max, scaling);
    *is_wide = !all.is_well_near();
    return {total.max, 1.0f, total.sum - double(all(max)) * 0x1p64,
            LseTerms::reference(all.exponent(), max, scaling), 0.0f};
  }
};

}  // namespace softmax
