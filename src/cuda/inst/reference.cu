// The reference kernels, for every pair of types.
#include "cuda/inst/instantiate.cuh"
#include "cuda/reference.cuh"

SOFTMAX_INSTANTIATE(reference)
