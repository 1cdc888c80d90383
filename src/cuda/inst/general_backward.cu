// The kernels for gradients of dense rows of the general call, for every pair of types and number
// of packs.
#include "cuda/general/backward_rows.cuh"
#include "cuda/general/kernels.h"

namespace softmax {
namespace {

const void *address(void (*kernel)(GeneralArgs)) { return reinterpret_cast<const void *>(kernel); }

template <Gradient kKind, typename In, typename Out>
const void *with_packs(std::int32_t packs) {
  switch (packs) {
    case 2: return address(general_backward_kernel<kKind, In, Out, 2>);
    case 4:
      // In 16 bits what it takes to make p of x leaves no registers for more than two.
      if constexpr (kKind == Gradient::kLogSoftmaxFromX && sizeof(In) == 2) {
        return nullptr;
      } else {
        return address(general_backward_kernel<kKind, In, Out, 4>);
      }
    default: return nullptr;
  }
}

template <typename In, int kPacks, GradientRows kRows>
const void *log_words() {
  return address(general_backward_kernel<Gradient::kLogSoftmax, In, In, kPacks, kRows>);
}

// In a block, or less of it.
template <typename In>
const void *block_log_words(std::int32_t packs) {
  switch (packs) {
    case 2: return log_words<In, 2, GradientRows::kWords>();
    case 4: return log_words<In, 4, GradientRows::kWords>();
    default: return nullptr;
  }
}

template <typename In>
const void *cluster_log_words(std::int32_t packs) {
  return packs == 4 ? log_words<In, 4, GradientRows::kClusterWords>() : nullptr;
}

template <typename In, typename Out>
const void *with_kind(bool is_log, bool from_x, std::int32_t packs) {
  // x and dx are of one type.
  if constexpr (std::is_same_v<In, Out>) {
    if (from_x) {
      return is_log ? with_packs<Gradient::kLogSoftmaxFromX, In, Out>(packs)
                    : with_packs<Gradient::kSoftmaxFromX, In, Out>(packs);
    }
  }
  return is_log ? with_packs<Gradient::kLogSoftmax, In, Out>(packs)
                : with_packs<Gradient::kSoftmax, In, Out>(packs);
}

}  // namespace

const void *general_backward_kernel_for(std::int32_t in_dtype, std::int32_t dx_dtype, bool is_log,
                                        bool from_x, std::int32_t packs) {
  if (in_dtype == SOFTMAX_DTYPE_F32) {
    switch (dx_dtype) {
      case SOFTMAX_DTYPE_F32: return with_kind<float, float>(is_log, from_x, packs);
      case SOFTMAX_DTYPE_F16: return with_kind<float, __half>(is_log, from_x, packs);
      case SOFTMAX_DTYPE_BF16: return with_kind<float, __nv_bfloat16>(is_log, from_x, packs);
      default: return nullptr;
    }
  }
  if (in_dtype != dx_dtype) return nullptr;
  switch (in_dtype) {
    case SOFTMAX_DTYPE_F16: return with_kind<__half, __half>(is_log, from_x, packs);
    case SOFTMAX_DTYPE_BF16: return with_kind<__nv_bfloat16, __nv_bfloat16>(is_log, from_x, packs);
    default: return nullptr;
  }
}

const void *general_log_backward_kernel_for(std::int32_t dtype, std::int32_t packs,
                                            bool is_cluster) {
  switch (dtype) {
    case SOFTMAX_DTYPE_F32: return is_cluster ? cluster_log_words<float>(packs) : nullptr;
    case SOFTMAX_DTYPE_F16:
      return is_cluster ? cluster_log_words<__half>(packs) : block_log_words<__half>(packs);
    case SOFTMAX_DTYPE_BF16:
      return is_cluster ? cluster_log_words<__nv_bfloat16>(packs)
                        : block_log_words<__nv_bfloat16>(packs);
    default: return nullptr;
  }
}

}  // namespace softmax
