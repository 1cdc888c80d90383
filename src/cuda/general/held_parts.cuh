// What COLUMN's threads know of a part of a row each, and how that becomes the row's.
#pragma once

#include "core/held_column.h"
#include "cuda/general/column_row.cuh"
#include "cuda/prim/part_merge.cuh"

namespace softmax {

// Of some of a row's elements.
struct alignas(kHeldPartBytes) ColumnPart {
  double sum;  // of terms in units, against the power of two that is nearest to the maximum's
  float max;
  // How many elements equal the maximum, where they are counted apart from the sum; or the power of
  // two's exponent, -inf where all of the sum is nothing.
  float other;
};
static_assert(sizeof(ColumnPart) == kHeldPartBytes);

// 2^exponent of an integer that is not positive, or 0. By an addition, beside which the integer is
// in the low bits: a conversion is waited for.
__device__ __forceinline__ double wide_power(float exponent) {
  const std::uint32_t low_bits = __float_as_uint(exponent + kRoundToInteger);
  return exponent < -1000.0f
             ? 0.0
             : __hiloint2double(static_cast<int>((low_bits << 20) + (1023u << 20)), 0);
}
__device__ __forceinline__ float power_of_two(float exponent) {
  if (exponent < -149.0f) return 0.0f;
  const int e = static_cast<int>(exponent);
  return __int_as_float(e < -126 ? 1 << (e + 149) : (e + 127) << 23);
}
// max * s * log2(e) less the exponent that terms are against.
__device__ __forceinline__ float fraction_of(float max, const RowScaling &s) {
  const float log2 = max * s.log2_hi;
  const float low = fmaf(max, s.log2_lo, fmaf(max, s.log2_hi, -log2));
  return (log2 - ScaledTerms(max, s).exponent()) + low;
}

// Where the parts of a block's rows are, how many a row has and how many lanes merge them.
struct HeldParts {
  const ColumnPart *first;
  int pitch, sum;  // from one row to the next, from one sum to the next
  int count, lanes;

  __device__ __forceinline__ const ColumnPart *of(int r, int which) const {
    return first + which * sum + r * pitch;
  }

  // A sum of row `r`, by as many lanes: each has the parts lane, lane + lanes, ...
  __device__ __forceinline__ ColumnPart merged(int r, int which, int lane,
                                               const RowScaling &scaling, bool is_apart) const {
    const ColumnPart *const of_row = of(r, which);
    float max = -Limits<float>::infinity();
    if (is_apart) {
      float ones = 0.0f;
      double total = 0.0;
#pragma unroll 1
      for (int k = lane; k < count; k += lanes) max = max_or_nan(max, of_row[k].max);
      max = lanes_max_or_nan(max, lanes);
      const ScaledTerms all(finite_or_zero(max), scaling);
#pragma unroll 1
      for (int k = lane; k < count; k += lanes) {
        const ColumnPart part = read(&of_row[k]);
        const float exponent =
            exponent_of(part.max, ScaledTerms(finite_or_zero(part.max), scaling));
        total += part.sum * wide_power(exponent - all.exponent());
        if (part.max == max) {
          ones += part.other;
        } else if (exponent > -Limits<float>::infinity()) {
          // Its maximum is an element like any other.
          total += double(part.other) * double(all(part.max));
        }
      }
      return {sum_of_lanes(total, lanes), max, sum_of_lanes(ones, lanes)};
    }
    // Read once: what has been added up is brought to a larger exponent as one comes. Where no part
    // has any there is nothing to be added up.
    float most = Limits<float>::lowest();
    double total = 0.0;
#pragma unroll 1
    for (int k = lane; k < count; k += lanes) {
      const ColumnPart part = read(&of_row[k]);
      max = max_or_nan(max, part.max);
      const float before = most;
      most = fmaxf(most, part.other);
      total = total * wide_power(before - most) + part.sum * wide_power(part.other - most);
    }
    const float own = most;
    float both[2] = {max, most};
    lanes_max_or_nan(both, lanes);
    total *= wide_power(own - both[1]);
    return {sum_of_lanes(total, lanes), both[0], both[1]};
  }

 private:
  template <typename T>
  static __device__ __forceinline__ T sum_of_lanes(T sum, int lanes) {
#pragma unroll
    for (int step = 1; step < kWarpThreads; step *= 2) {
      if (step < lanes) sum += __shfl_xor_sync(kFullWarp, sum, step);
    }
    return sum;
  }
  static __device__ __forceinline__ ColumnPart read(const ColumnPart *part) {
    const uint4 words = *reinterpret_cast<const uint4 *>(part);
    ColumnPart copy;
    memcpy(&copy, &words, sizeof copy);
    return copy;
  }
};

}  // namespace softmax
