// What the terms of a part of a row are against, for the general call's kernels that hold rows on
// chip: a power of two by the part's own maximum. And the order in which a few of them are added.
#pragma once

#include "core/scaled_exp.h"

namespace softmax {

__device__ __forceinline__ bool is_finite_number(float v) {
  return v < Limits<float>::infinity() && v > -Limits<float>::infinity();
}
__device__ __forceinline__ float finite_or_zero(float v) { return is_finite_number(v) ? v : 0.0f; }

// Of a part whose maximum is too far below 0, in a row that is not left, no term is more than
// nothing.
__device__ __forceinline__ ScaledTerms terms_of(float max, const RowScaling &s) {
  const ScaledTerms terms(finite_or_zero(max), s);
  return terms.is_near() ? terms : ScaledTerms(0.0f, s);
}
// What a part's terms are against; -inf where there is no term to speak of. `terms`: of the
// maximum, or of anything where that is not finite.
template <typename Terms>
__device__ __forceinline__ float exponent_of(float max, const Terms &terms) {
  return is_finite_number(max) && terms.is_near() ? terms.exponent() : -Limits<float>::infinity();
}

// Of a few terms, in Terms::Sum.
template <typename Terms, int kCount>
__device__ __forceinline__ double sum_of(const float (&term)[kCount]) {
  typename Terms::Sum sum[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) sum[i] = term[i];
#pragma unroll
  for (int width = kCount / 2; width > 0; width /= 2) {
#pragma unroll
    for (int i = 0; i < width; ++i) sum[i] += sum[i + width];
  }
  return sum[0];
}

}  // namespace softmax
