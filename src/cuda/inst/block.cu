// The block kernels, for every pair of types, number of packs and way to memory.
#include "cuda/block.cuh"
#include "cuda/inst/instantiate.cuh"

namespace softmax {

const void *block_kernel_for(std::int32_t x, std::int32_t y, std::int32_t packs, RowAccess access) {
  return for_access(x, y, access, [=](auto types, auto way) -> const void * {
    using X = typename decltype(types)::X;
    using Y = typename decltype(types)::Y;
    constexpr RowAccess kAccess = decltype(way)::value;
    if (packs == 4) return address(block_kernel<X, Y, 4, kAccess>);
    // Eight packs of widened values are more than a thread can hold.
    if constexpr (sizeof(X) == sizeof(Y)) {
      if (packs == 8) return address(block_kernel<X, Y, 8, kAccess>);
    }
    return nullptr;
  });
}

}  // namespace softmax
