// SIMD kernels for float64.
// The order of the includes matters.
// clang-format off
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels_f64.cc"
#include "hwy/foreach_target.h"  // includes this file once for each target
#include "cpu/rows-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace softmax {
namespace HWY_NAMESPACE {

const Kernels *table_f64_f64() { return kernel_table<double, double>(); }

}  // namespace HWY_NAMESPACE
}  // namespace softmax
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace softmax {

HWY_EXPORT(table_f64_f64);
const Kernels *kernels_f64_f64() { return HWY_DYNAMIC_DISPATCH(table_f64_f64)(); }

}  // namespace softmax
#endif
