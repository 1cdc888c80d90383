// SIMD kernels for bfloat16.
// The order of the includes matters.
// clang-format off
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels_bf16.cc"
#include "hwy/foreach_target.h"  // includes this file once for each target
#include "cpu/rows-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace softmax {
namespace HWY_NAMESPACE {

const Kernels *table_bf16_bf16() { return kernel_table<bf16_t, bf16_t>(); }
const Kernels *table_bf16_f32() { return kernel_table<bf16_t, float>(); }

}  // namespace HWY_NAMESPACE
}  // namespace softmax
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace softmax {

HWY_EXPORT(table_bf16_bf16);
HWY_EXPORT(table_bf16_f32);
const Kernels *kernels_bf16_bf16() { return HWY_DYNAMIC_DISPATCH(table_bf16_bf16)(); }
const Kernels *kernels_bf16_f32() { return HWY_DYNAMIC_DISPATCH(table_bf16_f32)(); }

}  // namespace softmax
#endif
