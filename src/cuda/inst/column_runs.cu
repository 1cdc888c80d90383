// Rows of few columns that lie across memory, in runs of whole words.
#include "cuda/column_runs.cuh"
#include "cuda/general/kernels.h"

namespace softmax {
namespace {

template <typename X>
const void *kernel(bool is_apart) {
  return is_apart ? reinterpret_cast<const void *>(column_runs_kernel<X, true>)
                  : reinterpret_cast<const void *>(column_runs_kernel<X, false>);
}

}  // namespace

const void *column_runs_kernel_for(std::int32_t dtype, bool is_apart) {
  switch (dtype) {
    case SOFTMAX_DTYPE_F32: return kernel<float>(is_apart);
    case SOFTMAX_DTYPE_F16: return kernel<__half>(is_apart);
    case SOFTMAX_DTYPE_BF16: return kernel<__nv_bfloat16>(is_apart);
    default: return nullptr;
  }
}

}  // namespace softmax
