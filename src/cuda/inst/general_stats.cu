// The kernels for statistics alone of dense rows: 32 elements a thread, as BLOCK and CLUSTER have.
#include "cuda/general/kernels.h"
#include "cuda/general/stats_rows.cuh"

namespace softmax {
namespace {

template <typename X>
const void *kernel(bool is_lse) {
  constexpr int kPacks = 32 * static_cast<int>(sizeof(X)) / kWordBytes;
  return is_lse ? reinterpret_cast<const void *>(general_stats_kernel<X, kPacks, LseSums>)
                : reinterpret_cast<const void *>(general_stats_kernel<X, kPacks, ApartSums>);
}

}  // namespace

const void *general_stats_kernel_for(std::int32_t x_dtype, bool is_lse) {
  switch (x_dtype) {
    case SOFTMAX_DTYPE_F32: return kernel<float>(is_lse);
    case SOFTMAX_DTYPE_F16: return kernel<__half>(is_lse);
    case SOFTMAX_DTYPE_BF16: return kernel<__nv_bfloat16>(is_lse);
    default: return nullptr;
  }
}

}  // namespace softmax
