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

// The columns of one lane, a unit beside the other.
//
// Where the output has 16 bits the elements stay as they were read, two in a register, and their
// exponentials are computed twice: they are cheap, and twice the registers would not be. Else they
// are converted at once, and exponentials take their place.
template <typename X, typename Y>
struct Held {
  static constexpr bool kRaw = sizeof(Y) == 2;
  static_assert(!kRaw || std::is_same<X, Y>::value, "outputs take the place of raw inputs");
  using Acc = AccOf<X>;

  std::conditional_t<kRaw, ElementPair<X>, Acc> value[kRaw ? kHeldUnits<X> : kHeldCols<X>];

  __device__ __forceinline__ Acc get(int i) const {
    if constexpr (kRaw) {
      return DeviceElement<X>::load(value[i / 2].element[i % 2]);
    } else {
      return value[i];
    }
  }
  __device__ __forceinline__ void set(int i, X element) {
    if constexpr (kRaw) {
      value[i / 2].element[i % 2] = element;
    } else {
      value[i] = DeviceElement<X>::load(element);
    }
  }
  // Makes the compiler convert raw elements again instead of keeping what it converted before.
  __device__ __forceinline__ void forget() {
    if constexpr (kRaw) {
#pragma unroll
      for (auto &pair : value) {
        std::uint32_t word;
        memcpy(&word, &pair, sizeof word);
        asm volatile("" : "+r"(word));
        memcpy(&pair, &word, sizeof word);
      }
    }
  }
  // After held_output.
  __device__ __forceinline__ Y output(int i) const {
    if constexpr (kRaw) {
      return value[i / 2].element[i % 2];
    } else {
      return DeviceElement<Y>::store(value[i]);
    }
  }
};

// Which lane of how many that share a row's or a segment's columns. kLanes is the number where the
// compiler knows it, or 0.
template <int kLanes>
struct LaneOf {
  int lane;
  int run_time_lanes;

  __device__ __forceinline__ int lanes() const { return kLanes != 0 ? kLanes : run_time_lanes; }
};

__device__ __forceinline__ LaneOf<kWarpThreads> lane_of_warp() {
  return {static_cast<int>(threadIdx.x) % kWarpThreads, kWarpThreads};
}

// Calls use(unit, offset) for each unit of a lane: how far it is from the lane's first column.
template <typename X, int kLanes, typename Use>
__device__ __forceinline__ void for_units(const LaneOf<kLanes> &who, Use use) {
  const int step = who.lanes() * kUnitCols<X>;
#pragma unroll
  for (int unit = 0; unit < kHeldUnits<X>; ++unit) use(unit, unit * step);
}

// Reads `cols` columns from `x` on. Columns past the end read as -inf, which adds nothing to a
// maximum or a sum. `pairs`: x is aligned to two elements.
template <typename X, typename Y, int kLanes>
__device__ __forceinline__ void load_held(const X *x, const LaneOf<kLanes> &who, int cols,
                                          bool pairs, Held<X, Y> &held) {
  const X nothing = DeviceElement<X>::store(-Limits<AccOf<X>>::infinity());
  const X *const mine = x + who.lane * kUnitCols<X>;
  const int left = cols - who.lane * kUnitCols<X>;
  if (kUnitCols<X> == 2 && pairs && cols % 2 == 0) {
    for_units<X>(who, [&](int unit, int offset) {
      ElementPair<X> pair{{nothing, nothing}};
      if (offset < left) pair = *reinterpret_cast<const ElementPair<X> *>(mine + offset);
      held.set(unit * 2, pair.element[0]);
      held.set(unit * 2 + 1, pair.element[1]);
    });
  } else {
    for_units<X>(who, [&](int unit, int offset) {
#pragma unroll
      for (int i = 0; i < kUnitCols<X>; ++i) {
        held.set(unit * kUnitCols<X> + i, offset + i < left ? mine[offset + i] : nothing);
      }
    });
  }
}

template <typename Y>
__device__ __forceinline__ void store_pair(Y *to, Y first, Y second) {
  *reinterpret_cast<ElementPair<Y> *>(to) = {{first, second}};
}

// Writes what load_held read. `pairs`: y is aligned to two elements.
template <typename X, typename Y, int kLanes>
__device__ __forceinline__ void store_held(Y *y, const LaneOf<kLanes> &who, int cols, bool pairs,
                                           const Held<X, Y> &held) {
  Y *const mine = y + who.lane * kUnitCols<X>;
  const int left = cols - who.lane * kUnitCols<X>;
  if (kUnitCols<X> == 2 && pairs && cols % 2 == 0) {
    for_units<X>(who, [&](int unit, int offset) {
      if (offset < left) {
        store_pair(mine + offset, held.output(unit * 2), held.output(unit * 2 + 1));
      }
    });
  } else {
    for_units<X>(who, [&](int unit, int offset) {
#pragma unroll
      for (int i = 0; i < kUnitCols<X>; ++i) {
        if (offset + i < left) mine[offset + i] = held.output(unit * kUnitCols<X> + i);
      }
    });
  }
}

