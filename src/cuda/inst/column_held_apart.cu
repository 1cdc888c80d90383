// Log-softmax and statistics of rows that lie across memory and fit in registers.
#include "cuda/inst/column_held.cuh"

namespace softmax {

const void *held_column_apart_kernel_for(std::int32_t x_dtype, std::int32_t threads,
                                         std::int32_t lanes) {
  return held_column_for_x<true>(x_dtype, threads, lanes);
}

}  // namespace softmax
