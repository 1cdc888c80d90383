// The kernels for softmax of dense rows that a block has alone.
#include "cuda/general/alone_rows.cuh"
#include "cuda/general/kernels.h"

namespace softmax {
namespace {

template <typename X, typename Y>
const void *kernel() {
  constexpr int kPacks = kPersistentValues * static_cast<int>(sizeof(X)) / kWordBytes;
  return reinterpret_cast<const void *>(general_alone_kernel<X, Y, kPacks>);
}

template <typename X>
const void *narrow_kernel(bool to_float) {
  return to_float ? kernel<X, float>() : kernel<X, X>();
}

}  // namespace

const void *general_alone_kernel_for(std::int32_t x_dtype, std::int32_t y_dtype) {
  const bool to_float = y_dtype == SOFTMAX_DTYPE_F32;
  if (!to_float && x_dtype != y_dtype) return nullptr;
  switch (x_dtype) {
    case SOFTMAX_DTYPE_F32: return kernel<float, float>();
    case SOFTMAX_DTYPE_F16: return narrow_kernel<__half>(to_float);
    case SOFTMAX_DTYPE_BF16: return narrow_kernel<__nv_bfloat16>(to_float);
    default: return nullptr;
  }
}

}  // namespace softmax
