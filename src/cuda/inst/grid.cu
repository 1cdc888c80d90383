// The grid kernels, for every pair of types.
#include "cuda/inst/instantiate.cuh"
#include "cuda/grid.cuh"

SOFTMAX_INSTANTIATE(grid)
