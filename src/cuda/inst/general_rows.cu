// The kernels for dense rows of the general call, for every type of x and number of packs.
#include "cuda/general/kernels.h"
#include "cuda/general/rows.cuh"

namespace softmax {
namespace {

const void *address(void (*kernel)(GeneralArgs)) { return reinterpret_cast<const void *>(kernel); }

template <typename X, int kValues, bool kIsAdded, int kRegisters = kRowsRegisters>
const void *with_values() {
  constexpr int kCols = kWordBytes / static_cast<int>(sizeof(X));
  return address(general_rows_kernel<X, kValues / kCols, kIsAdded, kRegisters>);
}

// 8, 16 or 32 elements a thread; with an additive mask up to 16.
template <typename X, bool kIsAdded>
const void *with_packs(std::int32_t packs, bool is_alone) {
  constexpr int kCols = kWordBytes / static_cast<int>(sizeof(X));
  switch (packs * kCols) {
    case 8:
      if constexpr (kCols <= 8) return with_values<X, 8, kIsAdded>();
      return nullptr;
    case 16: return with_values<X, 16, kIsAdded>();
    case 32:
      if constexpr (sizeof(X) == 4 && !kIsAdded) {
        if (is_alone) return with_values<X, 32, false, kRowsManyRegisters>();
      }
      if constexpr (!kIsAdded) return with_values<X, 32, false>();
      return nullptr;
    default: return nullptr;
  }
}

template <bool kIsAdded>
const void *for_x(std::int32_t x_dtype, std::int32_t packs, bool is_alone) {
  switch (x_dtype) {
    case SOFTMAX_DTYPE_F32: return with_packs<float, kIsAdded>(packs, is_alone);
    case SOFTMAX_DTYPE_F16: return with_packs<__half, kIsAdded>(packs, is_alone);
    case SOFTMAX_DTYPE_BF16: return with_packs<__nv_bfloat16, kIsAdded>(packs, is_alone);
    case SOFTMAX_DTYPE_F8_E4M3:
    case SOFTMAX_DTYPE_F8_E5M2: return with_packs<F8Byte, kIsAdded>(packs, is_alone);
    default: return nullptr;
  }
}

}  // namespace

const void *general_rows_kernel_for(std::int32_t x_dtype, std::int32_t packs, bool is_added,
                                    bool is_alone) {
  return is_added ? for_x<true>(x_dtype, packs, is_alone) : for_x<false>(x_dtype, packs, is_alone);
}

}  // namespace softmax
