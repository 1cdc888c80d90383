// The three steps over a row that lies in shared memory, by a group of lanes: maximum, sum, output.
//
// Lanes take neighbouring 4-byte units of the row (one column, or two of a 16-bit type; one of 8
// bytes). In float32 and float64 softmax the second step leaves the exponentials where the row was,
// and the third only scales them; in all other cases it computes them again.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/prim/held.cuh"
#include "cuda/prim/part_merge.cuh"

namespace softmax {

template <typename X>
constexpr int kUnitCols = sizeof(X) < 4 ? 2 : 1;

template <typename T>
struct alignas(2 * sizeof(T)) ElementPair {
  T element[2];
};

template <typename T>
__device__ __forceinline__ bool is_pair_aligned(const T *p) {
  return (reinterpret_cast<std::uintptr_t>(p) & (2 * sizeof(T) - 1)) == 0;
}

template <typename T>
__device__ __forceinline__ void store_pair(T *to, T first, T second) {
  *reinterpret_cast<ElementPair<T> *>(to) = {{first, second}};
}

// Whether exponentials fit where the input was, without rounding.
template <typename X, typename Y>
constexpr bool kKeepsExp = std::is_same<X, Y>::value &&std::is_same<X, AccOf<X>>::value;

// Units that are read before the first is used.
constexpr int kUnitsTogether = 4;

template <typename X>
constexpr int kGroupCols = kUnitsTogether *kUnitCols<X>;

// The columns of one lane of `lanes`. `pairs`: units of two may be read as one.
struct LaneUnits {
  int cols;
  int lane;
  int lanes;
  bool pairs;
};

// Calls use(col, whole, value) for the lane's units, kUnitsTogether at a time: value holds the
// columns from col on of each of the units. A group that is not whole has columns past the end,
// which read as -inf: they add nothing to a maximum or a sum.
template <typename X, typename Use>
__device__ __forceinline__ void for_units(const X *row, const LaneUnits &units, Use use) {
  constexpr int kCols = kUnitCols<X>;
  using Acc = AccOf<X>;
  const int stride = units.lanes * kCols;
  const int last = kUnitsTogether * stride - stride + (kCols - 1);  // of a group, from its first
  int col = units.lane * kCols;
  for (; col + last < units.cols; col += kUnitsTogether * stride) {
    Acc value[kGroupCols<X>];
#pragma unroll
    for (int i = 0; i < kUnitsTogether; ++i) {
      const X *const unit = row + col + i * stride;
      if (kCols == 2 && units.pairs) {
        const auto pair = *reinterpret_cast<const ElementPair<X> *>(unit);
        value[i * kCols] = DeviceElement<X>::load(pair.element[0]);
        value[i * kCols + kCols - 1] = DeviceElement<X>::load(pair.element[1]);
      } else {
#pragma unroll
        for (int c = 0; c < kCols; ++c) value[i * kCols + c] = load_element(unit + c);
      }
    }
    use(col, true, value);
  }
  if (col >= units.cols) return;
  Acc value[kGroupCols<X>];
#pragma unroll
  for (int i = 0; i < kGroupCols<X>; ++i) {
    const int at = col + i / kCols * stride + i % kCols;
    value[i] = at < units.cols ? load_element(row + at) : -Limits<Acc>::infinity();
  }
  use(col, false, value);
}

// Writes what for_units gave to `use`.
template <typename X, typename Y, typename Acc>
__device__ __forceinline__ void store_units(Y *row, const LaneUnits &units, bool pairs, int col,
                                            bool whole, const Acc (&value)[kGroupCols<X>]) {
  constexpr int kCols = kUnitCols<X>;
  const int stride = units.lanes * kCols;
  if (whole) {
#pragma unroll
    for (int i = 0; i < kUnitsTogether; ++i) {
      Y *const unit = row + col + i * stride;
      if (kCols == 2 && pairs) {
        store_pair(unit, DeviceElement<Y>::store(value[i * kCols]),
                   DeviceElement<Y>::store(value[i * kCols + kCols - 1]));
      } else {
#pragma unroll
        for (int c = 0; c < kCols; ++c) store_element(unit + c, value[i * kCols + c]);
      }
    }
  } else {
#pragma unroll
    for (int i = 0; i < kGroupCols<X>; ++i) {
      const int at = col + i / kCols * stride + i % kCols;
      if (at < units.cols) store_element(row + at, value[i]);
    }
  }
}

// Calls use(make), make(value) being what turns a group's values into their exact terms.
template <typename X, typename Use>
__device__ __forceinline__ void with_terms(AccOf<X> max, Use use) {
  using Acc = AccOf<X>;
  if constexpr (sizeof(Acc) == 4) {
    if (is_near(max, kNearLimit)) {
      const NearTerms terms(max);
      use([&](auto &value) {
#pragma unroll
        for (auto &v : value) v = terms(v);
      });
      return;
    }
  }
  const ShiftedExp<Acc> exp(finite_reference(max));
  use([&](auto &value) {
    if constexpr (sizeof(Acc) == 4) {
#pragma unroll
      for (auto &v : value) v = exp.far_times(v, sum_unit<Acc>());
    } else {
      exp.times(value, sum_unit<Acc>(), value);
    }
  });
}

// The largest or a NaN.
template <typename X>
__device__ __forceinline__ AccOf<X> staged_max(const X *row, const LaneUnits &units) {
  AccOf<X> max = -Limits<AccOf<X>>::infinity();
  for_units(row, units, [&](int, bool, const auto &value) {
    max = max_or_nan(max, tree_max<0, kGroupCols<X>>(value));
  });
  return max;
}

template <typename X, typename Y>
__device__ __forceinline__ RowPart<AccOf<X>> staged_sum(X *row, const LaneUnits &units,
                                                        AccOf<X> max, bool is_log) {
  using Acc = AccOf<X>;
  RowPart<Acc> part = RowPart<Acc>::of(max);
  const ExpFor<X, Y> exp(finite_reference(max));
  if (is_log) {
    for_units(row, units, [&](int, bool, const auto &value) {
      std::remove_const_t<std::remove_reference_t<decltype(value)>> term;
      terms_apart(value, exp, term, &part.ones);
      add_terms<ExpFor<X, Y>::kTermsTogether>(part.others, term);
    });
    return part;
  }
  const auto sum_up = [&](auto make) {
    for_units(row, units, [&](int col, bool whole, auto &value) {
      make(value);
      if constexpr (kKeepsExp<X, Y>) {
        store_units<X>(row, units, units.pairs, col, whole, value);
      }
      add_terms<ExpFor<X, Y>::kTermsTogether>(part.others, value);
    });
  };
  if constexpr (sizeof(Y) == 2) {
    const CoarseTerms terms(max);
    sum_up([&](auto &value) { terms.make(value, value); });
  } else {
    with_terms<X>(max, sum_up);
  }
  return part;
}

// Writes the outputs to `out`, which may be the row itself where X and Y are equally wide.
template <typename X, typename Y>
__device__ __forceinline__ void staged_output(const X *row, Y *out, const LaneUnits &units,
                                              bool out_pairs, AccOf<X> max,
                                              const RowFactors<AccOf<X>> &factors, bool is_log) {
  using Acc = AccOf<X>;
  const auto write = [&](auto output) {
    for_units(row, units, [&](int col, bool whole, auto &value) {
      output(value);
      store_units<X>(out, units, out_pairs, col, whole, value);
    });
  };
  if (is_log) {
    const ShiftedExp<Acc> exp(factors.max);
    write([&](auto &value) {
#pragma unroll
      for (auto &v : value) v = exp.log_value(v, factors.log_sum);
    });
  } else if constexpr (sizeof(Y) == 2) {
    const CoarseOutput output(factors.max, factors.inverse_sum);
    write([&](auto &value) { output.make(value); });
  } else {
    const TermFactor<Acc> factor = term_factor(factors, {sum_unit<Acc>(), Acc(0)});
    const auto scale = [&](auto &value) {
#pragma unroll
      for (auto &v : value) v = factor.times(v * factor.before);
    };
    if constexpr (kKeepsExp<X, Y>) {
      write(scale);
    } else {
      with_terms<X>(max, [&](auto make) {
        write([&](auto &value) {
          make(value);
          scale(value);
        });
      });
    }
  }
}

}  // namespace softmax
