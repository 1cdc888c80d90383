// Rows in shared memory, at any alignment: the columns of a thread, a 4-byte unit at a time.
//
// A unit is one column, or two of a 16-bit type. Neighbouring threads take neighbouring units, so
// shared memory is read and written without bank conflicts wherever a row begins. Which columns a
// thread takes depends on the column number alone.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/numerics.h"
#include "cuda/prim/element.cuh"

namespace softmax {

template <typename X>
constexpr int kUnitCols = sizeof(X) < 4 ? 2 : 1;

// Units that are read before the first is used.
constexpr int kUnitsTogether = 4;

template <typename X>
constexpr int kGroupCols = kUnitsTogether * kUnitCols<X>;

template <typename T>
struct alignas(2 * sizeof(T)) ElementPair {
  T element[2];
};

template <typename T>
__device__ __forceinline__ bool is_pair_aligned(const T *p) {
  return (reinterpret_cast<std::uintptr_t>(p) & (2 * sizeof(T) - 1)) == 0;
}

// The units of `cols` columns that a thread takes: the `first`-th and every `stride`-th from there.
// `pairs`: units of two may be read and written as one.
struct Units {
  int cols;
  int first;
  int stride;
  bool pairs;
};

template <typename X>
__device__ __forceinline__ void load_unit(const X *row, int unit, bool pairs,
                                          AccOf<X> (&value)[kUnitCols<X>]) {
  if constexpr (kUnitCols<X> == 2) {
    if (pairs) {
      const auto pair = reinterpret_cast<const ElementPair<X> *>(row)[unit];
      value[0] = DeviceElement<X>::load(pair.element[0]);
      value[1] = DeviceElement<X>::load(pair.element[1]);
    } else {
      value[0] = load_element(row + 2 * unit);
      value[1] = load_element(row + 2 * unit + 1);
    }
  } else {
    value[0] = load_element(row + unit);
  }
}

template <typename Y, int kCols, typename Acc>
__device__ __forceinline__ void store_unit(Y *row, int unit, bool pairs,
                                           const Acc (&value)[kCols]) {
  if constexpr (kCols == 2) {
    if (pairs) {
      ElementPair<Y> pair;
      pair.element[0] = DeviceElement<Y>::store(value[0]);
      pair.element[1] = DeviceElement<Y>::store(value[1]);
      reinterpret_cast<ElementPair<Y> *>(row)[unit] = pair;
    } else {
      store_element(row + 2 * unit, value[0]);
      store_element(row + 2 * unit + 1, value[1]);
    }
  } else {
    store_element(row + unit, value[0]);
  }
}

// Calls use(unit, whole, value) for the thread's units, kUnitsTogether at a time: value holds the
// columns of unit, unit + stride, .... A group that is not whole has columns past the end, which
// read as -inf: they add nothing to a maximum or a sum.
template <typename X, typename Use>
__device__ __forceinline__ void for_units(const X *row, const Units &units, Use use) {
  constexpr int kCols = kUnitCols<X>;
  using Acc = AccOf<X>;
  const int whole_units = units.cols / kCols;
  const int step = kUnitsTogether * units.stride;
  int unit = units.first;
  for (; unit + (kUnitsTogether - 1) * units.stride < whole_units; unit += step) {
    Acc value[kGroupCols<X>];
#pragma unroll
    for (int i = 0; i < kUnitsTogether; ++i) {
      Acc one[kCols];
      load_unit(row, unit + i * units.stride, units.pairs, one);
#pragma unroll
      for (int c = 0; c < kCols; ++c) value[i * kCols + c] = one[c];
    }
    use(unit, true, value);
  }
  if (unit * kCols >= units.cols) return;
  Acc value[kGroupCols<X>];
#pragma unroll
  for (int i = 0; i < kGroupCols<X>; ++i) {
    const int col = (unit + i / kCols * units.stride) * kCols + i % kCols;
    value[i] = col < units.cols ? load_element(row + col) : -Limits<Acc>::infinity();
  }
  use(unit, false, value);
}

// Writes what for_units gave to `use`.
template <typename X, typename Y, typename Acc>
__device__ __forceinline__ void store_units(Y *row, const Units &units, int unit, bool whole,
                                            const Acc (&value)[kGroupCols<X>]) {
  constexpr int kCols = kUnitCols<X>;
  if (whole) {
#pragma unroll
    for (int i = 0; i < kUnitsTogether; ++i) {
      Acc one[kCols];
#pragma unroll
      for (int c = 0; c < kCols; ++c) one[c] = value[i * kCols + c];
      store_unit<Y, kCols>(row, unit + i * units.stride, units.pairs, one);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kGroupCols<X>; ++i) {
      const int col = (unit + i / kCols * units.stride) * kCols + i % kCols;
      if (col < units.cols) store_element(row + col, value[i]);
    }
  }
}

}  // namespace softmax
