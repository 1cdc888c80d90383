// What every row kernel shares: its one argument, the loop over rows, and the steps of a row.
#pragma once

#include <cstdint>

#include "core/numerics.h"
#include "cuda/prim/element.cuh"
#include "cuda/prim/pack.cuh"
#include "cuda/prim/reduce.cuh"
#include "cuda/row_args.h"

namespace softmax {

constexpr int kMaxBlockThreads = 256;

// Where a thread's row is. The loop over rows is uniform over the block: a thread whose row is past
// the end goes along with zero columns, because it must reach the same barriers as the others.
template <typename X, typename Y>
struct RowView {
  const X *x;
  Y *y;
  std::int64_t cols;

  __device__ __forceinline__ RowView(const RowArgs &args, std::int64_t row) {
    const bool present = row < args.rows;
    const std::int64_t offset = present ? row * args.cols : 0;
    x = static_cast<const X *>(args.x) + offset;
    y = static_cast<Y *>(args.y) + offset;
    cols = present ? args.cols : 0;
  }
};

// Calls body(view) for every row of this block, blockDim.y at a time.
template <typename X, typename Y, typename Body>
__device__ __forceinline__ void for_each_row(const RowArgs &args, Body body) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.y;
  for (std::int64_t first = std::int64_t{blockIdx.x} * blockDim.y; first < args.rows;
       first += stride) {
    body(RowView<X, Y>(args, first + threadIdx.y));
  }
}

// Adds the terms exp(x - reference) of a pack. Softmax needs the sum alone, and a pack's terms are
// added plainly before the compensated addition; log-softmax also needs what is left when the
// maximum's own 1 is taken out, so no term may be rounded into another.
template <typename Acc, int kCols>
__device__ __forceinline__ void add_terms(CompensatedSum<Acc> &sum, const Acc (&value)[kCols],
                                          Acc reference, bool is_log) {
  Acc term[kCols];
#pragma unroll
  for (int i = 0; i < kCols; ++i) term[i] = exp_of(raw_difference(value[i], reference));
  if (is_log) {
#pragma unroll
    for (int i = 0; i < kCols; ++i) sum.add(term[i]);
  } else {
    Acc total = term[0];
#pragma unroll
    for (int i = 1; i < kCols; ++i) total += term[i];
    sum.add(total);
  }
}

// The last pass of the pack kernels: every thread writes the packs that it read.
template <StoreHint hint, typename X, typename Y>
__device__ __forceinline__ void write_packs(const RowView<X, Y> &row, std::int64_t first,
                                            std::int64_t stride,
                                            const RowFactors<AccOf<X>> &factors, bool is_log) {
  const bool x_aligned = is_word_aligned(row.x);
  const bool y_aligned = is_word_aligned(row.y);
  for (std::int64_t col = first; col < row.cols; col += stride) {
    Pack<X> pack;
    pack.load(row.x, col, row.cols, x_aligned);
    if (is_log) {
#pragma unroll
      for (auto &value : pack.value) value = log_softmax_value(value, factors);
    } else {
#pragma unroll
      for (auto &value : pack.value) value = softmax_value(value, factors);
    }
    pack.template store<hint>(row.y, col, row.cols, y_aligned);
  }
}

}  // namespace softmax
