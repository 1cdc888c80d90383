// One row by parts, on one thread or on all: a strategy says what is known before sums are taken.
#pragma once

#include <algorithm>
#include <new>

#include "cpu/kernels.h"
#include "cpu/row_access.h"
#include "cpu/row_state.h"

namespace softmax {

struct Work {
  const Kernels *kernels;
  const char *x;
  char *y;
  std::int64_t rows;
  std::int64_t cols;
  bool is_log;
  bool empty_is_zero;
  const RowAccess *access = nullptr;  // of the general call, whose x and y these are not

  const char *x_at(std::int64_t row, std::int64_t col) const {
    return x + (row * cols + col) * kernels->x_size;
  }
  char *y_at(std::int64_t row, std::int64_t col) const {
    return y + (row * cols + col) * kernels->y_size;
  }
};

// ---- parts ----

inline std::int64_t part_count(std::int64_t cols) {
  return (cols + kPartColumns - 1) / kPartColumns;
}

struct PartRange {
  std::int64_t col;
  std::int64_t cols;
};

inline PartRange part_range(const Work &work, std::int64_t part) {
  const std::int64_t col = part * kPartColumns;
  return {col, std::min(kPartColumns, work.cols - col)};
}

inline double max_of(const Work &work, std::int64_t row, std::int64_t part) {
  const PartRange range = part_range(work, part);
  if (work.access != nullptr) return work.access->max_of(row, range.col, range.cols);
  return work.kernels->part_max(work.x_at(row, range.col), range.cols);
}

// keep_terms: in the output, where they fit.
inline PartSum sum_of(const Work &work, std::int64_t row, std::int64_t part, double max,
                      bool keep_terms) {
  const PartRange range = part_range(work, part);
  if (work.access != nullptr) {
    return work.access->sum_of(row, range.col, range.cols, max, work.is_log, keep_terms);
  }
  return work.kernels->part_sum(work.x_at(row, range.col), range.cols, max, work.is_log,
                                keep_terms ? work.y_at(row, range.col) : nullptr);
}

inline void scale_terms(const Work &work, std::int64_t row, std::int64_t part,
                        const RowScale &scale) {
  const PartRange range = part_range(work, part);
  if (work.access != nullptr) return work.access->scale_terms(row, range.col, range.cols, scale);
  work.kernels->part_scale(work.y_at(row, range.col), range.cols, scale);
}

inline void write(const Work &work, std::int64_t row, std::int64_t part, const RowScale &scale) {
  const PartRange range = part_range(work, part);
  if (work.access != nullptr) {
    return work.access->write(row, range.col, range.cols, scale, work.is_log);
  }
  work.kernels->part_write(work.x_at(row, range.col), work.y_at(row, range.col), range.cols, scale,
                           work.is_log);
}

// The lowest finite number: a reference for parts without any element above -inf, against which
// every term is 0, but for a NaN's.
inline double lowest_of(const Work &work) {
  return work.kernels->x_size == 8 ? Limits<double>::lowest() : double{Limits<float>::lowest()};
}

// A part's share in its row. It does not depend on which thread computed it, and the shares of a
// row are always taken in order.
struct Share {
  double max;
  PartSum sum;
};

// ---- VECTOR: the row's maximum is known before sums are taken against it ----

struct VectorStrategy {
  double max = -Limits<double>::infinity();
  RowSum sum;

  static constexpr bool kNeedsRowMax = true;

  void see_max(double part_max) {
    max = part_max > max || part_max != part_max ? part_max : max;  // a NaN stays
  }
  void share_against_row_max(const Work &work, std::int64_t row, std::int64_t part,
                             Share *share) const {
    share->sum = sum_of(work, row, part, is_finite(max) ? max : lowest_of(work), keeps_terms(work));
  }
  static void share_alone(const Work &work, std::int64_t row, std::int64_t part, Share *share) {
    share->max = max_of(work, row, part);
  }
  static void finish(const Work &work, std::int64_t row, std::int64_t part, const RowScale &scale) {
    if (keeps_terms(work)) {
      scale_terms(work, row, part, scale);
    } else {
      write(work, row, part, scale);
    }
  }
  void add(const Work &, const Share &share) { sum.add(share.sum); }
  RowScale scale(const Work &work) const {
    if (is_finite(max)) {
      if (!work.is_log) return softmax_scale(max, sum.others);
      return log_scale(max, work.kernels->log_sum(sum.rest(work.kernels->unit(max))));
    }
    const bool is_nan = sum.others.hi != sum.others.hi;
    return constant_row(max < 0 && !is_nan, work.is_log, work.empty_is_zero);
  }

 private:
  static bool keeps_terms(const Work &work) {
    return !work.is_log && work.kernels->terms_fit_output &&
           (work.access == nullptr || work.access->keeps_terms());
  }
};

// ---- ONLINE: every part has its own maximum ----

struct OnlineStrategy {
  OnlineRow row;

