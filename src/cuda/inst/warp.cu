// The warp kernels, for every pair of types, number of packs and way to memory.
#include "cuda/inst/instantiate.cuh"
#include "cuda/warp.cuh"

namespace softmax {

const void *warp_kernel_for(std::int32_t x, std::int32_t y, std::int32_t packs, RowAccess access) {
  return for_access(x, y, access, [=](auto types, auto way) -> const void * {
    using X = typename decltype(types)::X;
    using Y = typename decltype(types)::Y;
    constexpr RowAccess kAccess = decltype(way)::value;
    switch (packs) {
      case 1: return address(warp_kernel<X, Y, 1, kAccess>);
      case 2: return address(warp_kernel<X, Y, 2, kAccess>);
      case 4: return address(warp_kernel<X, Y, 4, kAccess>);
      case 8: return address(warp_kernel<X, Y, 8, kAccess>);
      default: return nullptr;
    }
  });
}

}  // namespace softmax
