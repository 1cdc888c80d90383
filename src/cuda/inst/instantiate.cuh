// One line instantiates a kernel for every pair of types and gives the function that looks it up.
#pragma once

#include <type_traits>

#include "core/dtype.h"
#include "core/held_rows.h"
#include "cuda/kernels.h"
#include "cuda/prim/row.cuh"

// Pairs are those of dtype_pair_supported; a test asks for every one of them. Further template
// arguments follow the pair.
#define SOFTMAX_INSTANTIATE_AS(lookup, kernel, ...)                                           \
  namespace softmax {                                                                         \
  const void *lookup(std::int32_t x, std::int32_t y) {                                        \
    if (x == SOFTMAX_DTYPE_F32 && y == x) return address(kernel<float, float __VA_ARGS__>);   \
    if (x == SOFTMAX_DTYPE_F64 && y == x) return address(kernel<double, double __VA_ARGS__>); \
    if (x == SOFTMAX_DTYPE_F16 && y == x) return address(kernel<__half, __half __VA_ARGS__>); \
    if (x == SOFTMAX_DTYPE_F16 && y == SOFTMAX_DTYPE_F32) {                                   \
      return address(kernel<__half, float __VA_ARGS__>);                                      \
    }                                                                                         \
    if (x == SOFTMAX_DTYPE_BF16 && y == x) {                                                  \
      return address(kernel<__nv_bfloat16, __nv_bfloat16 __VA_ARGS__>);                       \
    }                                                                                         \
    if (x == SOFTMAX_DTYPE_BF16 && y == SOFTMAX_DTYPE_F32) {                                  \
      return address(kernel<__nv_bfloat16, float __VA_ARGS__>);                               \
    }                                                                                         \
    return nullptr;                                                                           \
  }                                                                                           \
  }

#define SOFTMAX_INSTANTIATE(stem) SOFTMAX_INSTANTIATE_AS(stem##_kernel_for, stem##_kernel, )

namespace softmax {

inline const void *address(void (*kernel)(RowArgs)) {
  return reinterpret_cast<const void *>(kernel);
}

// For kernels with more parameters than the types: look_up(TypesOf<X, Y>()) for the pair, or null.
template <typename XType, typename YType>
struct TypesOf {
  using X = XType;
  using Y = YType;
};

template <typename LookUp>
const void *for_types(std::int32_t x, std::int32_t y, LookUp look_up) {
  if (x == SOFTMAX_DTYPE_F32 && y == x) return look_up(TypesOf<float, float>());
  if (x == SOFTMAX_DTYPE_F64 && y == x) return look_up(TypesOf<double, double>());
  if (x == SOFTMAX_DTYPE_F16 && y == x) return look_up(TypesOf<__half, __half>());
  if (x == SOFTMAX_DTYPE_F16 && y == SOFTMAX_DTYPE_F32) return look_up(TypesOf<__half, float>());
  if (x == SOFTMAX_DTYPE_BF16 && y == x) return look_up(TypesOf<__nv_bfloat16, __nv_bfloat16>());
  if (x == SOFTMAX_DTYPE_BF16 && y == SOFTMAX_DTYPE_F32) {
    return look_up(TypesOf<__nv_bfloat16, float>());
  }
  return nullptr;
}

// The same for rows in registers: look_up(TypesOf<X, Y>(), the way to memory as a constant).
template <typename LookUp>
const void *for_access(std::int32_t x, std::int32_t y, RowAccess access, LookUp look_up) {
  return for_types(x, y, [=](auto types) -> const void * {
    switch (access) {
      case RowAccess::kWords:
        return look_up(types, std::integral_constant<RowAccess, RowAccess::kWords>());
      case RowAccess::kUnits:
        return look_up(types, std::integral_constant<RowAccess, RowAccess::kUnits>());
      case RowAccess::kWindow:
        return look_up(types, std::integral_constant<RowAccess, RowAccess::kWindow>());
    }
    return nullptr;
  });
}

// The same for those with rows on their way: look_up(TypesOf<X, Y>(), way, packs as a constant).
// They have as many packs as the kernels for few rows have there (spread_policy), and none are for
// float64 and for 16-bit rows by elements (stream_policy).
template <typename LookUp>
const void *for_stream(std::int32_t x, std::int32_t y, std::int32_t packs, RowAccess access,
                       LookUp look_up) {
  return for_access(x, y, access, [=](auto types, auto way) -> const void * {
    using X = typename decltype(types)::X;
    using Y = typename decltype(types)::Y;
    constexpr bool kIsUnits = decltype(way)::value == RowAccess::kUnits;
    if constexpr (sizeof(X) == 8 || (sizeof(X) == 2 && kIsUnits)) {
      return nullptr;
    } else {
      constexpr int kPacks = sizeof(X) == sizeof(Y) ? 8 : 4;
      if (packs != kPacks) return nullptr;
      return look_up(types, way, std::integral_constant<int, kPacks>());
    }
  });
}

}  // namespace softmax
