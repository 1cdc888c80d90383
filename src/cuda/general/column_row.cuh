// What COLUMN's kernels make of the maximum and the sums of a row that lies across memory.
#pragma once

#include "cuda/general/part_terms.cuh"
#include "cuda/general/row_numbers.cuh"
#include "cuda/general/row_team.cuh"

namespace softmax {

__device__ __forceinline__ double sink_of_row(const GeneralArgs &args, std::int64_t row) {
  if (args.buffers.sink == nullptr || row < 0) return -Limits<double>::infinity();
  return args.buffers.sink[row_begin(args, kTensorSink, row)];
}

// Of a row that is not finite: whether it is NaN, or empty and 0.
__device__ __forceinline__ bool is_nan_row(const GeneralArgs &args, float max, double sink) {
  const double infinity = Limits<double>::infinity();
  if (!(max < Limits<float>::infinity()) || !(sink < infinity)) return true;
  return max == -Limits<float>::infinity() && !(sink > -infinity || args.empty_is_zero);
}

// `top` is what the maximum is of v. Of a row that is not finite: what makes NaN, or -inf, of its
// elements.
__device__ __forceinline__ float column_log_sum(const GeneralArgs &args, float max, double top,
                                                double sink, double reference,
                                                const RowSums &sums) {
  const float nan = Limits<float>::infinity() - Limits<float>::infinity();
  if (!is_finite_number(max)) return is_nan_row(args, max, sink) ? nan : 0.0f;
  if (!(sink < Limits<double>::infinity())) return nan;
  const double rest = rest_of_sum(sums.ones, sums.others, reference, top);
  return sink > -Limits<double>::infinity() ? row_log_sum(rest, sink, top)
                                            : log_of_rest(rest);
}

// The factor of terms, which are in units: hi, lo, and what the term is multiplied with before.
__device__ __forceinline__ void put_factor(double factor, float (&number)[3]) {
  // Where the factor is far below 1, results are below the normal range: 2^64 changes places.
  const bool is_small = factor < 0x1p-100;
  const double shifted = is_small ? factor * 0x1p64 : factor;
  number[0] = static_cast<float>(shifted);
  number[1] = static_cast<float>(shifted - double(number[0]));
  number[2] = is_small ? 0x1p-64f : 1.0f;
}
// The same of a sum of terms, the sink's not among them, against `reference`.
__device__ __forceinline__ void put_sum_factor(const GeneralArgs &args, float max, double sink,
                                               double reference, double sum, float (&number)[3]) {
  const float nan = Limits<float>::infinity() - Limits<float>::infinity();
  if (!is_finite_number(max) || !(sink < Limits<double>::infinity())) {
    number[0] = is_nan_row(args, max, sink) ? nan : 0.0f;
    number[1] = 0.0f;
    number[2] = 1.0f;
    return;
  }
  if (sink > -Limits<double>::infinity()) sum += 0x1p64 * exp(sink - reference);
  // Beside a sink that is so much larger nothing is left of a row.
  put_factor(sum < 0x1p1000 ? near_reciprocal(sum) : 0.0, number);
}

}  // namespace softmax
