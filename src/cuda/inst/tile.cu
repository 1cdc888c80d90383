// The tile kernels, for every pair of types.
#include "cuda/inst/instantiate.cuh"
#include "cuda/tile.cuh"

SOFTMAX_INSTANTIATE(tile)
