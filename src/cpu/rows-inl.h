// Whole rows in the cache, a tile of them at a time, and the table of kernels. Compiled once for
// each SIMD target.
#if defined(SOFTMAX_CPU_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SOFTMAX_CPU_ROWS_INL_H
#undef SOFTMAX_CPU_ROWS_INL_H
#else
#define SOFTMAX_CPU_ROWS_INL_H
#endif

#include <type_traits>

#include "cpu/kernels.h"
#include "cpu/log-inl.h"
#include "cpu/narrow-inl.h"
#include "cpu/parts-inl.h"
#include "cpu/row_state.h"

HWY_BEFORE_NAMESPACE();
namespace softmax {
namespace HWY_NAMESPACE {

// Each pass goes over a tile of rows: the chain of dependent steps at the end of a row (lanes to
// one value, a division, a logarithm) then overlaps with the next rows.
constexpr std::int64_t kTileColumns = 2048;
constexpr std::int64_t kTileRows = 64;

HWY_INLINE std::int64_t tile_rows(std::int64_t cols) {
  const std::int64_t rows = kTileColumns / cols;
  return rows < 1 ? 1 : rows > kTileRows ? kTileRows : rows;
}

template <typename X, typename Y>
struct Rows {
  using P = Part<X, Y>;
  using T = typename P::T;
  using Traits = typename P::Traits;
  // Terms can wait in the output itself where it is as wide.
  static constexpr bool kTermsFitOutput = std::is_same<T, Y>::value;

  static std::size_t scratch_bytes(std::int64_t cols, bool is_log) {
    if (is_log || kTermsFitOutput) return 0;
    return static_cast<std::size_t>(tile_rows(cols) * cols) * sizeof(T);
  }

  // Whether a NaN is in a row in which no number above -inf was seen.
  static bool holds_nan(const X *x, std::int64_t cols) {
    for (std::int64_t j = 0; j < cols; ++j) {
      const T value = Element<X>::load(x[j]);
      if (value != value) return true;
    }
    return false;
  }

  // For log-softmax what is left to do is log_scales'.
  static HWY_INLINE RowScale sum_row(const RowsTask &task, const X *x, T max, T *terms,
                                     std::int64_t ahead, CompensatedSum<double> *rest) {
    if (!is_finite(max)) {
      const bool is_empty = max < Limits<T>::lowest() && !holds_nan(x, task.cols);
      return constant_row(is_empty, task.is_log, task.empty_is_zero);
    }
    RowSum row;
    for (std::int64_t j = 0; j < task.cols; j += kPartColumns) {
      const std::int64_t count = task.cols - j < kPartColumns ? task.cols - j : kPartColumns;
      row.add(task.is_log ? P::sum_log(x + j, count, max, ahead)
                          : P::template sum<true>(x + j, count, max, terms + j, ahead));
    }
    if (!task.is_log) return softmax_scale(max, row.others);
    *rest = row.rest(P::Fast::unit(max));
    return log_scale(max, 0.0);
  }

  static HWY_INLINE void log_scales(const CompensatedSum<double> *rests, std::int64_t count,
                                    RowScale *scales) {
    if constexpr (sizeof(T) == 8) {
      for (std::int64_t i = 0; i < count; ++i) scales[i].log_sum = log_sum_of<T>(rests[i]);
    } else {
      double values[log_batch(kTileRows)] = {};
      for (std::int64_t i = 0; i < count; ++i) values[i] = rests[i].hi + rests[i].lo;
      log_1_plus_all(values, log_batch(count));
      for (std::int64_t i = 0; i < count; ++i) scales[i].log_sum = values[i];
    }
  }

  static HWY_INLINE void write_row(const X *x, const T *terms, Y *y, std::int64_t cols,
                                   const RowScale &row, bool is_log) {
    if (row.is_constant) {
      P::fill(y, cols, static_cast<T>(row.constant));
    } else if (is_log) {
      P::write_log(x, y, cols, static_cast<T>(row.max), row.log_sum);
    } else {
      P::scale(terms, y, cols, row.inverse_sum);
    }
  }

