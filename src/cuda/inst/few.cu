// The kernels of WARP and BLOCK for few rows, for every pair of types and both operations.
#include "cuda/few.cuh"
#include "cuda/inst/instantiate.cuh"

namespace softmax {

const void *few_kernel_for(std::int32_t x, std::int32_t y, bool is_log) {
  return for_types(x, y, [=](auto types) -> const void * {
    using X = typename decltype(types)::X;
    using Y = typename decltype(types)::Y;
    return is_log ? address(few_kernel<X, Y, true>) : address(few_kernel<X, Y, false>);
  });
}

}  // namespace softmax