// The same for a whole warp and 16-bit outputs that are not aligned to two elements: a word is made
// of this lane's second column and the next lane's first, so that memory is still written in words.
template <typename X, typename Y>
__device__ __forceinline__ void store_held_shifted(Y *y, int cols, const Held<X, Y> &held) {
  static_assert(Held<X, Y>::kRaw, "16-bit outputs");
  const LaneOf<kWarpThreads> who = lane_of_warp();
  Y *const mine = y + who.lane * 2 + 1;
  const int left = cols - who.lane * 2;
  if (who.lane == 0 && cols > 0) y[0] = held.output(0);
  for_units<X>(who, [&](int unit, int offset) {
    // Lane 31's next column is lane 0's in the unit after; nobody else asks lane 0.
    const bool last_unit = unit + 1 == kHeldUnits<X>;
    const Y after = held.output(last_unit ? unit * 2 : unit * 2 + 2);
    const Y next = __shfl_sync(kFullWarp, who.lane == 0 ? after : held.output(unit * 2),
                               (who.lane + 1) % kWarpThreads);
    const Y second = held.output(unit * 2 + 1);
    if (offset + 2 < left && !(last_unit && who.lane == kWarpThreads - 1)) {
      store_pair(mine + offset, second, next);
    } else if (offset + 1 < left) {
      mine[offset] = second;
    }
  });
}

// ---- the steps of a segment ----

__device__ __forceinline__ ElementPair<__half> pair_max(ElementPair<__half> a,
                                                        ElementPair<__half> b) {
  const __half2 larger =
      __hmax2(__halves2half2(a.element[0], a.element[1]), __halves2half2(b.element[0], b.element[1]));
  return {{__low2half(larger), __high2half(larger)}};
}
__device__ __forceinline__ ElementPair<__nv_bfloat16> pair_max(ElementPair<__nv_bfloat16> a,
                                                               ElementPair<__nv_bfloat16> b) {
  const __nv_bfloat162 larger = __hmax2(__halves2bfloat162(a.element[0], a.element[1]),
                                        __halves2bfloat162(b.element[0], b.element[1]));
  return {{__low2bfloat16(larger), __high2bfloat16(larger)}};
}

// The maximum of the elements that are not NaN; -inf where there are none.
template <typename X, typename Y>
__device__ __forceinline__ AccOf<X> held_max(const Held<X, Y> &held) {
  // As a tree: the chain would be as long as the lane has columns.
  constexpr int kWays = 4;
  if constexpr (Held<X, Y>::kRaw) {
    ElementPair<X> max[kWays];
#pragma unroll
    for (int i = 0; i < kWays; ++i) max[i] = held.value[i];
#pragma unroll
    for (int i = kWays; i < kHeldUnits<X>; ++i) {
      max[i % kWays] = pair_max(max[i % kWays], held.value[i]);
    }
    const ElementPair<X> pair = pair_max(pair_max(max[0], max[1]), pair_max(max[2], max[3]));
    return fmax(fmax(DeviceElement<X>::load(pair.element[0]),
                     DeviceElement<X>::load(pair.element[1])),
                -Limits<AccOf<X>>::infinity());
  } else {
    AccOf<X> max[kWays];
#pragma unroll
    for (int i = 0; i < kWays; ++i) max[i] = fmax(held.value[i], -Limits<AccOf<X>>::infinity());
#pragma unroll
    for (int i = kWays; i < kHeldCols<X>; ++i) max[i % kWays] = fmax(max[i % kWays], held.value[i]);
    return fmax(fmax(max[0], max[1]), fmax(max[2], max[3]));
  }
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

// This lane's sum of exp(x - max), in units. In softmax the exponentials take the elements' place,
// except where those are raw.
template <typename X, typename Y>
__device__ __forceinline__ RowPart<AccOf<X>> held_sum(Held<X, Y> &held, int active, AccOf<X> max,
                                                      bool is_log) {
  using Acc = AccOf<X>;
  using Exp = ExpFor<X, Y>;
  constexpr int kTogether = Exp::kTermsTogether;
  const Acc reference = finite_reference(max);
  const Exp exp(reference);
  RowPart<Acc> part{max, Acc(0), {}};
  held.forget();
  for_active<X, kTogether>(active, [&](int first) {
    Acc term[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) term[i] = held.get(first + i);
    exp.times(term, sum_unit<Acc>(), term);
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      if (is_log) {
        // The reference's own terms apart: the unit each, or NaN where both are infinite.
        const bool is_one = held.get(first + i) == reference;
        part.ones += is_one ? term[i] : Acc(0);
        term[i] = is_one ? Acc(0) : term[i];
      } else if constexpr (!Held<X, Y>::kRaw) {
        held.value[first + i] = term[i];
      }
    }
    add_terms<kTogether>(part.others, term);
  });
  return part;
}

// From what held_sum left to the outputs.
template <typename X, typename Y>
__device__ __forceinline__ void held_output(Held<X, Y> &held, int active, AccOf<X> part_max,
                                            const RowFactors<AccOf<X>> &factors, bool is_log) {
  using Acc = AccOf<X>;
  constexpr int kTogether = 4;
  held.forget();
  const auto for_each = [&](auto output) {
    for_active<X, kTogether>(active, [&](int first) {
#pragma unroll
      for (int i = first; i < first + kTogether; ++i) {
        const Acc y = output(held.get(i));
        if constexpr (Held<X, Y>::kRaw) {
          held.value[i / 2].element[i % 2] = DeviceElement<Y>::store(y);
        } else {
          held.value[i] = y;
        }
      }
    });
  };
  if (is_log) {
    const ShiftedExp<Acc> exp(factors.max);
    for_each([&](Acc x) { return exp.log_value(x, factors.log_sum); });
  } else if constexpr (Held<X, Y>::kRaw) {
    for_each(CoarseOutput(factors.max, factors.inverse_sum));
  } else {
    const Scale<Acc> scale = scale_of(part_max, factors);
    // From units last: scale may be as small as the least normal number.
    for_each([&](Acc term) {
      return fused_multiply_add(term, scale.hi, term * scale.lo) * Acc(0x1p-64);
    });
  }
}

}  // namespace softmax
