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

// 2^exponent of an integer that is not positive, or 0.
__device__ __forceinline__ double wide_power(float exponent) {
  return exponent < -1000.0f ? 0.0 : __hiloint2double((static_cast<int>(exponent) + 1023) << 20, 0);
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
    float most = -Limits<float>::infinity();
#pragma unroll 1
    for (int k = lane; k < count; k += lanes) {
      max = max_or_nan(max, of_row[k].max);
      most = fmaxf(most, of_row[k].other);
    }
    max = lanes_max_or_nan(max, lanes);
    double total = 0.0;
    float ones = 0.0f;
    if (is_apart) {
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
    } else {
      // Where no part has an exponent there is nothing to be added up.
      most = fmaxf(lanes_max_or_nan(most, lanes), Limits<float>::lowest());
#pragma unroll 1
      for (int k = lane; k < count; k += lanes) {
        const ColumnPart part = read(&of_row[k]);
        total += part.sum * wide_power(part.other - most);
      }
    }
#pragma unroll
    for (int step = 1; step < kWarpThreads; step *= 2) {
      if (step >= lanes) continue;
      total += __shfl_xor_sync(kFullWarp, total, step);
      if (is_apart) ones += __shfl_xor_sync(kFullWarp, ones, step);
    }
    return {total, max, is_apart ? ones : most};
  }

 private:
  static __device__ __forceinline__ ColumnPart read(const ColumnPart *part) {
    const uint4 words = *reinterpret_cast<const uint4 *>(part);
    ColumnPart copy;
    memcpy(&copy, &words, sizeof copy);
    return copy;
  }
};

}  // namespace softmax
