// Rows of a few columns: a row a lane, so that nothing is ever summed across lanes. Compiled once
// for each SIMD target.
#if defined(SOFTMAX_CPU_NARROW_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SOFTMAX_CPU_NARROW_INL_H
#undef SOFTMAX_CPU_NARROW_INL_H
#else
#define SOFTMAX_CPU_NARROW_INL_H
#endif

#include "cpu/kernels.h"
#include "cpu/log-inl.h"
#include "cpu/parts-inl.h"

HWY_BEFORE_NAMESPACE();
namespace softmax {
namespace HWY_NAMESPACE {

template <typename X, typename Y>
struct Narrow {
  using P = Part<X, Y>;
  using T = typename P::T;
  using D = typename P::D;
  using V = typename P::V;
  using Traits = typename P::Traits;
  static constexpr std::int64_t kMaxLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));
  static constexpr std::int64_t kMaxCols = 2 * kMaxLanes;

  // Decided by N alone: another number of rows must not change a row's bits.
  static bool accepts(std::int64_t cols) { return cols <= 2 * P::lanes(); }

  static void rows(const RowsTask &task) {
    const X *x = static_cast<const X *>(task.x);
    Y *y = static_cast<Y *>(task.y);
    const std::int64_t step = P::lanes();
    for (std::int64_t first = 0; first < task.rows; first += step) {
      const std::int64_t left = task.rows - first;
      group(task, x + first * task.cols, y + first * task.cols, left < step ? left : step);
    }
  }

