// The passes over a part of a row: its maximum, its sum, its outputs. Compiled once for each SIMD
// target. Lanes belong to columns by their index from the part's start, whatever the alignment.
#if defined(SOFTMAX_CPU_PARTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SOFTMAX_CPU_PARTS_INL_H
#undef SOFTMAX_CPU_PARTS_INL_H
#else
#define SOFTMAX_CPU_PARTS_INL_H
#endif

#include "cpu/exp-inl.h"
#include "cpu/kernels.h"
#include "cpu/row_state.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace softmax {
namespace HWY_NAMESPACE {

// Sums in each lane whose rounding errors are kept.
template <class D>
struct LaneSums {
  hn::Vec<D> hi;
  hn::Vec<D> lo;
};

// a + b exactly; for |a| >= |b| in every lane (Dekker), so that three operations do.
template <class D>
HWY_INLINE void add_smaller(LaneSums<D> &sum, hn::Vec<D> term) {
  const auto total = hn::Add(sum.hi, term);
  sum.lo = hn::Add(sum.lo, hn::Sub(term, hn::Sub(total, sum.hi)));
  sum.hi = total;
}

// The same for any two (Knuth).
template <class D>
HWY_INLINE void add_any(LaneSums<D> &sum, hn::Vec<D> term) {
  const auto total = hn::Add(sum.hi, term);
  const auto seen = hn::Sub(total, sum.hi);
  const auto error = hn::Add(hn::Sub(sum.hi, hn::Sub(total, seen)), hn::Sub(term, seen));
  sum.lo = hn::Add(sum.lo, error);
  sum.hi = total;
}

// The sum of all lanes, with compensation: halves are added until one lane is left.
template <class D>
HWY_INLINE CompensatedSum<double> sum_of_lanes(D d, const LaneSums<D> &sum) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    CompensatedSum<double> total;
    total.hi = hn::GetLane(sum.hi);
    total.lo = hn::GetLane(sum.lo);
    (void)d;
    return total;
  } else {
#if HWY_TARGET != HWY_SCALAR
    const hn::Half<D> half;
    LaneSums<hn::Half<D>> folded{hn::LowerHalf(half, sum.hi),
                                 hn::Add(hn::LowerHalf(half, sum.lo), hn::UpperHalf(half, sum.lo))};
    add_any(folded, hn::UpperHalf(half, sum.hi));
    return sum_of_lanes(half, folded);
#endif
  }
}

template <typename X, typename Y>
struct Part {
  using T = typename Element<X>::Acc;
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  using Traits = ExpTraits<T>;
  static constexpr bool kPrecise = sizeof(Y) >= 4;
  using General = DifferenceExp<kPrecise, D>;
  using Fast = Log2Exp<kPrecise, D>;

