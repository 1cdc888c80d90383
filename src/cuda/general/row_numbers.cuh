// What follows from a row's maximum and sums, for the general call's kernels that hold rows on
// chip: its statistics, and the logarithm of its sum.
#pragma once

#include "core/scaled_exp.h"
#include "cuda/general/args.h"
#include "cuda/general/wide_row.cuh"

namespace softmax {

// What the threads of a row have found together.
struct RowSums {
  double others;  // in units, against the terms' reference
  float ones;     // elements that equal the maximum, where they are counted apart
};

// row_max, row_sum and lse of a row whose maximum is `max`, as sign * x, and `top`, as v. `sums`
// count the maximum's equals apart; `reference` is the terms'. A row has no sink where that is
// -inf.
static __device__ __noinline__ void write_row_stats(const GeneralArgs &args, std::int64_t row,
                                                    float max, double top, double sink,
                                                    double reference, double others, float ones) {
  const GeneralBuffers &b = args.buffers;
  const double infinity = Limits<double>::infinity();
  const bool is_nan = !(max < Limits<float>::infinity()) || !(sink < infinity);
  double stored = -infinity, sum = 0.0, lse = -infinity;
  if (is_nan) {
    stored = sum = lse = infinity - infinity;
  } else if (max > -Limits<float>::infinity() || sink > -infinity) {
    // The sum less a maximum's own 1.
    double rest = 0.0;
    if (max == -Limits<float>::infinity()) {
      top = sink;
    } else {
      rest = double(ones) - 1.0 + others * 0x1p-64 * wide_exp(reference - top);
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
