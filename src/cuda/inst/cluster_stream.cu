// The cluster kernels for many rows, for every pair of types, way to memory and operation that
// for_stream has.
#include "cuda/cluster_stream.cuh"
#include "cuda/inst/instantiate.cuh"

namespace softmax {

const void *cluster_stream_kernel_for(std::int32_t x, std::int32_t y, std::int32_t packs,
                                      RowAccess access, bool is_log) {
  return for_stream(x, y, packs, access, [=](auto types, auto way, auto count) {
    using X = typename decltype(types)::X;
    using Y = typename decltype(types)::Y;
    constexpr RowAccess kAccess = decltype(way)::value;
    constexpr int kPacks = decltype(count)::value;
    return is_log ? address(cluster_stream_kernel<X, Y, kPacks, kAccess, true>)
                  : address(cluster_stream_kernel<X, Y, kPacks, kAccess, false>);
  });
}

}  // namespace softmax
