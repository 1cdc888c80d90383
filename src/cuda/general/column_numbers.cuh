// What COLUMN's kernels make of a row's maximum and sum, and what they make of its elements by
// that.
#pragma once

#include "core/held_column.h"
#include "cuda/general/column_row.cuh"
#include "cuda/general/held_parts.cuh"

namespace softmax {

// What a row's outputs are made of. Softmax: what its terms are against, as an exponent, and the
// factor, see put_factor; where results are coarse: maximum, scale, factor, and what is added in
// the exponent. Log-softmax: maximum, scale, log(sum).
struct alignas(kHeldNumbersBytes) HeldNumbers {
  float number[4];
};

// Whether a row is left for wide_row.cuh. Beside a maximum below the limit, whatever is above twice
// that is nothing.
__device__ __forceinline__ bool is_left_row(const ScaledTerms &terms, const RowScaling &scaling) {
  constexpr float kMostExponent = 0x1p19f;
  return !scaling.is_usual || !(fabsf(terms.exponent()) < kMostExponent);
}

// What a part's coarse terms are made of: 2^((x - top) * log2 + offset).
struct CoarseColumn {
  float top, log2, offset;

  static __device__ __forceinline__ CoarseColumn of(float max, const RowScaling &scaling) {
    const bool has_terms =
        exponent_of(max, ScaledTerms(finite_or_zero(max), scaling)) > -Limits<float>::infinity();
    CoarseColumn coarse;
    coarse.top = has_terms ? max : 0.0f;
    coarse.log2 = scaling.log2_hi;
    coarse.offset = 64.0f + fraction_of(coarse.top, scaling);
    return coarse;
  }
  __device__ __forceinline__ float operator()(float x) const {
    return coarse_power_of_two(fmaf(x - top, log2, offset));
  }
};

// Softmax's numbers of a row whose terms come to `sum`.
__device__ __forceinline__ HeldNumbers softmax_numbers(const GeneralArgs &args, float max,
                                                       const RowScaling &scaling, double sum,
                                                       double sink, bool is_coarse) {
  const float finite = finite_or_zero(max);
  const ScaledTerms all(finite, scaling);
  float factor[3] = {};
  if (is_coarse && args.buffers.sink == nullptr && is_finite_number(max)) {
    factor[0] = near_reciprocal(static_cast<float>(sum));
    factor[2] = 1.0f;
  } else {
    put_sum_factor(args, max, sink, all.reference(), sum, factor);
  }
  if (is_coarse) {
    const float unit = factor[2] == 1.0f ? 64.0f : 0.0f;
    return {{finite, scaling.log2_hi, factor[0], unit + fraction_of(finite, scaling)}};
  }
  return {{all.exponent(), factor[0], factor[1], factor[2]}};
}

// A coarse result: its term is made again, against the row's own maximum.
__device__ __forceinline__ float coarse_result(const float (&n)[4], float x) {
  return coarse_power_of_two(fmaf(x - n[0], n[1], n[3])) * n[2];
}

// What brings terms against 2^exponent to results: a power of two that brings them to what the
// row's are against, and factors in two numbers. Where nothing is lost by that the power is in the
// factors, and is 1.
struct ColumnFactor {
  float own = 0.0f, hi = 0.0f, lo = 0.0f;
  bool has_power = false;

  static __device__ __forceinline__ ColumnFactor of(const float (&n)[4], float exponent) {
    ColumnFactor factor;
    factor.own = power_of_two(exponent - n[0]) * n[3];
    factor.hi = n[1];
    factor.lo = n[2];
    const float product = factor.own * factor.hi;
    factor.has_power = !(product > 0x1p-100f || factor.hi == 0.0f);
    if (!factor.has_power) {
      factor.hi = product;
      factor.lo *= factor.own;
      factor.own = 1.0f;
    }
    return factor;
  }
  // Without the power, and with it.
  __device__ __forceinline__ float plain(float term) const { return fmaf(term, hi, term * lo); }
  __device__ __forceinline__ float powered(float term) const { return plain(term * own); }
};

}  // namespace softmax
