// The grid kernels for many rows, for every pair of types, way to memory and operation.
#include "cuda/grid_stream.cuh"
#include "cuda/inst/instantiate.cuh"

namespace softmax {

const void *grid_stream_kernel_for(std::int32_t x, std::int32_t y, std::int32_t packs,
                                   RowAccess access, bool is_log) {
  return for_access(x, y, access, [=](auto types, auto way) -> const void * {
    using X = typename decltype(types)::X;
    using Y = typename decltype(types)::Y;
    constexpr RowAccess kAccess = decltype(way)::value;
    // Such 16-bit rows are one slab, and none on its way; for float64 see stream_policy.
    if constexpr (sizeof(X) == 8 || (sizeof(X) == 2 && kAccess == RowAccess::kUnits)) {
      return nullptr;
    } else {
      // As many packs as GRID's few rows have: see spread_policy.
      constexpr int kPacks = sizeof(X) == sizeof(Y) ? 8 : 4;
      if (packs != kPacks) return nullptr;
      return is_log ? address(grid_stream_kernel<X, Y, kPacks, kAccess, true>)
                    : address(grid_stream_kernel<X, Y, kPacks, kAccess, false>);
    }
  });
}

}  // namespace softmax
