// The three steps over (a part of) a row that lies in shared memory: maximum, sum, output. For the
// kernels that read a row once: TILE, CLUSTER, GRID.
//
// In float32 and float64 softmax the second step leaves the exponentials where the row was, and the
// third only scales them; in all other cases it computes them again.
#pragma once

#include <type_traits>

#include "cuda/prim/row.cuh"
#include "cuda/prim/units.cuh"

namespace softmax {

// Whether exponentials fit where the input was, without rounding.
template <typename X, typename Y>
constexpr bool kKeepsExp = std::is_same<X, Y>::value && std::is_same<X, AccOf<X>>::value;

// A sum in units with its error, and apart from it the elements that equal the maximum: see TermSum.
// For shared and global memory, hence without initialisers.
template <typename T>
struct alignas(4 * sizeof(T)) PartSum {
  T max;   // of the part; -inf where it has no element above it
  T ones;  // log-softmax only
  T hi;
  T lo;

  static __device__ __forceinline__ PartSum of(T max, const TermSum<T> &sum) {
    return {max, sum.ones.hi, sum.others.hi, sum.others.lo};
  }
};

template <typename X>
__device__ __forceinline__ AccOf<X> staged_max(const X *row, const Units &units) {
  using Acc = AccOf<X>;
  Acc max = -Limits<Acc>::infinity();
  for_units(row, units, [&](int, bool, const auto &value) { max = fmax(max, group_max(value)); });
  return max;
}

// The sum of exp(x - reference) in units; `keep` leaves every exponential, in units, in its place.
template <typename X, typename Y>
__device__ __forceinline__ TermSum<AccOf<X>> staged_sum(X *row, const Units &units,
                                                        AccOf<X> reference, bool is_log,
                                                        bool keep) {
  using Acc = AccOf<X>;
  const ExpFor<X, Y> exp(reference);
  TermSum<Acc> sum;
  for_units(row, units, [&](int unit, bool whole, auto &value) {
    if (is_log) {
      sum.add(value, exp, true);
      return;
    }
    exp.times(value, sum_unit<Acc>(), value);
    if constexpr (kKeepsExp<X, Y>) {
      if (keep) store_units<X>(row, units, unit, whole, value);
    }
    sum.template add_terms<ExpFor<X, Y>::kTermsTogether>(value);
  });
  return sum;
}

// factor * exp(x - max), the factor in two parts; the product's range is wider than its terms'.
template <typename T>
struct Scale {
  T hi;
  T lo;
};

// What the exponentials of a part are multiplied by: exp(part_max - max) / s.
template <typename T>
__device__ __forceinline__ Scale<T> scale_of(T part_max, const RowFactors<T> &row) {
  Scale<T> scale{row.inverse_sum, row.inverse_sum * row.correction};
  const T reference = finite_reference(part_max);
  if (reference != row.max) {
    const T factor = exp_of(raw_difference(reference, row.max));
    const T hi = factor * scale.hi;
    scale.lo = fused_multiply_add(factor, scale.lo, fused_multiply_add(factor, row.inverse_sum, -hi));
    scale.hi = hi;
  }
  return scale;
}

// Writes the outputs of a part whose maximum is `part_max` to `out`, which may be the row itself
// where X and Y are equally wide. `kept`: the row holds exponentials.
template <typename X, typename Y>
__device__ __forceinline__ void staged_output(const X *row, Y *out, const Units &units,
                                              const Units &out_units, AccOf<X> part_max,
                                              const RowFactors<AccOf<X>> &factors, bool is_log,
                                              bool kept) {
  using Acc = AccOf<X>;
  if (is_log) {
    const ShiftedExp<Acc> exp(factors.max);
    for_units(row, units, [&](int unit, bool whole, auto &value) {
#pragma unroll
      for (auto &v : value) v = exp.log_value(v, factors.log_sum);
      store_units<X>(out, out_units, unit, whole, value);
    });
    return;
  }
  const Scale<Acc> scale = scale_of(part_max, factors);
  const ExpFor<X, Y> exp(finite_reference(part_max));
  for_units(row, units, [&](int unit, bool whole, auto &value) {
    if constexpr (sizeof(Y) == 2) {
      exp.times(value, scale.hi, value);
    } else {
      if (!kept) exp.times(value, sum_unit<Acc>(), value);
      // From units last: scale may be as small as the least normal number.
#pragma unroll
      for (auto &v : value) {
        v = fused_multiply_add(v, scale.hi, v * scale.lo) * Acc(0x1p-64);
      }
    }
    store_units<X>(out, out_units, unit, whole, value);
  });
}

}  // namespace softmax
