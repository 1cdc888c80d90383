// Reductions over the lanes of a warp: maxima that keep a NaN, and the parts of a row.
//
// Every lane gets the same bits, in an order that is a function of the numbers of lanes and parts
// alone.
#pragma once

#include "core/row_part.h"
#include "cuda/prim/reduce.cuh"

namespace softmax {

// Over groups of `lanes` neighbouring lanes, a power of two that the whole warp agrees on, for
// several rows at once: one question a step, and no row waits for another's shuffles.
template <typename T, int kRows>
__device__ __forceinline__ void lanes_max_or_nan(T (&value)[kRows], int lanes) {
#pragma unroll
  for (int step = kWarpThreads / 2; step > 0; step /= 2) {
    if (step < lanes) {
#pragma unroll
      for (T &v : value) v = max_or_nan(v, __shfl_xor_sync(kFullWarp, v, step));
    }
  }
}
template <typename T>
__device__ __forceinline__ T lanes_max_or_nan(T value, int lanes = kWarpThreads) {
  T one[1] = {value};
  lanes_max_or_nan(one, lanes);
  return one[0];
}

__device__ __forceinline__ WideSum<float> shuffled(const WideSum<float> &sum, int step) {
  return {__shfl_xor_sync(kFullWarp, sum.value, step)};
}
__device__ __forceinline__ WideSum<double> shuffled(const WideSum<double> &sum, int step) {
  WideSum<double> other;
  other.value.hi = __shfl_xor_sync(kFullWarp, sum.value.hi, step);
  other.value.lo = __shfl_xor_sync(kFullWarp, sum.value.lo, step);
  return other;
}

// Of parts with the same maximum in every lane of a row.
template <typename T, int kRows>
__device__ __forceinline__ void lanes_part(RowPart<T> (&part)[kRows], bool is_log, int lanes) {
#pragma unroll
  for (int step = kWarpThreads / 2; step > 0; step /= 2) {
    if (step < lanes) {
#pragma unroll
      for (RowPart<T> &p : part) {
        p.others.add(shuffled(p.others, step));
        if (is_log) p.ones += __shfl_xor_sync(kFullWarp, p.ones, step);
      }
    }
  }
}
template <typename T>
__device__ __forceinline__ RowPart<T> lanes_part(const RowPart<T> &part, bool is_log,
                                                 int lanes = kWarpThreads) {
  RowPart<T> one[1] = {part};
  lanes_part(one, is_log, lanes);
  return one[0];
}

// The union of the parts 0 .. count - 1, which `read` gives: lane i of `lanes` takes parts
// first + i, first + i + stride, .... `limit`: see part_scale.
template <typename T, typename Read>
__device__ __forceinline__ RowPart<T> merge_parts(int lanes, int first, int stride, int count,
                                                  float limit, bool is_log, Read read) {
  const int begin = first + static_cast<int>(threadIdx.x) % lanes;
  T max = -Limits<T>::infinity();
  for (int i = begin; i < count; i += stride) max = max_or_nan(max, read(i).max);
  max = lanes_max_or_nan(max, lanes);
  RowPart<T> row = RowPart<T>::of(max);
  for (int i = begin; i < count; i += stride) {
    RowPart<T> part = read(i);
    part.rescale(max, limit, is_log);
    row.add(part);
  }
  return lanes_part(row, is_log, lanes);
}

// Parts in shared memory, which cannot have initialisers: as bytes.
template <typename T, int kCount>
struct PartSlots {
  alignas(RowPart<T>) unsigned char bytes[kCount * sizeof(RowPart<T>)];

  __device__ __forceinline__ RowPart<T> &operator[](int i) {
    return reinterpret_cast<RowPart<T> *>(bytes)[i];
  }
};

// The least power of two that is >= count, at most 32.
__device__ __forceinline__ int lanes_for(int count) {
  return count >= kWarpThreads ? kWarpThreads : count <= 1 ? 1 : 1 << (32 - __clz(count - 1));
}

}  // namespace softmax
