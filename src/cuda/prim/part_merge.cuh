// Merging the (max, sum) of a row's parts over the lanes of a warp.
#pragma once

#include "cuda/prim/bulk.cuh"
#include "cuda/prim/reduce.cuh"

namespace softmax {

// A part of a row: its maximum, and the sum in units against that, in two parts. Sixteen bytes (32
// in float64), to travel as one.
template <typename T>
struct alignas(4 * sizeof(T)) MergePart {
  T max;
  T hi;
  T lo;

  __device__ __forceinline__ CompensatedSum<T> sum() const {
    return CompensatedSum<T>::of({hi, lo});
  }
};

// The union of the parts first + lane, first + lane + stride, ... below `count`, over the lanes of
// the warp, whose lanes all get the same bits: an order that is a function of these numbers alone.
// A part that is all -inf adds nothing; its reference is the lowest finite number.
template <typename T, typename Read>
__device__ __forceinline__ MergePart<T> merge_parts(int first, int stride, int count, Read read) {
  const int begin = first + static_cast<int>(threadIdx.x) % kWarpThreads;
  T max = -Limits<T>::infinity();
  for (int i = begin; i < count; i += stride) max = fmax(max, read(i).max);
  max = lanes_max<kWarpThreads>(max);
  CompensatedSum<T> sum;
  for (int i = begin; i < count; i += stride) {
    const MergePart<T> part = read(i);
    CompensatedSum<T> scaled = part.sum();
    // Equal ones are not subtracted: they may be infinite.
    if (part.max != max) {
      scaled.times(exp_in_units(raw_difference(finite_reference(part.max), finite_reference(max))));
    }
    sum.add(scaled);
  }
  sum = lanes_sum<kWarpThreads>(sum);
  return {max, sum.hi, sum.lo};
}

}  // namespace softmax
