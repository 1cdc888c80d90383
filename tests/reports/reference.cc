// The reference. See reference.h.
#include "reference.h"

#include <cmath>
#include <limits>

#include "element.h"

namespace reports {
namespace {

// The maximum's own 1 is kept apart, so that a confident row's log is accurate near 0.
template <typename T>
void compute(const std::vector<T> &x, bool is_log, long double *out) {
  std::size_t top = 0;
  bool undefined = false;
  for (std::size_t j = 0; j < x.size(); ++j) {
    undefined = undefined || std::isnan(x[j]) || x[j] == std::numeric_limits<T>::infinity();
    if (x[j] > x[top]) top = j;
  }
  if (undefined || x[top] == -std::numeric_limits<T>::infinity()) {
    for (std::size_t j = 0; j < x.size(); ++j) out[j] = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  T rest = 0;
  T lost = 0;  // Kahan: what the last addition rounded away
  for (std::size_t j = 0; j < x.size(); ++j) {
    if (j == top) continue;
    const T term = std::exp(x[j] - x[top]) - lost;
    const T sum = rest + term;
    lost = (sum - rest) - term;
    rest = sum;
  }
  const T log_sum = std::log1p(rest);
  for (std::size_t j = 0; j < x.size(); ++j) {
    const T d = x[j] - x[top];
    out[j] = is_log ? d - log_sum : std::exp(d) / (1 + rest);
  }
}

template <typename T>
void decode_and_compute(std::int32_t dtype, const unsigned char *row, std::int64_t count,
                        bool is_log, long double *out) {
  std::vector<T> x(static_cast<std::size_t>(count));
  for (std::int64_t j = 0; j < count; ++j) {
    x[static_cast<std::size_t>(j)] = decode_at(dtype, row, j);
  }
  compute(x, is_log, out);
}

}  // namespace

void reference_row(std::int32_t dtype, const unsigned char *row, std::int64_t count, bool is_log,
                   long double *out) {
  if (dtype == SOFTMAX_DTYPE_F64) {
    decode_and_compute<long double>(dtype, row, count, is_log, out);
  } else {
    decode_and_compute<double>(dtype, row, count, is_log, out);
  }
}

std::vector<long double> reference_of(const Input &input, bool is_log) {
  std::vector<long double> out(static_cast<std::size_t>(input.count()));
  const std::int64_t row_bytes = input.columns * format_of(input.dtype).bytes;
  const std::vector<unsigned char> x = encode_all(input);
#pragma omp parallel for
  for (std::int64_t i = 0; i < input.rows; ++i) {
    reference_row(input.dtype, x.data() + i * row_bytes, input.columns, is_log,
                  out.data() + i * input.columns);
  }
  return out;
}

}  // namespace reports
