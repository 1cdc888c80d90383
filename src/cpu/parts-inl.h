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

// The sum of all lanes: of float32 in float64, where the few additions lose nothing that counts; of
// float64 with compensation, halves being added until one lane is left.
template <class D>
HWY_INLINE CompensatedSum<double> sum_of_lanes(D d, const LaneSums<D> &sum) {
  CompensatedSum<double> total;
  if constexpr (hn::MaxLanes(D()) == 1) {
    total.hi = hn::GetLane(sum.hi);
    total.lo = hn::GetLane(sum.lo);
    (void)d;
    return total;
  } else {
#if HWY_TARGET != HWY_SCALAR
    const hn::Half<D> half;
    if constexpr (sizeof(Lane<D>) == 4) {
      const hn::Rebind<double, hn::Half<D>> d64;
      const auto hi = hn::Add(hn::PromoteTo(d64, hn::LowerHalf(half, sum.hi)),
                              hn::PromoteTo(d64, hn::UpperHalf(half, sum.hi)));
      const auto lo = hn::Add(hn::PromoteTo(d64, hn::LowerHalf(half, sum.lo)),
                              hn::PromoteTo(d64, hn::UpperHalf(half, sum.lo)));
      total.hi = hn::GetLane(hn::SumOfLanes(d64, hn::Add(hi, lo)));
      return total;
    } else {
      LaneSums<hn::Half<D>> folded{
          hn::LowerHalf(half, sum.hi),
          hn::Add(hn::LowerHalf(half, sum.lo), hn::UpperHalf(half, sum.lo))};
      add_any(folded, hn::UpperHalf(half, sum.hi));
      return sum_of_lanes(half, folded);
    }
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
    if constexpr (Fast::kExists) {
      if (Fast::accepts(max)) return sum_log_of(Fast(hn::Set(D(), max)), x, cols, max, ahead);
    }
    return sum_log_of(General(hn::Set(D(), max)), x, cols, max, ahead);
  }

  // y = terms / (sum of terms)
  static HWY_INLINE void scale(const T *terms, Y *y, std::int64_t cols, double inverse_sum) {
    const D d;
    const std::int64_t step = lanes();
    const Factor factor(inverse_sum);
    std::int64_t j = 0;
    for (; j + step <= cols; j += step) {
      put(factor.times(hn::LoadU(d, terms + j)), y + j);
    }
    if (j < cols) {
      const std::size_t count = static_cast<std::size_t>(cols - j);
      put_first(factor.times(load_first(d, terms + j, count)), y + j, cols - j);
    }
  }

  // The same where the terms were not kept: they are computed again, to the same bits.
  static HWY_INLINE void write(const X *x, Y *y, std::int64_t cols, T max, double inverse_sum) {
    const Factor factor(inverse_sum);
    if constexpr (Fast::kExists) {
      if (Fast::accepts(max)) return write_of(Fast(hn::Set(D(), max)), x, y, cols, factor);
    }
    write_of(General(hn::Set(D(), max)), x, y, cols, factor);
  }

  static HWY_INLINE void write_log(const X *x, Y *y, std::int64_t cols, T max, double log_sum) {
    const D d;
    const std::int64_t step = lanes();
    const LogShift shift(max, log_sum);
    const V hi = hn::Set(d, shift.hi);
    const V lo = hn::Set(d, shift.lo);
    std::int64_t j = 0;
    for (; j + step <= cols; j += step) {
      put(log_value(Elements<X>::load(d, x + j), hi, lo), y + j);
    }
    if (j < cols) put_first(log_value(load_tail(x + j, cols - j), hi, lo), y + j, cols - j);
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

  // What turns terms into outputs, 1 / their sum, in two parts where the unit is not a power of two
  // and results have 32 bits: so that a sum which is the maximum's own term makes it exactly 1.
  class Factor {
   public:
    explicit HWY_INLINE Factor(double inverse_sum) {
      const T hi = static_cast<T>(inverse_sum);
      hi_ = hn::Set(D(), hi * Traits::kInverseScale);
      lo_ = hn::Set(D(), static_cast<T>(inverse_sum - hi) * Traits::kInverseScale);
    }
    HWY_INLINE Factor(V hi, V lo) : hi_(hi), lo_(lo) {}
    HWY_INLINE V times(V term) const {
      if constexpr (Fast::kExists && kPrecise) {
        return hn::MulAdd(term, hi_, hn::Mul(term, lo_));
      } else {
        return hn::Mul(term, hi_);
      }
    }

   private:
    V hi_;
    V lo_;
  };

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
  static HWY_INLINE void write_of(const Exp &exp, const X *x, Y *y, std::int64_t cols,
                                  const Factor &factor) {
    const D d;
    const std::int64_t step = lanes();
    std::int64_t j = 0;
    for (; j + step <= cols; j += step) {
      prefetch(x + j, kPartColumns * static_cast<std::int64_t>(sizeof(X)));
      put(factor.times(exp.term(Elements<X>::load(d, x + j))), y + j);
    }
    if (j < cols) {
      put_first(factor.times(exp.term(load_tail(x + j, cols - j))), y + j, cols - j);
    }
  }

  static HWY_INLINE V load_tail(const X *x, std::int64_t count) {
    const D d;
    const std::size_t n = static_cast<std::size_t>(count);
    return hn::IfThenElse(hn::FirstN(d, n), Elements<X>::load(d, x, n),
                          hn::Set(d, -Limits<T>::infinity()));
  }

  template <class Exp>
  static HWY_INLINE PartSum sum_log_of(const Exp &exp, const X *x, std::int64_t cols, T max,
                                       std::int64_t ahead) {
    const D d;
    const std::int64_t step = lanes();
    const V max_v = hn::Set(d, max);
    LaneSums<D> sums{hn::Zero(d), hn::Zero(d)};
    V maxima = hn::Zero(d);
    std::int64_t j = 0;
    // Terms are added in pairs before they are added with compensation: all are positive, so that
    // it costs half an ulp of the pair.
    for (; j + 2 * step <= cols; j += 2 * step) {
      prefetch(x + j, ahead);
      prefetch(x + j + step, ahead);
      const V a = other_term(exp, Elements<X>::load(d, x + j), max_v, maxima);
      const V b = other_term(exp, Elements<X>::load(d, x + j + step), max_v, maxima);
      add_any(sums, hn::Add(a, b));
    }
    if (j + step <= cols) {
      add_any(sums, other_term(exp, Elements<X>::load(d, x + j), max_v, maxima));
      j += step;
    }
    if (j < cols) add_any(sums, other_term(exp, load_tail(x + j, cols - j), max_v, maxima));
    PartSum part;
    part.maxima = hn::GetLane(hn::SumOfLanes(d, maxima));  // small integers: exact
    part.others = unscaled(sum_of_lanes(d, sums));
    return part;
  }

  // The term, or 0 and one more of the maxima.
  template <class Exp>
  static HWY_INLINE V other_term(const Exp &exp, V x, V max, V &maxima) {
    const auto is_max = hn::Eq(x, max);
    maxima = hn::Add(maxima, hn::IfThenElseZero(is_max, hn::Set(D(), T(1))));
    return hn::IfThenZeroElse(is_max, exp.term(x));
  }

  // What log-softmax takes from each element, max + log s, in two parts: where s is barely above 1,
  // hi is max and lo is what makes the maximum's own output.
  struct LogShift {
    T hi;
    T lo;
    LogShift(double max, double log_sum) {
      const Split<double> sum = two_sum(max, log_sum);
      hi = static_cast<T>(sum.hi);
      lo = static_cast<T>((sum.hi - hi) + sum.lo);
    }
  };
  // Both subtractions round once; where the result is small beside hi, the first is exact.
  static HWY_INLINE V log_value(V x, V hi, V lo) { return hn::Sub(hn::Sub(x, hi), lo); }

  static HWY_INLINE CompensatedSum<double> unscaled(const CompensatedSum<double> &sum) {
    constexpr double kInverse = static_cast<double>(Traits::kInverseScale);
    return {sum.hi * kInverse, sum.lo * kInverse};
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace softmax
HWY_AFTER_NAMESPACE();

#endif  // per target
