// The reference. See reference.h.
#include "support/reference.h"

#include <cmath>
#include <limits>

namespace softmax_test {
namespace {

constexpr std::int64_t kParallelFrom = 32768;  // elements
constexpr std::int64_t kChunk = 8192;          // elements that one thread sums at a time

// x - max as a sum of two doubles, exactly; -inf where it is below the range.
template <typename W>
struct Exact {
  W hi, lo;
  Exact(double x, double max) {
    const double difference = x - max;
    const double max_seen = difference - x;
    const double error = (x - (difference - max_seen)) + (-max - max_seen);
    hi = difference;
    lo = std::isfinite(difference) ? error : 0;
  }
  W exp() const { return std::exp(hi) * (1 + lo); }
};

// Neumaier's sum.
template <typename W>
struct Sum {
  W hi = 0, lo = 0;
  void add(W value) {
    const W total = hi + value;
    lo += std::fabs(hi) >= std::fabs(value) ? (hi - total) + value : (value - total) + hi;
    hi = total;
  }
};

template <typename W>
void fill(W *row, std::int64_t cols, W value) {
  for (std::int64_t j = 0; j < cols; ++j) row[j] = value;
}

template <typename W>
void reference_row(const Elements &x, std::int64_t first, std::int64_t cols, bool empty_is_zero,
                   W *softmax, W *log_softmax) {
  const W nan = std::numeric_limits<W>::quiet_NaN();
  const W infinity = std::numeric_limits<W>::infinity();
  bool has_nan = false;
  std::int64_t top = 0;
  for (std::int64_t j = 0; j < cols; ++j) {
    has_nan = has_nan || std::isnan(x[first + j]);
    if (x[first + j] > x[first + top]) top = j;
  }
  const double max = x[first + top];
  if (has_nan || max == HUGE_VAL) {
    fill(softmax, cols, nan);
    fill(log_softmax, cols, nan);
    return;
  }
  if (max == -HUGE_VAL) {
    fill(softmax, cols, empty_is_zero ? W(0) : nan);
    fill(log_softmax, cols, empty_is_zero ? -infinity : nan);
    return;
  }

  // The sum without the maximum's own 1, which log1p wants left out.
  const std::int64_t chunks = (cols + kChunk - 1) / kChunk;
  std::vector<W> partial(static_cast<std::size_t>(chunks));
#pragma omp parallel for schedule(static) if (cols > kParallelFrom)
  for (std::int64_t c = 0; c < chunks; ++c) {
    Sum<W> sum;
    const std::int64_t end = c + 1 < chunks ? (c + 1) * kChunk : cols;
    for (std::int64_t j = c * kChunk; j < end; ++j) {
      const W term = Exact<W>(x[first + j], max).exp();
      softmax[j] = term;
      if (j != top) sum.add(term);
    }
    partial[static_cast<std::size_t>(c)] = sum.hi + sum.lo;
  }
  Sum<W> total;
  for (const W part : partial) total.add(part);
  const W rest = total.hi + total.lo;
  const W log_sum = std::log1p(rest);
  const W sum = 1 + rest;
#pragma omp parallel for schedule(static) if (cols > kParallelFrom)
  for (std::int64_t j = 0; j < cols; ++j) {
    const Exact<W> d(x[first + j], max);
    softmax[j] /= sum;
    log_softmax[j] = (d.hi - log_sum) + d.lo;
  }
}

template <typename W>
void reference_rows(const Elements &x, std::int64_t rows, std::int64_t cols, bool empty_is_zero,
                    std::vector<W> *softmax, std::vector<W> *log_softmax) {
  softmax->resize(static_cast<std::size_t>(rows * cols));
  log_softmax->resize(static_cast<std::size_t>(rows * cols));
#pragma omp parallel for schedule(static) if (cols <= kParallelFrom && rows * cols > kParallelFrom)
  for (std::int64_t i = 0; i < rows; ++i) {
    reference_row(x, i * cols, cols, empty_is_zero, softmax->data() + i * cols,
                  log_softmax->data() + i * cols);
  }
}

}  // namespace

Reference make_reference(const Elements &x, std::int64_t rows, std::int64_t cols,
                         bool empty_is_zero) {
  Reference reference;
  reference.is_wide = x.dtype == SOFTMAX_DTYPE_F64;
  if (reference.is_wide) {
    reference_rows(x, rows, cols, empty_is_zero, &reference.wide_softmax,
                   &reference.wide_log_softmax);
  } else {
    reference_rows(x, rows, cols, empty_is_zero, &reference.softmax, &reference.log_softmax);
  }
  return reference;
}

}  // namespace softmax_test
