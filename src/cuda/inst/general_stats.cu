// The kernels for statistics alone of dense rows: 32 elements a thread, as BLOCK and CLUSTER have;
// for log-sum-exps alone of 16-bit rows 64 as well.
#include "cuda/general/kernels.h"
#include "cuda/general/stats_rows.cuh"

namespace softmax {
namespace {

template <typename X>
const void *kernel(bool is_lse, bool is_wide) {
  constexpr int kPacks = 32 * static_cast<int>(sizeof(X)) / kWordBytes;
  if (!is_lse) return reinterpret_cast<const void *>(general_stats_kernel<X, kPacks, ApartSums>);
  if constexpr (sizeof(X) == 2) {
    if (is_wide) {
      return reinterpret_cast<const void *>(general_stats_kernel<X, 2 * kPacks, LseSums>);
    }
  }
  return reinterpret_cast<const void *>(general_stats_kernel<X, kPacks, LseSums>);
}

}  // namespace

const void *general_stats_kernel_for(std::int32_t x_dtype, bool is_lse, bool is_wide) {
  switch (x_dtype) {
    case SOFTMAX_DTYPE_F32: return kernel<float>(is_lse, is_wide);
    case SOFTMAX_DTYPE_F16: return kernel<__half>(is_lse, is_wide);
    case SOFTMAX_DTYPE_BF16: return kernel<__nv_bfloat16>(is_lse, is_wide);
    default: return nullptr;
  }
}

}  // namespace softmax
