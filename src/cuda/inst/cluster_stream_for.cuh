// The cluster kernels for many rows, for every pair of types, way to memory and operation that
// for_stream has, with so many threads a block: each number of them is a file of its own, for the
// time it takes to build.
#pragma once

#include "cuda/cluster_stream.cuh"
#include "cuda/inst/instantiate.cuh"

namespace softmax {

template <int kMostThreads>
const void *cluster_stream_for(std::int32_t x, std::int32_t y, std::int32_t packs, RowAccess access,
                               bool is_log) {
  return for_stream(x, y, packs, access, [=](auto types, auto way, auto count) {
    using X = typename decltype(types)::X;
    using Y = typename decltype(types)::Y;
    constexpr RowAccess kAccess = decltype(way)::value;
    constexpr int kPacks = decltype(count)::value;
    return is_log ? address(cluster_stream_kernel<X, Y, kPacks, kAccess, kMostThreads, true>)
                  : address(cluster_stream_kernel<X, Y, kPacks, kAccess, kMostThreads, false>);
  });
}

}  // namespace softmax
