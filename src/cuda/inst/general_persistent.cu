// The kernels for softmax of dense rows by clusters that stay.
#include "cuda/general/kernels.h"
#include "cuda/general/persistent_rows.cuh"

namespace softmax {
namespace {

template <typename X>
const void *kernel(bool has_mask) {
  constexpr int kPacks = kPersistentValues * static_cast<int>(sizeof(X)) / kWordBytes;
  return has_mask ? reinterpret_cast<const void *>(general_persistent_kernel<X, kPacks, true>)
                  : reinterpret_cast<const void *>(general_persistent_kernel<X, kPacks, false>);
}

}  // namespace

const void *general_persistent_kernel_for(std::int32_t x_dtype, bool has_mask) {
  switch (x_dtype) {
    case SOFTMAX_DTYPE_F32: return kernel<float>(has_mask);
    case SOFTMAX_DTYPE_F16: return kernel<__half>(has_mask);
    case SOFTMAX_DTYPE_BF16: return kernel<__nv_bfloat16>(has_mask);
    default: return nullptr;
  }
}

}  // namespace softmax
