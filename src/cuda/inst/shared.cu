// The shared kernels, for every pair of types.
#include "cuda/inst/instantiate.cuh"
#include "cuda/shared.cuh"

SOFTMAX_INSTANTIATE(shared)
