// The grid kernels, for every pair of types, number of packs and way to memory.
#include "cuda/grid.cuh"
#include "cuda/inst/instantiate.cuh"

namespace softmax {

const void *grid_kernel_for(std::int32_t x, std::int32_t y, std::int32_t packs, bool staged) {
  return for_types(x, y, [=](auto types) -> const void * {
    using X = typename decltype(types)::X;
    using Y = typename decltype(types)::Y;
    if (packs == 4) {
      return address(staged ? grid_kernel<X, Y, 4, true> : grid_kernel<X, Y, 4, false>);
    }
    if constexpr (sizeof(X) == sizeof(Y)) {
      if (packs == 8) {
        return address(staged ? grid_kernel<X, Y, 8, true> : grid_kernel<X, Y, 8, false>);
      }
    }
    return nullptr;
  });
}

}  // namespace softmax
