// Softmax of rows of few columns that lie across memory, in runs of whole words.
#include "cuda/column_runs.cuh"
#include "cuda/general/kernels.h"

namespace softmax {

const void *column_runs_kernel_for(std::int32_t dtype) {
  switch (dtype) {
    case SOFTMAX_DTYPE_F32: return reinterpret_cast<const void *>(column_runs_kernel<float>);
    case SOFTMAX_DTYPE_F16: return reinterpret_cast<const void *>(column_runs_kernel<__half>);
    case SOFTMAX_DTYPE_BF16:
      return reinterpret_cast<const void *>(column_runs_kernel<__nv_bfloat16>);
    default: return nullptr;
  }
}

}  // namespace softmax
