// Algorithm 4, VECTOR: as SHUFFLE, with 16-byte loads and stores; three passes.
//
// A quarter (16-bit types: an eighth) of the load and store instructions, and as many bytes in
// flight for a quarter of the warps.
#pragma once

#include "cuda/prim/row.cuh"

namespace softmax {

template <typename X, typename Y>
__global__ void __launch_bounds__(kMaxBlockThreads) vector_kernel(RowArgs args) {
  using Acc = AccOf<X>;
  __shared__ RowScratch<Acc> scratch;
  const std::int64_t first = std::int64_t{threadIdx.x} * kPackCols<X>;
  const std::int64_t stride = std::int64_t{blockDim.x} * kPackCols<X>;

  for_each_row<X, Y>(args, [&](const RowView<X, Y> &row) {
    const bool aligned = is_word_aligned(row.x);
    Acc max = -Limits<Acc>::infinity();
    for (std::int64_t col = first; col < row.cols; col += stride) {
      Pack<X> pack;
      pack.load(row.x, col, row.cols, aligned);
      max = fmax(max, pack.max());
    }
    max = row_max(max, scratch);

    const Acc reference = finite_reference(max);
    CompensatedSum<Acc> sum;
    for (std::int64_t col = first; col < row.cols; col += stride) {
      Pack<X> pack;
      pack.load(row.x, col, row.cols, aligned);
      add_terms(sum, pack.value, reference, args.is_log);
    }
    sum = row_sum(sum, scratch);

    const auto factors = finish(Pair<Acc>{max, sum.without(Acc(1))}, args.empty_is_zero);
    write_packs<StoreHint::kNone>(row, first, stride, factors, args.is_log);
  });
}

}  // namespace softmax
