// NAIVE and REFERENCE: one row at a time in plain scalar code, three passes.
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/dtype.h"
#include "core/numerics.h"
#include "cpu/drivers.h"

namespace softmax {
namespace {

// The column of the row's first maximum. A NaN counts as one, so that it ends up in the maximum.
template <typename X>
std::int64_t column_of_max(const X *x, std::int64_t cols) {
  std::int64_t at = 0;
  auto max = Element<X>::load(x[0]);
  for (std::int64_t j = 1; j < cols; ++j) {
    const auto value = Element<X>::load(x[j]);
    if (value > max || value != value) {
      at = j;
      max = value;
    }
    if (max != max) break;
  }
  return at;
}

// The maximum's own term is left out of the sum rather than taken out of it again: a rest that is
// tiny beside it keeps all of its digits, however long the row.
template <typename X, typename Y>
void naive_row(const X *x, Y *y, std::int64_t cols, bool is_log, bool empty_is_zero) {
  using T = typename Element<X>::Acc;
  const std::int64_t at = column_of_max(x, cols);
  Pair<T> pair{Element<X>::load(x[at]), -sum_unit<T>()};
  if (pair.max >= Limits<T>::lowest()) {
    CompensatedSum<T> rest;
    for (std::int64_t j = 0; j < cols; ++j) {
      if (j == at) continue;
      rest.add(exp_times(raw_difference<T>(Element<X>::load(x[j]), pair.max), sum_unit<T>()));
    }
    pair.rest = (rest.hi + rest.lo) + (pair.max - pair.max);  // +inf makes the whole row NaN
  } else if (pair.max != pair.max) {
    pair.rest = pair.max;
  }
  const RowFactors<T> row = finish(pair, empty_is_zero);
  for (std::int64_t j = 0; j < cols; ++j) {
    y[j] = Element<Y>::store(output_value<T>(Element<X>::load(x[j]), row, is_log));
  }
}

// float64 for elements of up to 32 bits, long double for float64.
template <typename X, typename Y>
void reference_row(const X *x, Y *y, std::int64_t cols, bool is_log, bool empty_is_zero) {
  using T = typename Element<X>::Acc;
  using Wide = std::conditional_t<std::is_same<T, double>::value, long double, double>;
  const std::int64_t at = column_of_max(x, cols);
  const Wide max = Element<X>::load(x[at]);
  if (!std::isfinite(max)) {  // all -inf, or a NaN or +inf among them
    const T empty = is_log ? -Limits<T>::infinity() : T(0);
    const bool is_empty = max < 0;
    const T value = is_empty && empty_is_zero ? empty : std::numeric_limits<T>::quiet_NaN();
    for (std::int64_t j = 0; j < cols; ++j) y[j] = Element<Y>::store(value);
    return;
  }
  CompensatedSum<Wide> rest;
  for (std::int64_t j = 0; j < cols; ++j) {
    if (j != at) rest.add(std::exp(Wide{Element<X>::load(x[j])} - max));
  }
  const Wide sum_less_1 = (rest.hi + rest.lo) + (max - max);  // +inf makes the whole row NaN
  const Wide log_sum = std::log1p(sum_less_1);
  for (std::int64_t j = 0; j < cols; ++j) {
    const Wide difference = Wide{Element<X>::load(x[j])} - max;
    const Wide value = is_log ? difference - log_sum : std::exp(difference) / (1 + sum_less_1);
    y[j] = Element<Y>::store(static_cast<T>(value));
  }
}

template <typename X, typename Y>
using RowFunction = void (*)(const X *, Y *, std::int64_t, bool, bool);

template <typename X, typename Y>
void run_rows(RowFunction<X, Y> row, const Problem &problem, const Buffers &buffers) {
  const X *x = static_cast<const X *>(buffers.x);
  Y *y = static_cast<Y *>(buffers.y);
  const std::int64_t rows = problem.rows;
  const std::int64_t cols = problem.cols;
  const bool is_log = problem.is_log();
  const bool empty_is_zero = problem.empty_is_zero();
#pragma omp parallel for schedule(guided) num_threads(threads_for(problem))
  for (std::int64_t i = 0; i < rows; ++i) {
    row(x + i * cols, y + i * cols, cols, is_log, empty_is_zero);
  }
}

// Calls run<X, Y>(row function of X, Y) for the problem's types.
#define SOFTMAX_FOR_TYPES(row)                                                                     \
  switch (problem.x_dtype) {                                                                       \
    case SOFTMAX_DTYPE_F64: return run_rows<double, double>(row, problem, buffers);                \
    case SOFTMAX_DTYPE_F16:                                                                        \
      return problem.y_dtype == SOFTMAX_DTYPE_F16 ? run_rows<f16_t, f16_t>(row, problem, buffers)  \
                                                  : run_rows<f16_t, float>(row, problem, buffers); \
    case SOFTMAX_DTYPE_BF16:                                                                       \
      return problem.y_dtype == SOFTMAX_DTYPE_BF16                                                 \
                 ? run_rows<bf16_t, bf16_t>(row, problem, buffers)                                 \
                 : run_rows<bf16_t, float>(row, problem, buffers);                                 \
    default: return run_rows<float, float>(row, problem, buffers);                                 \
  }

}  // namespace

void run_naive(const Problem &problem, const Buffers &buffers) { SOFTMAX_FOR_TYPES(naive_row) }

void run_reference(const Problem &problem, const Buffers &buffers) {
  SOFTMAX_FOR_TYPES(reference_row)
}

}  // namespace softmax
