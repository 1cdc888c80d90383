// The kernels for statistics alone of dense rows: 32 elements a thread, as BLOCK and CLUSTER have.
#include "cuda/general/kernels.h"
#include "cuda/general/stats_rows.cuh"

namespace softmax {
namespace {

template <typename X>
const void *kernel() {
  constexpr int kPacks = 32 * static_cast<int>(sizeof(X)) / kWordBytes;
  return reinterpret_cast<const void *>(general_stats_kernel<X, kPacks>);
}

}  // namespace

const void *general_stats_kernel_for(std::int32_t x_dtype) {
  switch (x_dtype) {
    case SOFTMAX_DTYPE_F32: return kernel<float>();
    case SOFTMAX_DTYPE_F16: return kernel<__half>();
    case SOFTMAX_DTYPE_BF16: return kernel<__nv_bfloat16>();
    default: return nullptr;
  }
}

}  // namespace softmax
