// The shuffle kernels, for every pair of types.
#include "cuda/inst/instantiate.cuh"
#include "cuda/shuffle.cuh"

SOFTMAX_INSTANTIATE(shuffle)