  static void rows(const RowsTask &task) {
    if (Narrow<X, Y>::accepts(task.cols)) return Narrow<X, Y>::rows(task);
    const std::int64_t cols = task.cols;
    const X *x = static_cast<const X *>(task.x);
    Y *y = static_cast<Y *>(task.y);
    const std::int64_t rows_in_tile = tile_rows(cols);
    T maxima[kTileRows];
    RowScale scales[kTileRows];
    CompensatedSum<double> rests[kTileRows];
    for (std::int64_t first = 0; first < task.rows; first += rows_in_tile) {
      const std::int64_t left = task.rows - first;
      const std::int64_t count = left < rows_in_tile ? left : rows_in_tile;
      const std::int64_t ahead =
          left > rows_in_tile ? rows_in_tile * cols * static_cast<std::int64_t>(sizeof(X)) : 0;
      const X *tile_x = x + first * cols;
      Y *tile_y = y + first * cols;
      T *terms = static_cast<T *>(task.scratch);
      if constexpr (kTermsFitOutput) terms = tile_y;
      for (std::int64_t i = 0; i < count; ++i) maxima[i] = P::max(tile_x + i * cols, cols);
      for (std::int64_t i = 0; i < count; ++i) {
        scales[i] = sum_row(task, tile_x + i * cols, maxima[i], terms + i * cols, ahead, &rests[i]);
      }
      if (task.is_log) log_scales(rests, count, scales);
      for (std::int64_t i = 0; i < count; ++i) {
        write_row(tile_x + i * cols, terms + i * cols, tile_y + i * cols, cols, scales[i],
                  task.is_log);
      }
    }
  }

  // ---- parts of long rows ----

  static double part_max(const void *x, std::int64_t cols) {
    return P::max(static_cast<const X *>(x), cols);
  }
  static double unit(double max) { return P::Fast::unit(static_cast<T>(max)); }
  static PartSum part_sum(const void *x, std::int64_t cols, double max, bool is_log, void *terms) {
    const X *from = static_cast<const X *>(x);
    const T max_t = static_cast<T>(max);
    if (is_log) return P::sum_log(from, cols, max_t, kNextPart);
    if (terms == nullptr) return P::template sum<false>(from, cols, max_t, nullptr, kNextPart);
    return P::template sum<true>(from, cols, max_t, static_cast<T *>(terms), kNextPart);
  }
  static void part_scale(void *terms, std::int64_t cols, const RowScale &row) {
    if constexpr (kTermsFitOutput) {
      write_row(nullptr, static_cast<T *>(terms), static_cast<T *>(terms), cols, row, false);
    }
  }
  static void part_write(const void *x, void *y, std::int64_t cols, const RowScale &row,
                         bool is_log) {
    const X *from = static_cast<const X *>(x);
    Y *to = static_cast<Y *>(y);
    const T max = static_cast<T>(row.max);
    if (row.is_constant) {
      P::fill(to, cols, static_cast<T>(row.constant));
    } else if (is_log) {
      P::write_log(from, to, cols, max, row.log_sum);
    } else {
      P::write(from, to, cols, max, row.inverse_sum);
    }
  }

 private:
  // Bytes to what is most likely read next.
  static constexpr std::int64_t kNextPart = kPartColumns * static_cast<std::int64_t>(sizeof(X));
};

template <typename X, typename Y>
constexpr Kernels make_kernels() {
  using R = Rows<X, Y>;
  Kernels kernels{};
  kernels.x_size = static_cast<int>(sizeof(X));
  kernels.y_size = static_cast<int>(sizeof(Y));
  kernels.target = HWY_TARGET;
  kernels.rows = R::rows;
  kernels.scratch_bytes = R::scratch_bytes;
  kernels.terms_fit_output = R::kTermsFitOutput;
  kernels.part_max = R::part_max;
  kernels.unit = R::unit;
  kernels.log_sum = log_sum_of<typename R::T>;
  kernels.part_sum = R::part_sum;
  kernels.part_scale = R::part_scale;
  kernels.part_write = R::part_write;
  return kernels;
}

template <typename X, typename Y>
const Kernels *kernel_table() {
  static constexpr Kernels kKernels = make_kernels<X, Y>();
  return &kKernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace softmax
HWY_AFTER_NAMESPACE();

#endif  // per target
