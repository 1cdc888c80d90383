// SIMD kernels for float32.
// The order of the includes matters.
// clang-format off
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels_f32.cc"
#include "hwy/foreach_target.h"  // includes this file once for each target
#include "cpu/rows-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace softmax {
namespace HWY_NAMESPACE {

const Kernels *table_f32_f32() { return kernel_table<float, float>(); }

}  // namespace HWY_NAMESPACE
}  // namespace softmax
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace softmax {

HWY_EXPORT(table_f32_f32);
const Kernels *kernels_f32_f32() { return HWY_DYNAMIC_DISPATCH(table_f32_f32)(); }

}  // namespace softmax
#endif
