// The cluster kernels for many rows, 512 threads a block.
#include "cuda/inst/cluster_stream_for.cuh"

namespace softmax {

const void *cluster_stream_kernel_for(std::int32_t x, std::int32_t y, std::int32_t packs,
                                      RowAccess access, bool is_log) {
  return cluster_stream_for<kStreamThreads>(x, y, packs, access, is_log);
}

}  // namespace softmax
