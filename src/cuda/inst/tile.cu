// The tile kernels, for every pair of types and every shape that unit_shape gives.
#include "cuda/inst/instantiate.cuh"
#include "cuda/tile.cuh"

namespace softmax {
namespace {

// With room for as many packs as rows of up to eight have.
template <typename X, typename Y, int kLanes>
const void *with_packs(int used_packs) {
  // Values take so many registers that more warps find room with fewer of them.
  if constexpr (sizeof(X) == 2 && sizeof(Y) == 2) {
    if (used_packs <= 5) return address(tile_kernel<X, Y, kLanes, 5>);
  }
  if constexpr ((sizeof(X) == 2 && sizeof(Y) == 2) || sizeof(X) == 8) {
    if (used_packs <= 6) return address(tile_kernel<X, Y, kLanes, 6>);
  }
  return address(tile_kernel<X, Y, kLanes, 8>);
}

}  // namespace

const void *tile_kernel_for(std::int32_t x, std::int32_t y, std::int32_t lanes, std::int32_t packs,
                            std::int32_t used_packs) {
  return for_types(x, y, [=](auto types) -> const void * {
    using X = typename decltype(types)::X;
    using Y = typename decltype(types)::Y;
    switch (lanes * 16 + packs) {
      case 1 * 16 + 1: return address(tile_kernel<X, Y, 1, 1>);
      case 1 * 16 + 2: return address(tile_kernel<X, Y, 1, 2>);
      case 1 * 16 + 4: return address(tile_kernel<X, Y, 1, 4>);
      case 1 * 16 + 8: return with_packs<X, Y, 1>(used_packs);
      case 2 * 16 + 8: return with_packs<X, Y, 2>(used_packs);
      case 4 * 16 + 8: return with_packs<X, Y, 4>(used_packs);
      case 8 * 16 + 8: return with_packs<X, Y, 8>(used_packs);
      case 16 * 16 + 8: return with_packs<X, Y, 16>(used_packs);
      case 32 * 16 + 8: return with_packs<X, Y, 32>(used_packs);
      default: return nullptr;
    }
  });
}

}  // namespace softmax
