// What follows from a row's maximum and sums, for the general call's kernels that hold rows on
// chip: its statistics, and the logarithm of its sum.
#pragma once

#include "core/scaled_exp.h"
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
    double rest = 0.0;  // the sum less a maximum's own 1
    if (n.max == -Limits<float>::infinity()) {
      top = sink;
    } else {
      rest = double(n.ones) - 1.0 + n.others * 0x1p-64 * wide_exp(n.reference - top);
      const double less = wide_exp(-fabs(sink - top));
      rest = sink > top ? (1.0 + rest) * less : rest + less;
      top = sink > top ? sink : top;
    }
    stored = static_cast<float>(top);
    const bool is_finite = stored > -infinity && stored < infinity;
    sum = is_finite ? (1.0 + rest) * wide_exp(top - stored) : 0.0;
    lse = is_finite ? top + log1p(rest) : stored;
  }
  if (b.row_max != nullptr) b.row_max[row] = float(stored);
  if (b.row_sum != nullptr) b.row_sum[row] = float(sum);
  if (b.lse != nullptr) b.lse[row] = float(lse);
}

// log(1 + rest), rest being what is less than the maximum's own 1, of a row with this sink: by way
// of float32 where that is enough.
static __device__ __noinline__ float row_log_sum(double rest, double sink, double top) {
  const double over = sink - top;
  if (over > 60.0) return static_cast<float>(over + log1p((1.0 + rest) * wide_exp(-over)));
  return log_1_plus(static_cast<float>(rest + wide_exp(over)));
}

}  // namespace softmax
