// TEMPORARY scalar backend, replaced by the SIMD one.
#include "cpu/backend.h"

#include <omp.h>

#include <cstdio>

#include "core/dtype.h"
#include "core/numerics.h"

namespace softmax {
void cpu_open(DeviceCaps *caps) {
  *caps = DeviceCaps{};
  std::snprintf(caps->description, sizeof caps->description, "CPU, %d threads", cpu_threads());
}
int cpu_threads() { return omp_get_max_threads(); }
const char *cpu_simd_name() { return "scalar"; }
template <typename X, typename Y>
void naive(const Problem &p, const Buffers &b) {
  using T = typename Element<X>::Acc;
  const X *x = static_cast<const X *>(b.x);
  Y *y = static_cast<Y *>(b.y);
#pragma omp parallel for
  for (std::int64_t i = 0; i < p.rows; ++i) {
    OnlineSum<T> sum;
    for (std::int64_t j = 0; j < p.cols; ++j) sum.add(Element<X>::load(x[i * p.cols + j]));
    const RowFactors<T> f = finish(sum.pair(), p.empty_is_zero());
    for (std::int64_t j = 0; j < p.cols; ++j)
      y[i * p.cols + j] =
          Element<Y>::store(output_value(T(Element<X>::load(x[i * p.cols + j])), f, p.is_log()));
  }
}
void cpu_run(const Policy &, const Problem &p, const Buffers &b) {
  if (p.x_dtype == SOFTMAX_DTYPE_F64) return naive<double, double>(p, b);
  if (p.x_dtype == SOFTMAX_DTYPE_F32) return naive<float, float>(p, b);
  if (p.x_dtype == SOFTMAX_DTYPE_F16)
    return p.y_dtype == SOFTMAX_DTYPE_F32 ? naive<f16_t, float>(p, b) : naive<f16_t, f16_t>(p, b);
  return p.y_dtype == SOFTMAX_DTYPE_F32 ? naive<bf16_t, float>(p, b) : naive<bf16_t, bf16_t>(p, b);
}
}  // namespace softmax
