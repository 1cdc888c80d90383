// Elements of any type on the device, by float64: what the general call's wide rows are made of.
#pragma once

#include <cstdint>

#include "core/f8.h"
#include "cuda/general/args.h"
#include "cuda/prim/element.cuh"
#include "softmax.h"

namespace softmax {

// The element at which a row of a tensor begins.
static __device__ __noinline__ std::int64_t far_row_begin(const Layout &layout, int tensor,
                                                          std::int64_t row) {
  std::int64_t at = 0;
#pragma unroll 1
  for (int d = layout.dims - 1; d > 0; --d) {
    const std::int64_t extent = layout.extent[d];
    const std::int64_t outer = (row | extent) >> 32 == 0 ? static_cast<std::uint32_t>(row) /
                                                               static_cast<std::uint32_t>(extent)
                                                         : row / extent;
    at += (row - outer * extent) * layout.stride[tensor][d];
    row = outer;
  }
  return at + row * layout.stride[tensor][0];
}
__device__ __forceinline__ std::int64_t row_begin(const GeneralArgs &args, int tensor,
                                                  std::int64_t row) {
  const Layout &layout = args.layout();
  if (layout.dims <= 1) return row * layout.stride[tensor][0];
  return far_row_begin(layout, tensor, row);
}

// Columns of the row that are not masked by a length.
static __device__ __noinline__ std::int64_t masked_row_length(const GeneralArgs &args,
                                                              std::int64_t row) {
  return args.general.row_length(static_cast<const std::int32_t *>(args.buffers.mask), row);
}
__device__ __forceinline__ std::int64_t row_length(const GeneralArgs &args, std::int64_t row) {
  const std::int32_t kind = args.general.mask_kind;
  const bool has_length = kind == SOFTMAX_MASK_CAUSAL || kind == SOFTMAX_MASK_ROW_LENGTH;
  return has_length ? masked_row_length(args, row) : args.layout().cols;
}

// Exactly.
__device__ __forceinline__ double load_wide(const void *data, std::int32_t dtype, std::int64_t at) {
  switch (dtype) {
    case SOFTMAX_DTYPE_F16: return __half2float(static_cast<const __half *>(data)[at]);
    case SOFTMAX_DTYPE_BF16: return __bfloat162float(static_cast<const __nv_bfloat16 *>(data)[at]);
    case SOFTMAX_DTYPE_F64: return static_cast<const double *>(data)[at];
    case SOFTMAX_DTYPE_F8_E4M3: return to_float(static_cast<const f8_e4m3_t *>(data)[at]);
    case SOFTMAX_DTYPE_F8_E5M2: return to_float(static_cast<const f8_e5m2_t *>(data)[at]);
    default: return static_cast<const float *>(data)[at];
  }
}

// A finite number stays one, so that an 8-bit type saturates and does not become infinite.
__device__ __forceinline__ float to_float_range(double v) {
  constexpr double kMost = 3.4028234663852886e+38;
  if (v > kMost && v < Limits<double>::infinity()) return static_cast<float>(kMost);
  if (v < -kMost && v > -Limits<double>::infinity()) return static_cast<float>(-kMost);
  return static_cast<float>(v);
}

// To narrow types by way of float32, whose rounding is no more than 2^-13 of theirs.
__device__ __forceinline__ void store_wide(void *data, std::int32_t dtype, std::int64_t at,
                                           double value) {
  switch (dtype) {
    case SOFTMAX_DTYPE_F16:
      static_cast<__half *>(data)[at] = __float2half_rn(static_cast<float>(value));
      return;
    case SOFTMAX_DTYPE_BF16:
      static_cast<__nv_bfloat16 *>(data)[at] = __float2bfloat16_rn(static_cast<float>(value));
      return;
    case SOFTMAX_DTYPE_F64: static_cast<double *>(data)[at] = value; return;
    case SOFTMAX_DTYPE_F8_E4M3:
      static_cast<f8_e4m3_t *>(data)[at] = to_f8_e4m3(to_float_range(value));
      return;
    case SOFTMAX_DTYPE_F8_E5M2:
      static_cast<f8_e5m2_t *>(data)[at] = to_f8_e5m2(to_float_range(value));
      return;
    default: static_cast<float *>(data)[at] = static_cast<float>(value); return;
  }
}

}  // namespace softmax
