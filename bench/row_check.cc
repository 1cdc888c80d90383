// The correctness check before timing. See row_check.h.
#include "row_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "device.h"

namespace bench {
namespace {

constexpr std::int64_t kSampledElements = std::int64_t{1} << 18;
constexpr std::int64_t kMaxSampledRows = 64;
constexpr std::int64_t kMinSampledRows = 2;

double element_at(const unsigned char *bytes, softmax_dtype_t dtype, std::int64_t index) {
  if (dtype == SOFTMAX_DTYPE_F64) {
    double value;
    std::memcpy(&value, bytes + 8 * index, 8);
    return value;
  }
  std::uint32_t bits = 0;
  if (dtype == SOFTMAX_DTYPE_F32) {
    std::memcpy(&bits, bytes + 4 * index, 4);
  } else {
    std::uint16_t half;
    std::memcpy(&half, bytes + 2 * index, 2);
    bits = std::uint32_t{half} << 16;
  }
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

// The distance of neighbouring numbers of the type around value; below the normal range, the
// distance there.
double ulp_of(double value, softmax_dtype_t dtype) {
  const bool is_f64 = dtype == SOFTMAX_DTYPE_F64;
  const int fraction_bits = is_f64 ? 52 : dtype == SOFTMAX_DTYPE_F32 ? 23 : 7;
  const int least = is_f64 ? -1022 : -126;
  const int exponent = value == 0.0 ? least : std::max(least, std::ilogb(value));
  return std::ldexp(1.0, exponent - fraction_bits);
}

// exp(x - max) over its sum. Real is wider than the type that is checked.
template <typename Real>
void divide_by_sum(double *x, std::int64_t cols, double max) {
  Real sum = 0;
  for (std::int64_t j = 0; j < cols; ++j) sum += std::exp(Real{x[j]} - Real{max});
  for (std::int64_t j = 0; j < cols; ++j) {
    x[j] = static_cast<double>(std::exp(Real{x[j]} - Real{max}) / sum);
  }
}

}  // namespace

int element_bytes(softmax_dtype_t dtype) {
  switch (dtype) {
    case SOFTMAX_DTYPE_F32: return 4;
    case SOFTMAX_DTYPE_F64: return 8;
    default: return 2;
  }
}

double promised_ulp(softmax_dtype_t dtype) { return dtype == SOFTMAX_DTYPE_BF16 ? 0.51 : 4.0; }

RowCheck::RowCheck(const void *x, softmax_dtype_t dtype, std::int64_t rows, std::int64_t cols)
    : dtype_(dtype), cols_(cols) {
  const std::int64_t count =
      std::min(rows, std::clamp(kSampledElements / cols, kMinSampledRows, kMaxSampledRows));
  const std::size_t row_bytes = static_cast<std::size_t>(cols) * element_bytes(dtype);
  std::vector<unsigned char> row(row_bytes);
  expected_.resize(static_cast<std::size_t>(count * cols));
  check_cuda(cudaDeviceSynchronize(), "waiting for x");
  for (std::int64_t i = 0; i < count; ++i) {
    sampled_.push_back(count == 1 ? 0 : i * (rows - 1) / (count - 1));
    check_cuda(cudaMemcpy(row.data(), static_cast<const char *>(x) + sampled_[i] * row_bytes,
                          row_bytes, cudaMemcpyDeviceToHost),
               "reading a row of x");
    double *out = expected_.data() + i * cols;
    double max = -std::numeric_limits<double>::infinity();
    for (std::int64_t j = 0; j < cols; ++j) {
      out[j] = element_at(row.data(), dtype, j);
      max = std::max(max, out[j]);
    }
    if (dtype == SOFTMAX_DTYPE_F64) {
      divide_by_sum<long double>(out, cols, max);
    } else {
      divide_by_sum<double>(out, cols, max);
    }
  }
}

double RowCheck::max_ulp(const void *y) const {
  const std::size_t row_bytes = static_cast<std::size_t>(cols_) * element_bytes(dtype_);
  std::vector<unsigned char> row(row_bytes);
  double worst = 0.0;
  check_cuda(cudaDeviceSynchronize(), "waiting for y");
  for (std::size_t i = 0; i < sampled_.size(); ++i) {
    check_cuda(cudaMemcpy(row.data(), static_cast<const char *>(y) + sampled_[i] * row_bytes,
                          row_bytes, cudaMemcpyDeviceToHost),
               "reading a row of y");
    const double *expected = expected_.data() + i * cols_;
    for (std::int64_t j = 0; j < cols_; ++j) {
      const double error = std::fabs(element_at(row.data(), dtype_, j) - expected[j]);
      const double ulps = error / ulp_of(expected[j], dtype_);
      // Written so that a NaN is the worst of all, not equal to everything.
      if (!(ulps <= worst)) worst = ulps;
      if (std::isnan(worst)) return std::numeric_limits<double>::infinity();
    }
  }
  return worst;
}

}  // namespace bench
