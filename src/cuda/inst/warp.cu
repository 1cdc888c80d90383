// The warp kernels, for every pair of types, number of packs and way to memory.
#include "cuda/inst/instantiate.cuh"
#include "cuda/warp.cuh"

namespace softmax {

const void *warp_kernel_for(std::int32_t x, std::int32_t y, std::int32_t packs, bool staged) {
  return for_types(x, y, [=](auto types) -> const void * {
    using X = typename decltype(types)::X;
    using Y = typename decltype(types)::Y;
    switch (packs) {
      case 1: return address(staged ? warp_kernel<X, Y, 1, true> : warp_kernel<X, Y, 1, false>);
      case 2: return address(staged ? warp_kernel<X, Y, 2, true> : warp_kernel<X, Y, 2, false>);
      case 4: return address(staged ? warp_kernel<X, Y, 4, true> : warp_kernel<X, Y, 4, false>);
      case 8: return address(staged ? warp_kernel<X, Y, 8, true> : warp_kernel<X, Y, 8, false>);
      default: return nullptr;
    }
  });
}

}  // namespace softmax
