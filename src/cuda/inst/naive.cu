// The naive kernels, for every pair of types.
#include "cuda/inst/instantiate.cuh"
#include "cuda/naive.cuh"

SOFTMAX_INSTANTIATE(naive)