 private:
  // At most as many rows as there are lanes; the lanes without a row hold zeros.
  static void group(const RowsTask &task, const X *x, Y *y, std::int64_t rows) {
    const D d;
    const std::int64_t cols = task.cols;
    const std::int64_t step = P::lanes();
    HWY_ALIGN X columns[kMaxCols * kMaxLanes];
    HWY_ALIGN T terms[kMaxCols * kMaxLanes];
    HWY_ALIGN Y outputs[kMaxCols * kMaxLanes];
    if (rows == step) {
      transpose(x, cols, rows, columns);
    } else {
      std::memset(columns, 0, sizeof columns);
      transpose(x, cols, rows, columns);
    }

    V max = hn::Set(d, -Limits<T>::infinity());
    for (std::int64_t j = 0; j < cols; ++j) max = hn::Max(max, load(columns, j));
    const auto is_finite = hn::And(hn::Ge(max, hn::Set(d, Limits<T>::lowest())),
                                   hn::Le(max, hn::Set(d, -Limits<T>::lowest())));
    const V reference = hn::IfThenElseZero(is_finite, max);
    if (task.is_log) {
      LaneSums<D> others{hn::Zero(d), hn::Zero(d)};
      V maxima = hn::Zero(d);
      const typename P::General exp(reference);
      for (std::int64_t j = 0; j < cols; ++j) {
        add_any(others, P::other_term(exp, load(columns, j), reference, maxima));
      }
      V hi, lo;
      log_shifts(reference, maxima, others, hi, lo);
      hi = for_edge_rows(task, max, is_finite, hi, others.hi);
      lo = hn::IfThenElseZero(is_finite, lo);  // the logarithm of 0 is in it
      for (std::int64_t j = 0; j < cols; ++j) {
        Elements<Y>::store(P::log_value(load(columns, j), hi, lo), d, outputs + j * step);
      }
    } else {
      LaneSums<D> sums = P::empty_sums();
      take_terms(columns, cols, reference, terms, sums);
      sums = P::filled_sums(sums);
      V inverse, error;
      reciprocal(sums, inverse, error);
      error = hn::IfThenElseZero(is_finite, error);  // the reciprocal of 0 has left a NaN
      const typename P::Factor factor(for_edge_rows(task, max, is_finite, inverse, sums.hi), error);
      for (std::int64_t j = 0; j < cols; ++j) {
        Elements<Y>::store(factor.times(hn::Load(d, terms + j * step)), d, outputs + j * step);
      }
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < cols; ++j) y[i * cols + j] = outputs[j * step + i];
    }
  }

  static HWY_INLINE void transpose(const X *x, std::int64_t cols, std::int64_t rows, X *columns) {
    const std::int64_t step = P::lanes();
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < cols; ++j) columns[j * step + i] = x[i * cols + j];
    }
  }
  static HWY_INLINE V load(const X *columns, std::int64_t col) {
    return Elements<X>::load(D(), columns + col * P::lanes());
  }

  // Each lane has its own maximum, and takes the exponential that a row with that maximum takes.
  static HWY_INLINE void take_terms(const X *columns, std::int64_t cols, V max, T *terms,
                                    LaneSums<D> &sums) {
    const D d;
    const typename P::General general(max);
    if constexpr (P::Fast::kExists) {
      const typename P::Fast fast(max);
      const auto is_near = hn::Lt(hn::Abs(max), hn::Set(d, P::Fast::kLimit));
      if (hn::AllTrue(d, is_near)) {
        for (std::int64_t j = 0; j < cols; ++j) {
          take_term(fast.term(load(columns, j)), terms, j, sums);
        }
        return;
      }
      for (std::int64_t j = 0; j < cols; ++j) {
        const V x = load(columns, j);
        take_term(hn::IfThenElse(is_near, fast.term(x), general.term(x)), terms, j, sums);
      }
    } else {
      for (std::int64_t j = 0; j < cols; ++j) {
        take_term(general.term(load(columns, j)), terms, j, sums);
      }
    }
  }
  static HWY_INLINE void take_term(V term, T *terms, std::int64_t col, LaneSums<D> &sums) {
    hn::Store(term, D(), terms + col * P::lanes());
    add_smaller(sums, term);
  }

  // What the last pass adds or multiplies, with the lanes replaced whose row has no finite maximum.
  // `sums` holds a NaN where the row does.
  template <class M>
  static HWY_INLINE V for_edge_rows(const RowsTask &task, V max, M is_finite, V value, V sums) {
    const D d;
    const T nan = Limits<T>::infinity() - Limits<T>::infinity();
    const auto is_empty =
        hn::And(hn::Eq(max, hn::Set(d, -Limits<T>::infinity())), hn::Eq(sums, sums));
    const V empty = hn::Set(d, task.empty_is_zero ? T(0) : nan);
    return hn::IfThenElse(is_finite, value, hn::IfThenElse(is_empty, empty, hn::Set(d, nan)));
  }

  // 1 / (hi + lo), and what is missing in it where that can be had.
  static HWY_INLINE void reciprocal(const LaneSums<D> &sums, V &inverse, V &error) {
    const D d;
    const V one = hn::Set(d, T(1));
#if HWY_NATIVE_FMA
    const V estimate = hn::Div(one, sums.hi);
    const V residue = hn::NegMulAdd(estimate, sums.lo, hn::NegMulAdd(estimate, sums.hi, one));
    const V correction = hn::Mul(estimate, residue);
    inverse = hn::Add(estimate, correction);
    error = hn::Sub(correction, hn::Sub(inverse, estimate));
#else
    inverse = hn::Div(one, hn::Add(sums.hi, sums.lo));
    error = hn::Zero(d);
#endif
  }

  // max + log s in two parts, a row a lane.
  static HWY_INLINE void log_shifts(V max, V maxima, const LaneSums<D> &others, V &shift_hi,
                                    V &shift_lo) {
    const D d;
    HWY_ALIGN T tops[kMaxLanes];
    HWY_ALIGN T ones[kMaxLanes];
    HWY_ALIGN T hi[kMaxLanes];
    HWY_ALIGN T lo[kMaxLanes];
    hn::Store(max, d, tops);
    hn::Store(maxima, d, ones);
    hn::Store(others.hi, d, hi);
    hn::Store(others.lo, d, lo);
    double log_sums[log_batch(kMaxLanes)] = {};
    for (std::int64_t i = 0; i < P::lanes(); ++i) {
      RowSum row;
      row.maxima = ones[i];
      row.others.hi = hi[i];
      row.others.lo = lo[i];
      row.others = P::unscaled(row.others);
      const CompensatedSum<double> rest = row.rest(1.0);
      if constexpr (sizeof(T) == 8) {
        log_sums[i] = log_sum_of<T>(rest);
      } else {
        log_sums[i] = rest.hi + rest.lo;
      }
    }
    if constexpr (sizeof(T) == 4) log_1_plus_all(log_sums, log_batch(P::lanes()));
    for (std::int64_t i = 0; i < P::lanes(); ++i) {
      const typename P::LogShift shift(tops[i], log_sums[i]);
      hi[i] = shift.hi;
      lo[i] = shift.lo;
    }
    shift_hi = hn::Load(d, hi);
    shift_lo = hn::Load(d, lo);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace softmax
HWY_AFTER_NAMESPACE();

#endif  // per target
