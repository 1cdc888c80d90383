// A segment: the run of a row's columns that one warp holds in registers, read from shared memory
// and written to global memory at any alignment.
//
// Lanes take neighbouring 4-byte units (one column, or two of a 16-bit type; one of 8 bytes), so
// shared memory is read without bank conflicts and global memory written in whole lines wherever a
// row begins. Which columns a lane takes depends on the column number alone.
#pragma once

#include <cstdint>
#include <type_traits>


#include "cuda/prim/reduce.cuh"
#include "cuda/prim/row.cuh"

namespace softmax {

template <typename X>
constexpr int kUnitCols = sizeof(X) < 4 ? 2 : 1;

// 64 bytes a lane, 2 KB a warp.
template <typename X>
constexpr int kHeldUnits = 64 / (kUnitCols<X> * static_cast<int>(sizeof(X)));

template <typename X>
constexpr int kHeldCols = kHeldUnits<X> * kUnitCols<X>;  // a lane's

template <typename T>
struct alignas(2 * sizeof(T)) ElementPair {
  T element[2];
};

template <typename T>
__device__ __forceinline__ bool is_pair_aligned(const T *p) {
  return (reinterpret_cast<std::uintptr_t>(p) & (2 * sizeof(T) - 1)) == 0;
}

// Whether exponentials fit where the input was, without rounding.
template <typename X, typename Y>
constexpr bool kKeepsExp = std::is_same<X, Y>::value && std::is_same<X, AccOf<X>>::value;

// The columns of one lane, a unit beside the other, as numbers to compute with. Exponentials take
// their place.
template <typename X>
struct Held {
  AccOf<X> value[kHeldCols<X>];
};

// From one unit of a lane to its next, in columns.
template <typename X>
constexpr int kUnitStep = kWarpThreads * kUnitCols<X>;

// The segment's columns from the lane's first on.
template <typename X>
__device__ __forceinline__ int columns_left(int cols) {
  return cols - static_cast<int>(threadIdx.x) % kWarpThreads * kUnitCols<X>;
}
template <typename X, typename T>
__device__ __forceinline__ T *lane_begin(T *segment) {
  return segment + static_cast<int>(threadIdx.x) % kWarpThreads * kUnitCols<X>;
}

// Reads a segment of `cols` columns. Columns past the end read as -inf, which adds nothing to a
// maximum or a sum. `pairs`: x is aligned to two elements. `full`: there is no end.
template <typename X>
__device__ __forceinline__ void load_held(const X *x, int cols, bool pairs, bool full,
                                          Held<X> &held) {
  const AccOf<X> nothing = -Limits<AccOf<X>>::infinity();
  const X *const mine = lane_begin<X>(x);
  const int left = full ? kUnitStep<X> * kHeldUnits<X> : columns_left<X>(cols);
  if constexpr (kUnitCols<X> == 2) {
    if (pairs && cols % 2 == 0) {
#pragma unroll
      for (int unit = 0; unit < kHeldUnits<X>; ++unit) {
        const X none = DeviceElement<X>::store(nothing);
        ElementPair<X> pair{{none, none}};
        if (unit * kUnitStep<X> < left) {
          pair = *reinterpret_cast<const ElementPair<X> *>(mine + unit * kUnitStep<X>);
        }
        held.value[unit * 2] = DeviceElement<X>::load(pair.element[0]);
        held.value[unit * 2 + 1] = DeviceElement<X>::load(pair.element[1]);
      }
      return;
    }
  } else if (full) {
#pragma unroll
    for (int unit = 0; unit < kHeldUnits<X>; ++unit) {
      held.value[unit] = load_element(mine + unit * kUnitStep<X>);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kHeldCols<X>; ++i) {
    const int col = i / kUnitCols<X> * kUnitStep<X> + i % kUnitCols<X>;
    held.value[i] = col < left ? load_element(mine + col) : nothing;
  }
}

template <typename Y>
__device__ __forceinline__ void store_pair(Y *to, Y first, Y second) {
  *reinterpret_cast<ElementPair<Y> *>(to) = {{first, second}};
}

template <typename X, typename Y>
__device__ __forceinline__ void store_shifted(Y *mine, int left, const Held<X> &held) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpThreads;
  if (lane == 0 && left > 0) store_element(mine, held.value[0]);
#pragma unroll
  for (int unit = 0; unit < kHeldUnits<X>; ++unit) {
    // Lane 31's next column is lane 0's in the unit after; nobody else asks lane 0.
    const bool last_unit = unit + 1 == kHeldUnits<X>;
    const AccOf<X> after = held.value[last_unit ? unit * 2 : unit * 2 + 2];
    const AccOf<X> next =
        __shfl_sync(kFullWarp, lane == 0 ? after : held.value[unit * 2], (lane + 1) % kWarpThreads);
    const Y second = DeviceElement<Y>::store(held.value[unit * 2 + 1]);
    Y *const to = mine + unit * kUnitStep<X> + 1;
    if (unit * kUnitStep<X> + 2 < left && !(last_unit && lane == kWarpThreads - 1)) {
      store_pair(to, second, DeviceElement<Y>::store(next));
    } else if (unit * kUnitStep<X> + 1 < left) {
      *to = second;
    }
  }
}

// Writes what load_held read. `pairs`: y is aligned to two elements. Where outputs of 16 bits are
// not, a word is made of this lane's second column and the next lane's first, so that memory is
// still written in words.
template <typename X, typename Y>
__device__ __forceinline__ void store_held(Y *y, int cols, bool pairs, bool full,
                                           const Held<X> &held) {
  Y *const mine = lane_begin<X>(y);
  const int left = full ? kUnitStep<X> * kHeldUnits<X> : columns_left<X>(cols);
  if constexpr (kUnitCols<X> == 2) {
    if (pairs && cols % 2 == 0) {
#pragma unroll
      for (int unit = 0; unit < kHeldUnits<X>; ++unit) {
        if (unit * kUnitStep<X> < left) {
          store_pair(mine + unit * kUnitStep<X>, DeviceElement<Y>::store(held.value[unit * 2]),
                     DeviceElement<Y>::store(held.value[unit * 2 + 1]));
        }
      }
      return;
    }
    if constexpr (sizeof(Y) == 2) {
      if (!pairs) {
        store_shifted(mine, left, held);
        return;
      }
    }
  } else if (full) {
#pragma unroll
    for (int unit = 0; unit < kHeldUnits<X>; ++unit) {
      store_element(mine + unit * kUnitStep<X>, held.value[unit]);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kHeldCols<X>; ++i) {
    const int col = i / kUnitCols<X> * kUnitStep<X> + i % kUnitCols<X>;
    if (col < left) store_element(mine + col, held.value[i]);
  }
}

// ---- the steps of a segment ----

// The maximum of the elements that are not NaN; -inf where there are none.
template <typename X>
__device__ __forceinline__ AccOf<X> held_max(const Held<X> &held) {
  // As a tree: the chain would be as long as the lane has columns.
  constexpr int kWays = 4;
  AccOf<X> max[kWays];
#pragma unroll
  for (int i = 0; i < kWays; ++i) max[i] = held.value[i];
#pragma unroll
  for (int i = kWays; i < kHeldCols<X>; ++i) max[i % kWays] = fmax(max[i % kWays], held.value[i]);
  return fmax(fmax(fmax(max[0], max[1]), fmax(max[2], max[3])), -Limits<AccOf<X>>::infinity());
}

// Calls use(first) for the lane's columns, kTogether at a time, up to the `active` that the fullest
// lane has. The same branches in every lane.
template <typename X, int kTogether, typename Use>
__device__ __forceinline__ void for_active(int active, Use use) {
#pragma unroll
  for (int first = 0; first < kHeldCols<X>; first += kTogether) {
    if (first < active) use(first);
  }
}

// This lane's sum of exp(x - max), in units. In softmax the exponentials take the elements' place.
template <typename X, typename Y>
__device__ __forceinline__ RowPart<AccOf<X>> held_sum(Held<X> &held, int active, AccOf<X> max,
                                                      bool is_log) {
  using Acc = AccOf<X>;
  using Exp = ExpFor<X, Y>;
  constexpr int kTogether = Exp::kTermsTogether;
  const Acc reference = finite_reference(max);
  const Exp exp(reference);
  RowPart<Acc> part{max, Acc(0), {}};
  for_active<X, kTogether>(active, [&](int first) {
    Acc term[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) term[i] = held.value[first + i];
    exp.times(term, sum_unit<Acc>(), term);
    if (is_log) {
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        // The reference's own terms apart: the unit each, or NaN where both are infinite.
        const bool is_one = held.value[first + i] == reference;
        part.ones += is_one ? term[i] : Acc(0);
        term[i] = is_one ? Acc(0) : term[i];
      }
    } else {
#pragma unroll
      for (int i = 0; i < kTogether; ++i) held.value[first + i] = term[i];
    }
    add_terms<kTogether>(part.others, term);
  });
  return part;
}

// What a thread needs to write its outputs: see OutputFactors' makers.
template <typename T>
struct OutputFactors {
  T max;      // of the row
  T log_sum;  // log-softmax
  Scale<T> scale;  // softmax: of the terms, from units
  T after;    // and what is left of that, exactly: 1, or 2^-64 where scale is very small
};

// For terms against part_max.
template <typename T>
SOFTMAX_HD OutputFactors<T> output_factors(T part_max, const RowFactors<T> &row) {
  Scale<T> scale = scale_of(part_max, row);
  const bool early = !(scale.hi < T(0x1p-60));
  const T unit = early ? T(0x1p-64) : T(1);
  return {row.max, row.log_sum, {scale.hi * unit, scale.lo * unit}, early ? T(1) : T(0x1p-64)};
}

// From what held_sum left to the outputs.
template <typename X, typename Y>
__device__ __forceinline__ void held_output(Held<X> &held, int active,
                                            const OutputFactors<AccOf<X>> &factors, bool is_log) {
  using Acc = AccOf<X>;
  constexpr int kTogether = 4;
  const auto for_each = [&](auto output) {
    for_active<X, kTogether>(active, [&](int first) {
#pragma unroll
      for (int i = first; i < first + kTogether; ++i) held.value[i] = output(held.value[i]);
    });
  };
  const Scale<Acc> scale = factors.scale;
  if (is_log) {
    const ShiftedExp<Acc> exp(factors.max);
    for_each([&](Acc x) { return exp.log_value(x, factors.log_sum); });
    return;
  }
  if constexpr (sizeof(Y) == 2) {
    for_each([&](Acc term) { return term * scale.hi; });
  } else {
    for_each([&](Acc term) { return fused_multiply_add(term, scale.hi, term * scale.lo); });
  }
  if (factors.after != Acc(1)) for_each([&](Acc y) { return y * factors.after; });
}

}  // namespace softmax
