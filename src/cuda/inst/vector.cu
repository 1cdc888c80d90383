// The vector kernels, for every pair of types.
#include "cuda/inst/instantiate.cuh"
#include "cuda/vector.cuh"

SOFTMAX_INSTANTIATE(vector)
