// What follows from a row's maximum and sums, for the general call's kernels that hold rows on
// chip: its statistics, and the logarithm of its sum.
#pragma once

#include "core/scaled_exp.h"
#include "core/wide_terms.h"
#include "cuda/general/args.h"
#include "cuda/general/wide_row.cuh"

namespace softmax {

// The numbers of a row's statistics.
struct RowNumbers {
  float max;         // of sign * x
  float ones;        // how many elements equal it
  double others;     // the sum of the other terms, in units
  double reference;  // of the terms
  float low;         // what rounding has taken from `max`
};

// The sum against `top` less a maximum's own 1, `top` being what the maximum is of v, or close to
// it.
__device__ __forceinline__ double rest_of_sum(float ones, double others, double reference,
                                              double top) {
  const double d = reference - top;  // moderate
  const float hi = static_cast<float>(d);
  const Split<float> e = exp_in_units(Split<float>{hi, static_cast<float>(d - double(hi))});
  return double(ones) - 1.0 + others * ((double(e.hi) + double(e.lo)) * 0x1p-128);
}

// exp(d) of what a float32 has rounded off, mostly.
__device__ __forceinline__ double exp_of_rounding(double d) {
  if (!(fabs(d) < 0x1p-10)) return wide_exp(d);
  return fma(d, fma(d, fma(d, 1.0 / 6.0, 0.5), 1.0), 1.0);
}

// row_max, row_sum and lse, by one thread.
static __device__ __noinline__ void write_row_stats(const GeneralArgs &args, std::int64_t row,
                                                    const RowNumbers &n) {
  const GeneralBuffers &b = args.buffers;
  const double infinity = Limits<double>::infinity();
  // Of what n.max is of: v itself, with an additive mask.
  const bool is_added = args.general.mask_kind == SOFTMAX_MASK_ADDITIVE;
  double scale = is_added ? 1.0 : fabs(args.general.scale);
  if (b.row_scale != nullptr && !is_added) scale *= fabs(double(b.row_scale[row]));
  double sink = -infinity;
  if (b.sink != nullptr) sink = b.sink[row_begin(args, kTensorSink, row)];
  double stored = -infinity, sum = 0.0, lse = -infinity;
  if (!(n.max < Limits<float>::infinity()) || !(sink < infinity)) {
    stored = sum = lse = infinity - infinity;
  } else if (n.max > -Limits<float>::infinity() || sink > -infinity) {
    double top = double(n.max) * scale + double(n.low);
    double rest = 0.0;
    if (n.max == -Limits<float>::infinity()) {
      top = sink;
    } else {
      rest = rest_of_sum(n.ones, n.others, n.reference, top);
      if (sink > -infinity) {
        const double less = wide_exp(-fabs(sink - top));
        rest = sink > top ? (1.0 + rest) * less : rest + less;
        top = sink > top ? sink : top;
      }
    }
    stored = static_cast<float>(top);
    const bool is_finite = stored > -infinity && stored < infinity;
    sum = is_finite ? (1.0 + rest) * exp_of_rounding(top - stored) : 0.0;
    lse = is_finite ? (b.lse != nullptr ? top + log1p(rest) : 0.0) : stored;
  }
  if (b.row_max != nullptr) b.row_max[row] = float(stored);
  if (b.row_sum != nullptr) b.row_sum[row] = float(sum);
  if (b.lse != nullptr) b.lse[row] = float(lse);
}

// exp(d) for d up to 600, in place of more than that; no call, unlike exp().
__device__ __forceinline__ double exp_of_sink(double d) {
  constexpr double kLog2E = 0x1.71547652b82fep+0;
  return wide_power_of_two((d < -600.0 ? -600.0 : d > 600.0 ? 600.0 : d) * kLog2E);
}

// log(1 + rest), for log-softmax: where the hardware's powers of two are in `rest` the bound has no
// room for another rounding of it.
__device__ __forceinline__ float log_of_rest(double rest) {
  const float hi = static_cast<float>(rest);
  const float lo = static_cast<float>(rest - double(hi));
  return fmaf(lo, near_reciprocal(1.0f + hi), log_1_plus(hi));
}

// log(1 + rest), rest being what is less than the maximum's own 1, of a row with this sink: by way
// of float32, which is enough. Beside a sink that is far above, the row is nothing.
__device__ __forceinline__ float row_log_sum(double rest, double sink, double top) {
  const double over = sink - top;
  if (over > 60.0) return static_cast<float>(over);
  return log_of_rest(rest + exp_of_sink(over));
}

}  // namespace softmax