  static HWY_INLINE std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(D())); }

  // Where a NaN is among the elements, any value.
  static HWY_INLINE T max(const X *x, std::int64_t cols) {
    const D d;
    const std::int64_t step = lanes();
    V m0 = hn::Set(d, -Limits<T>::infinity());
    V m1 = m0;
    V m2 = m0;
    V m3 = m0;
    std::int64_t j = 0;
    for (; j + 4 * step <= cols; j += 4 * step) {
      m0 = hn::Max(m0, Elements<X>::load(d, x + j));
      m1 = hn::Max(m1, Elements<X>::load(d, x + j + step));
      m2 = hn::Max(m2, Elements<X>::load(d, x + j + 2 * step));
      m3 = hn::Max(m3, Elements<X>::load(d, x + j + 3 * step));
    }
    for (; j + step <= cols; j += step) m0 = hn::Max(m0, Elements<X>::load(d, x + j));
    if (j < cols) m1 = hn::Max(m1, load_tail(x + j, cols - j));
    return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(m0, m1), hn::Max(m2, m3))));
  }

  // The sum for softmax, in terms: exp(x_j - max) times the row's unit. kStore: the terms, times
  // kScale, go to `terms`, which may be x. The input `ahead` bytes past x is fetched meanwhile,
  // unless that is 0.
  template <bool kStore>
  static HWY_INLINE PartSum sum(const X *x, std::int64_t cols, T max, T *terms,
                                std::int64_t ahead) {
    if constexpr (Fast::kExists) {
      if (Fast::accepts(max)) return sum_of<kStore>(Fast(hn::Set(D(), max)), x, cols, terms, ahead);
    }
    return sum_of<kStore>(General(hn::Set(D(), max)), x, cols, terms, ahead);
  }

  // The sum for log-softmax, with the elements that equal max kept apart.
  static HWY_INLINE PartSum sum_log(const X *x, std::int64_t cols, T max, std::int64_t ahead) {
    const D d;
    const std::int64_t step = lanes();
    const V max_v = hn::Set(d, max);
    LaneSums<D> sums{hn::Zero(d), hn::Zero(d)};
    V maxima = hn::Zero(d);
    std::int64_t j = 0;
    for (; j + step <= cols; j += step) {
      prefetch(x + j, ahead);
      add_other(d, Elements<X>::load(d, x + j), max_v, sums, maxima);
    }
    if (j < cols) add_other(d, load_tail(x + j, cols - j), max_v, sums, maxima);
    PartSum part;
    part.maxima = hn::GetLane(hn::SumOfLanes(d, maxima));  // small integers: exact
    part.others = unscaled(sum_of_lanes(d, sums));
    return part;
  }

  // y = terms * factor; factor = kInverseScale / (sum in terms).
  static HWY_INLINE void scale(const T *terms, Y *y, std::int64_t cols, T factor) {
    const D d;
    const std::int64_t step = lanes();
    const V factor_v = hn::Set(d, factor);
    std::int64_t j = 0;
    for (; j + step <= cols; j += step) {
      Elements<Y>::store(hn::Mul(hn::LoadU(d, terms + j), factor_v), d, y + j);
    }
    if (j < cols) {
      const std::size_t count = static_cast<std::size_t>(cols - j);
      Elements<Y>::store(hn::Mul(load_first(d, terms + j, count), factor_v), d, y + j, count);
    }
  }

  // The same where the terms were not kept: they are computed again, to the same bits.
  static HWY_INLINE void write(const X *x, Y *y, std::int64_t cols, T max, T factor) {
    if constexpr (Fast::kExists) {
      if (Fast::accepts(max)) return write_of(Fast(hn::Set(D(), max)), x, y, cols, factor);
    }
    write_of(General(hn::Set(D(), max)), x, y, cols, factor);
  }

  static HWY_INLINE void write_log(const X *x, Y *y, std::int64_t cols, T max, double log_sum) {
    const D d;
    const std::int64_t step = lanes();
    const V max_v = hn::Set(d, max);
    const T log_hi = static_cast<T>(log_sum);
    const V log_hi_v = hn::Set(d, log_hi);
    const V log_lo_v = hn::Set(d, static_cast<T>(log_sum - log_hi));
    std::int64_t j = 0;
    for (; j + step <= cols; j += step) {
      put(log_value(d, Elements<X>::load(d, x + j), max_v, log_hi_v, log_lo_v), y + j);
    }
    if (j < cols) {
      put_first(log_value(d, load_tail(x + j, cols - j), max_v, log_hi_v, log_lo_v), y + j,
                cols - j);
    }
  }

  static HWY_INLINE void fill(Y *y, std::int64_t cols, T value) {
    const Y stored = Element<Y>::store(value);
    for (std::int64_t j = 0; j < cols; ++j) y[j] = stored;
  }

  static HWY_INLINE void prefetch(const X *x, std::int64_t ahead) {
    if (ahead != 0) {
      hwy::Prefetch(reinterpret_cast<const char *>(reinterpret_cast<std::uintptr_t>(x) +
                                                   static_cast<std::uintptr_t>(ahead)));
    }
  }

  static HWY_INLINE void put(V v, Y *y) { Elements<Y>::store(v, D(), y); }
  static HWY_INLINE void put_first(V v, Y *y, std::int64_t count) {
    Elements<Y>::store(v, D(), y, static_cast<std::size_t>(count));
  }

  template <bool kStore, class Exp>
  static HWY_INLINE PartSum sum_of(const Exp &exp, const X *x, std::int64_t cols, T *terms,
                                   std::int64_t ahead) {
    const D d;
    const std::int64_t step = lanes();
    LaneSums<D> sums = empty_sums();
    std::int64_t j = 0;
    for (; j + step <= cols; j += step) {
      prefetch(x + j, ahead);
      const V term = exp.term(Elements<X>::load(d, x + j));
      if constexpr (kStore) hn::StoreU(term, d, terms + j);
      add_smaller(sums, term);
    }
    if (j < cols) {
      const V term = exp.term(load_tail(x + j, cols - j));
      if constexpr (kStore) store_first(term, d, terms + j, static_cast<std::size_t>(cols - j));
      add_smaller(sums, term);
    }
    PartSum part;
    part.others = unscaled(sum_of_lanes(d, filled_sums(sums)));
    return part;
  }

  // Starting from a number that no term exceeds keeps |sum| >= |term|. Taking it away again is
  // exact: a sum is a multiple of its own last place and at least as large.
  static HWY_INLINE LaneSums<D> empty_sums() {
    return {hn::Set(D(), 2 * Traits::kScale), hn::Zero(D())};
  }
  static HWY_INLINE LaneSums<D> filled_sums(const LaneSums<D> &sums) {
    return {hn::Sub(sums.hi, hn::Set(D(), 2 * Traits::kScale)), sums.lo};
  }

  template <class Exp>
  static HWY_INLINE void write_of(const Exp &exp, const X *x, Y *y, std::int64_t cols, T factor) {
    const D d;
    const std::int64_t step = lanes();
    const V factor_v = hn::Set(d, factor);
    std::int64_t j = 0;
    for (; j + step <= cols; j += step) {
      prefetch(x + j, kPartColumns * static_cast<std::int64_t>(sizeof(X)));
      put(hn::Mul(exp.term(Elements<X>::load(d, x + j)), factor_v), y + j);
    }
    if (j < cols) {
      put_first(hn::Mul(exp.term(load_tail(x + j, cols - j)), factor_v), y + j, cols - j);
    }
  }

  static HWY_INLINE V load_tail(const X *x, std::int64_t count) {
    const D d;
    const std::size_t n = static_cast<std::size_t>(count);
    return hn::IfThenElse(hn::FirstN(d, n), Elements<X>::load(d, x, n),
                          hn::Set(d, -Limits<T>::infinity()));
  }

  static HWY_INLINE void add_other(D d, V x, V max, LaneSums<D> &sums, V &maxima) {
    const auto is_max = hn::Eq(x, max);
    maxima = hn::Add(maxima, hn::IfThenElseZero(is_max, hn::Set(d, T(1))));
    add_any(sums, hn::IfThenZeroElse(is_max, General(max).term(x)));
  }

  // (x - max) - log s; -inf where the difference is below the type's range.
  static HWY_INLINE V log_value(D d, V x, V max, V log_hi, V log_lo) {
    const V difference = hn::Sub(x, max);
    if constexpr (kPrecise) {
      const auto in_range = hn::Ge(difference, hn::Set(d, Limits<T>::lowest()));
      const V error = hn::IfThenElseZero(in_range, difference_error(x, max, difference));
      return hn::Add(hn::Sub(difference, log_hi), hn::Sub(error, log_lo));
    } else {
      (void)log_lo;
      return hn::Sub(difference, log_hi);
    }
  }

  static HWY_INLINE CompensatedSum<double> unscaled(const CompensatedSum<double> &sum) {
    constexpr double kInverse = static_cast<double>(Traits::kInverseScale);
    return {sum.hi * kInverse, sum.lo * kInverse};
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace softmax
HWY_AFTER_NAMESPACE();

#endif  // per target
