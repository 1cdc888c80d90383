// The general call as the CPU's drivers pass it on, and the row-wise numbers that it has.
#pragma once

#include "core/dtype.h"
#include "core/f8.h"
#include "core/general.h"
#include "core/problem.h"

namespace softmax {

struct Call {
  const Problem *problem;
  const General *general;
  const GeneralBuffers *buffers;

  const Layout &layout() const { return general->layout; }
  bool is_log() const { return problem->is_log(); }
  // Columns of the row that are not masked by a length.
  std::int64_t length(std::int64_t row) const {
    return general->row_length(static_cast<const std::int32_t *>(buffers->mask), row);
  }
  bool has_lengths() const {
    return general->mask_kind == SOFTMAX_MASK_CAUSAL ||
           general->mask_kind == SOFTMAX_MASK_ROW_LENGTH;
  }
  // The row is a one-hot: see row_scale in softmax.h.
  bool is_limit_row(std::int64_t row) const {
    return buffers->row_scale != nullptr && buffers->row_scale[row] == 0.0f;
  }
  bool wants_stats() const { return (problem->features & kFeatureStatsOutputs) != 0; }
};

// Columns [col, col + cols) of the rows [first, first + rows), at most kPatchRows of them.
struct Patch {
  std::int64_t first;
  std::int64_t rows;
  std::int64_t col;
  std::int64_t cols;
};
constexpr std::int64_t kPatchRows = 64;

// Calls body with a value of the element type.
template <typename Body>
void with_type(std::int32_t dtype, const Body &body) {
  switch (dtype) {
    case SOFTMAX_DTYPE_F16: return body(f16_t());
    case SOFTMAX_DTYPE_BF16: return body(bf16_t());
    case SOFTMAX_DTYPE_F64: return body(double());
    case SOFTMAX_DTYPE_F8_E4M3: return body(f8_e4m3_t());
    case SOFTMAX_DTYPE_F8_E5M2: return body(f8_e5m2_t());
    default: return body(float());
  }
}

// One element to float64, exactly, and from it: through float32 where the type is narrower, so that
// it is rounded twice, of which the first rounding is no more than 2^-13 of the second.
inline double widen(double v) { return v; }
inline double widen(float v) { return v; }
template <typename X>
double widen(X v) {
  return to_float(v);
}

// A finite number stays one, so that it saturates and does not become infinite.
inline float to_float_range(double v) {
  constexpr double kMost = 3.4028234663852886e+38;
  if (v > kMost && v < Limits<double>::infinity()) return static_cast<float>(kMost);
  if (v < -kMost && v > -Limits<double>::infinity()) return static_cast<float>(-kMost);
  return static_cast<float>(v);
}
template <typename Y>
Y narrow(double v);
template <>
inline double narrow<double>(double v) {
  return v;
}
template <>
inline float narrow<float>(double v) {
  return static_cast<float>(v);
}
template <>
inline f16_t narrow<f16_t>(double v) {
  return to_f16(static_cast<float>(v));
}
template <>
inline bf16_t narrow<bf16_t>(double v) {
  return to_bf16(static_cast<float>(v));
}
template <>
inline f8_e4m3_t narrow<f8_e4m3_t>(double v) {
  return to_f8_e4m3(to_float_range(v));
}
template <>
inline f8_e5m2_t narrow<f8_e5m2_t>(double v) {
  return to_f8_e5m2(to_float_range(v));
}

}  // namespace softmax
