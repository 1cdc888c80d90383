// The grid kernels for many rows that are written one behind, for every pair of types, way to
// memory and operation. None for float64: see can_lag.
#include "cuda/grid_lagged.cuh"
#include "cuda/inst/instantiate.cuh"

namespace softmax {

const void *grid_lagged_kernel_for(std::int32_t x, std::int32_t y, std::int32_t packs,
                                   RowAccess access, bool is_log) {
  return for_access(x, y, access, [=](auto types, auto way) -> const void * {
    using X = typename decltype(types)::X;
    using Y = typename decltype(types)::Y;
    constexpr RowAccess kAccess = decltype(way)::value;
    // As of grid_stream.cu.
    if constexpr (sizeof(X) == 8 || (sizeof(X) == 2 && kAccess == RowAccess::kUnits)) {
      return nullptr;
    } else {
      // As many packs as GRID's few rows have: see spread_policy.
      constexpr int kPacks = sizeof(X) == sizeof(Y) ? 8 : 4;
      if (packs != kPacks) return nullptr;
      return is_log ? address(grid_lagged_kernel<X, Y, kPacks, kAccess, true>)
                    : address(grid_lagged_kernel<X, Y, kPacks, kAccess, false>);
    }
  });
}

}  // namespace softmax
