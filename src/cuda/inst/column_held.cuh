// The kernels for rows that lie across memory and fit in registers, for every type of x.
#pragma once

#include "core/held_column.h"
#include "cuda/column_held.cuh"
#include "cuda/general/kernels.h"

namespace softmax {

inline const void *held_column_address(void (*kernel)(GeneralArgs)) {
  return reinterpret_cast<const void *>(kernel);
}

template <typename X, bool kIsApart>
const void *held_column_for_shape(std::int32_t threads, std::int32_t lanes) {
  constexpr int kPositions = held_positions(sizeof(X));
  if (threads == 1) {
    return held_column_address(held_column_kernel<X, 2, kHeldAlonePositions, kIsApart, true>);
  }
  if constexpr (sizeof(X) == 1) {
    if (lanes == 4) {
      return held_column_address(held_column_kernel<X, 4, kPositions, kIsApart, false>);
    }
  }
  return held_column_address(held_column_kernel<X, 2, kPositions, kIsApart, false>);
}

template <bool kIsApart>
const void *held_column_for_x(std::int32_t x_dtype, std::int32_t threads, std::int32_t lanes) {
  switch (x_dtype) {
    case SOFTMAX_DTYPE_F32: return held_column_for_shape<float, kIsApart>(threads, lanes);
    case SOFTMAX_DTYPE_F16: return held_column_for_shape<__half, kIsApart>(threads, lanes);
    case SOFTMAX_DTYPE_BF16: return held_column_for_shape<__nv_bfloat16, kIsApart>(threads, lanes);
    case SOFTMAX_DTYPE_F8_E4M3:
    case SOFTMAX_DTYPE_F8_E5M2: return held_column_for_shape<F8Byte, kIsApart>(threads, lanes);
    default: return nullptr;
  }
}

}  // namespace softmax
