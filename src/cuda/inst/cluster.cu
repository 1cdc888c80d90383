// The cluster kernels, for every pair of types, number of packs and way to memory.
#include "cuda/cluster.cuh"
#include "cuda/inst/instantiate.cuh"

namespace softmax {

const void *cluster_kernel_for(std::int32_t x, std::int32_t y, std::int32_t packs,
                               RowAccess access) {
  return for_access(x, y, access, [=](auto types, auto way) -> const void * {
    using X = typename decltype(types)::X;
    using Y = typename decltype(types)::Y;
    constexpr RowAccess kAccess = decltype(way)::value;
    if (packs == 4) return address(cluster_kernel<X, Y, 4, kAccess>);
    // Eight packs of widened values, or of float64, are more than a thread can hold.
    if constexpr (sizeof(X) == sizeof(Y) && sizeof(X) < 8) {
      if (packs == 8) return address(cluster_kernel<X, Y, 8, kAccess>);
    }
    return nullptr;
  });
}

}  // namespace softmax
