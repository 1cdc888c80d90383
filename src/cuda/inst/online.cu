// The online kernels, for every pair of types.
#include "cuda/inst/instantiate.cuh"
#include "cuda/online.cuh"

SOFTMAX_INSTANTIATE(online)
