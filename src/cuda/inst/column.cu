// The kernels for rows that lie across memory, for every type of x.
#include "cuda/column.cuh"
#include "cuda/general/kernels.h"

namespace softmax {
namespace {

const void *address(void (*kernel)(GeneralArgs)) { return reinterpret_cast<const void *>(kernel); }

}  // namespace

const void *column_kernel_for(std::int32_t x_dtype) {
  switch (x_dtype) {
    case SOFTMAX_DTYPE_F32: return address(column_kernel<float>);
    case SOFTMAX_DTYPE_F16: return address(column_kernel<__half>);
    case SOFTMAX_DTYPE_BF16: return address(column_kernel<__nv_bfloat16>);
    case SOFTMAX_DTYPE_F8_E4M3:
    case SOFTMAX_DTYPE_F8_E5M2: return address(column_kernel<F8Byte>);
    default: return nullptr;
  }
}

}  // namespace softmax
