// The cluster kernels, for every pair of types.
#include "cuda/inst/instantiate.cuh"
#include "cuda/cluster.cuh"

SOFTMAX_INSTANTIATE(cluster)
