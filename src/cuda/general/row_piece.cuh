// What a part of a row of the general call comes to, and what parts come to together. Sums are
// against powers of two, each by its part's own maximum: bringing them to the row's rounds nothing.
#pragma once

#include "core/scaled_exp.h"
#include "cuda/general/part_terms.cuh"
#include "cuda/general/row_team.cuh"

namespace softmax {

// What a warp or a block tells the others of its part of a row.
struct alignas(16) RowPiece {
  double apart;  // sums in units, against the part's own reference
  double plain;
  float max;       // of the part
  float ones;      // how many of its elements equal that, apart from the sum `apart`
  float low;       // what rounding has taken from `max`
  float exponent;  // of the reference, a power of two; -inf where there is no term to speak of
};

// A part of a row, or the row.
struct RowTotal {
  float max;
  float low;
  RowSums apart;
  double plain;

  __device__ __forceinline__ RowPiece piece(const RowScaling &scaling) const {
    return {apart.others, plain, max, apart.ones, low, exponent_of(max, ScaledTerms(max, scaling))};
  }
};

// Times 2^exponent, which is no more than 1 and of an integer; what is far below 1 is 0.
__device__ __forceinline__ double times_power(double value, float exponent) {
  if (!(exponent > -200.0f)) return 0.0;
  return value * __hiloint2double((1023 + static_cast<int>(exponent)) << 20, 0);
}

// Terms, which are in units, times a factor: change(what makes a result of a term).
template <typename Change>
__device__ __forceinline__ void scale_terms(double factor, std::int32_t y_dtype, Change change) {
  if (factor < 0x1p-100) {
    // Results are below the normal range, mostly: 2^64 changes places.
    const float hi = static_cast<float>(factor * 0x1p64);
    change([&](float term) { return term * 0x1p-64f * hi; });
    return;
  }
  const float hi = static_cast<float>(factor);
  if (y_dtype != SOFTMAX_DTYPE_F32) {
    change([&](float term) { return term * hi; });
    return;
  }
  const float lo = static_cast<float>(factor - double(hi));
  change([&](float term) { return fmaf(term, hi, term * lo); });
}

// Of softmax. kIsAdded: v is x and what rounding has taken of it, `low`.
template <bool kIsAdded>
__device__ __forceinline__ float softmax_term(const ScaledTerms &terms, float v, float low) {
  return kIsAdded ? terms(v, low) : terms(v);
}
// Of a sum that is wanted by itself, or for a logarithm.
template <bool kIsAdded>
__device__ __forceinline__ float row_term(const ScaledTerms &terms, float v, float low) {
  return kIsAdded ? terms.quick(v, low) : terms.quick(v);
}

// Pieces of one row, at(i) for each, together: by all lanes of a warp.
template <bool kIsAdded, typename At>
__device__ __forceinline__ RowTotal merge_pieces(int count, At at, const RowScaling &scaling,
                                                 bool needs_apart, bool needs_plain) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpThreads;
  const auto each = [&](auto use) {
    if (lane < count) use(at(lane));
  };
  RowTotal whole = {-Limits<float>::infinity(), 0.0f, {0.0, 0.0f}, 0.0};
  each([&](const RowPiece &p) { whole.max = max_or_nan(whole.max, p.max); });
  whole.max = warp_max_or_nan(whole.max);
  if (kIsAdded) {
    whole.low = -Limits<float>::infinity();
    each([&](const RowPiece &p) {
      if (p.max == whole.max) whole.low = fmaxf(whole.low, p.low);
    });
    whole.low = warp_max_or_nan(whole.low);
  }
  const ScaledTerms all(finite_or_zero(whole.max), scaling);
  const float exponent = all.exponent();
  if (needs_plain) {
    each([&](const RowPiece &p) { whole.plain += times_power(p.plain, p.exponent - exponent); });
    whole.plain = warp_sum_of_units<kRunsBits>(whole.plain);
  }
  if (needs_apart) {
    each([&](const RowPiece &p) {
      if (p.max == whole.max && (!kIsAdded || p.low == whole.low)) {
        whole.apart.ones += p.ones;
      } else if (is_finite_number(p.max)) {
        // Its maximum is an element like any other.
        whole.apart.others += double(p.ones) * double(row_term<kIsAdded>(all, p.max, p.low));
      }
      whole.apart.others += times_power(p.apart, p.exponent - exponent);
    });
    whole.apart = sum_of_lanes<true>(whole.apart, kWarpThreads);
  }
  return whole;
}

}  // namespace softmax