  static constexpr bool kNeedsRowMax = false;

  void see_max(double) {}
  void share_against_row_max(const Work &, std::int64_t, std::int64_t, Share *) const {}
  static void share_alone(const Work &work, std::int64_t row, std::int64_t part, Share *share) {
    share->max = max_of(work, row, part);
    share->sum =
        sum_of(work, row, part, is_finite(share->max) ? share->max : lowest_of(work), false);
  }
  static void finish(const Work &work, std::int64_t row, std::int64_t part, const RowScale &scale) {
    write(work, row, part, scale);
  }
  void add(const Work &work, const Share &share) {
    const bool is_nan = share.sum.others.hi != share.sum.others.hi;
    if (is_finite(share.max) && !is_nan) {
      row.add(share.max, rest_of(work, share));
    } else if (is_nan || !(share.max < 0)) {
      row.poison();
    }
  }
  RowScale scale(const Work &work) const {
    if (row.is_poisoned() || !is_finite(row.max)) {
      return constant_row(!row.is_poisoned(), work.is_log, work.empty_is_zero);
    }
    const CompensatedSum<double> rest = row.rest();
    if (work.is_log) return log_scale(row.max, work.kernels->log_sum(rest));
    CompensatedSum<double> sum = rest;
    sum.add(1.0);
    RowScale scale = softmax_scale(row.max, sum);
    scale.inverse_sum /= work.kernels->unit(row.max);
    return scale;
  }

 private:
  // The part's sum of exp(x_j - max), less its maximum's own 1.
  static CompensatedSum<double> rest_of(const Work &work, const Share &share) {
    const double unit = work.kernels->unit(share.max);
    RowSum part;
    part.add(share.sum);
    if (work.is_log) return part.rest(unit);
    CompensatedSum<double> rest = RowSum::per_unit(part.others, unit);
    rest.add(-1.0);
    return rest;
  }
};

// ---- one row on one thread, or on all ----

// The maximum of the row's parts, where sums are taken against that.
template <typename Strategy>
void see_maxima(const Work &work, std::int64_t row, std::int64_t parts, Strategy *strategy) {
  if (!Strategy::kNeedsRowMax) return;
  Share share;
  for (std::int64_t p = 0; p < parts; ++p) {
    Strategy::share_alone(work, row, p, &share);
    strategy->see_max(share.max);
  }
}

template <typename Strategy>
void add_parts(const Work &work, std::int64_t row, std::int64_t parts, Strategy *strategy) {
  Share share;
  for (std::int64_t p = 0; p < parts; ++p) {
    if (Strategy::kNeedsRowMax) {
      strategy->share_against_row_max(work, row, p, &share);
    } else {
      Strategy::share_alone(work, row, p, &share);
    }
    strategy->add(work, share);
  }
}

template <typename Strategy>
void run_row(const Work &work, std::int64_t row) {
  const std::int64_t parts = part_count(work.cols);
  Strategy strategy;
  see_maxima(work, row, parts, &strategy);
  add_parts(work, row, parts, &strategy);
  const RowScale scale = strategy.scale(work);
  for (std::int64_t p = 0; p < parts; ++p) Strategy::finish(work, row, p, scale);
}

template <typename Strategy>
void run_rows_by_parts(const Work &work, std::int64_t first, std::int64_t count) {
  for (std::int64_t row = first; row < first + count; ++row) run_row<Strategy>(work, row);
}

// All threads on one row at a time; false, and nothing done, where there is no memory for the
// shares.
template <typename Strategy>
bool run_split(const Work &work, int threads) {
  const std::int64_t parts = part_count(work.cols);
  Share *shares = new (std::nothrow) Share[static_cast<std::size_t>(parts)];
  if (shares == nullptr) return false;
#pragma omp parallel num_threads(threads)
  for (std::int64_t row = 0; row < work.rows; ++row) {
    Strategy strategy;  // every thread makes its own from all shares: the same
#pragma omp for schedule(static)
    for (std::int64_t p = 0; p < parts; ++p) Strategy::share_alone(work, row, p, &shares[p]);
    if (Strategy::kNeedsRowMax) {
      for (std::int64_t p = 0; p < parts; ++p) strategy.see_max(shares[p].max);
#pragma omp for schedule(static)
      for (std::int64_t p = 0; p < parts; ++p) {
        strategy.share_against_row_max(work, row, p, &shares[p]);
      }
    }
    for (std::int64_t p = 0; p < parts; ++p) strategy.add(work, shares[p]);
    const RowScale scale = strategy.scale(work);
#pragma omp for schedule(static)
    for (std::int64_t p = 0; p < parts; ++p) Strategy::finish(work, row, p, scale);
  }
  delete[] shares;
  return true;
}

}  // namespace softmax
