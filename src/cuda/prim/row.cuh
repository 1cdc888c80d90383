// Rows on the device: the loop over a block's rows, and the columns that one thread takes of a row.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/numerics.h"
#include "cuda/prim/element.cuh"
#include "cuda/prim/pack.cuh"
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

// Calls body(view) for every row of this block, blockDim.y at a time. Rows go on grid.x, and the
// loop takes what a grid's 2^31 - 1 blocks leave over.
template <typename X, typename Y, typename Body>
__device__ __forceinline__ void for_each_row(const RowArgs &args, Body body) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.y;
  for (std::int64_t first = std::int64_t{blockIdx.x} * blockDim.y; first < args.rows;
       first += stride) {
    body(RowView<X, Y>(args, first + threadIdx.y));
  }
}

// The exponential that an output type needs: 16-bit results are rounded far more coarsely than
// CoarseExp is wrong.
template <typename X, typename Y>
using ExpFor =
    std::conditional_t<sizeof(Y) == 2, CoarseExp, ShiftedExp<typename DeviceElement<X>::Acc>>;

// ---- the columns of a thread: groups of kCount, from `first`, `step` apart ----
//
// A group is whole when all its columns exist and words may be used for it; whole groups come
// first, in a loop of their own without a check a column.

// Group member i is `stride` columns after member i - 1: with stride = threads, neighbouring
// threads read neighbouring columns; with stride = 1 a lone thread reads along its row. Four at a
// time, so that four loads and four exponentials are under way together.
template <typename X>
struct StridedCols {
  static constexpr int kCount = 4;
  using Acc = AccOf<X>;
  std::int64_t first;
  std::int64_t stride;

  __device__ __forceinline__ std::int64_t step() const { return kCount * stride; }

  // Columns before which a group must begin to be whole.
  __device__ __forceinline__ std::int64_t whole_end(std::int64_t cols, const void *,
                                                    const void *) const {
    return cols - (kCount - 1) * stride;
  }

  __device__ __forceinline__ void load(const X *row, std::int64_t col, std::int64_t cols,
                                       bool whole, Acc (&value)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      value[i] = whole || col + i * stride < cols ? load_element(row + col + i * stride)
                                                  : -Limits<Acc>::infinity();
    }
  }

  template <StoreHint hint, typename Y>
  __device__ __forceinline__ void store(Y *row, std::int64_t col, std::int64_t cols, bool whole,
                                        const Acc (&value)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (whole || col + i * stride < cols) store_element(row + col + i * stride, value[i]);
    }
  }
};

// Groups are packs of 16 bytes; thread t of n takes packs t, t + n, ...
template <typename X>
struct PackCols {
  static constexpr int kCount = kPackCols<X>;
  using Acc = AccOf<X>;
  std::int64_t first;
  std::int64_t stride;

  __device__ __forceinline__ PackCols(int thread, int threads)
      : first(std::int64_t{thread} * kCount), stride(std::int64_t{threads} * kCount) {}

  __device__ __forceinline__ std::int64_t step() const { return stride; }

  // Where one of the addresses is unaligned, no group is whole.
  __device__ __forceinline__ std::int64_t whole_end(std::int64_t cols, const void *x,
                                                    const void *y) const {
    return is_word_aligned(x) && is_word_aligned(y) ? cols - (kCount - 1) : 0;
  }

  __device__ __forceinline__ void load(const X *row, std::int64_t col, std::int64_t cols,
                                       bool whole, Acc (&value)[kCount]) const {
    load_pack(row, col, cols, whole, value);
  }

  template <StoreHint hint, typename Y>
  __device__ __forceinline__ void store(Y *row, std::int64_t col, std::int64_t cols, bool whole,
                                        const Acc (&value)[kCount]) const {
    store_pack<hint>(row, col, cols, whole, value);
  }
};

// Calls use(col, whole, value) with every group's elements, in the order of columns. Two whole
// groups are loaded before either is used, for twice the bytes in flight.
template <typename Cols, typename X, typename Use>
__device__ __forceinline__ void read_row(const Cols &columns, const X *row, std::int64_t cols,
                                         std::int64_t whole_end, Use use) {
  const std::int64_t step = columns.step();
  std::int64_t col = columns.first;
  for (; col + step < whole_end; col += 2 * step) {
    AccOf<X> value[2][Cols::kCount];
    columns.load(row, col, cols, true, value[0]);
    columns.load(row, col + step, cols, true, value[1]);
    use(col, true, value[0]);
    use(col + step, true, value[1]);
  }
  for (; col < cols; col += step) {
    const bool whole = col < whole_end;
    AccOf<X> value[Cols::kCount];
    columns.load(row, col, cols, whole, value);
    use(col, whole, value);
  }
}

template <typename Cols, typename X, typename Use>
__device__ __forceinline__ void read_row(const Cols &columns, const X *row, std::int64_t cols,
                                         Use use) {
  read_row(columns, row, cols, columns.whole_end(cols, row, row),
           [&](std::int64_t, bool, const auto &value) { use(value); });
}

// ---- the steps of a row ----

template <typename T, int kCount>
__device__ __forceinline__ T group_max(const T (&value)[kCount]) {
  T result = value[0];
#pragma unroll
  for (int i = 1; i < kCount; ++i) result = fmax(result, value[i]);
  return result;
}

// The last pass: every thread writes the columns that it read, so in place is safe.
template <StoreHint hint, typename X, typename Y, typename Cols>
__device__ __forceinline__ void write_row(const RowView<X, Y> &row, const Cols &columns,
                                          const RowFactors<AccOf<X>> &factors, bool is_log) {
  const ExpFor<X, Y> exp(factors.max, factors.correction);
  read_row(columns, row.x, row.cols, columns.whole_end(row.cols, row.x, row.y),
           [&](std::int64_t col, bool whole, auto &value) {
             if (is_log) {
#pragma unroll
               for (auto &v : value) v = exp.log_value(v, factors.log_sum);
             } else {
               exp.times(value, factors.inverse_sum, value);
             }
             columns.template store<hint>(row.y, col, row.cols, whole, value);
           });
}

}  // namespace softmax
