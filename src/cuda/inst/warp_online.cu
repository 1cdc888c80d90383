// The warp_online kernels, for every pair of types.
#include "cuda/inst/instantiate.cuh"
#include "cuda/warp_online.cuh"

SOFTMAX_INSTANTIATE(warp_online)
