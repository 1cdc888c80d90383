// The table of algorithms: number and stem. One stem names the file, the docs and the tuning rows.
#pragma once

#include <cstdint>

#include "softmax.h"

namespace softmax {

struct AlgoName {
  std::int32_t algo;
  const char *name;
};

constexpr AlgoName kAlgoNames[] = {
    {SOFTMAX_ALGO_AUTO, "auto"},
    {SOFTMAX_ALGO_NAIVE, "naive"},
    {SOFTMAX_ALGO_SHARED, "shared"},
    {SOFTMAX_ALGO_SHUFFLE, "shuffle"},
    {SOFTMAX_ALGO_VECTOR, "vector"},
    {SOFTMAX_ALGO_ONLINE, "online"},
    {SOFTMAX_ALGO_WARP_ONLINE, "warp_online"},
    {SOFTMAX_ALGO_WARP, "warp"},
    {SOFTMAX_ALGO_BLOCK, "block"},
    {SOFTMAX_ALGO_TILE, "tile"},
    {SOFTMAX_ALGO_CLUSTER, "cluster"},
    {SOFTMAX_ALGO_GRID, "grid"},
    {SOFTMAX_ALGO_COLUMN, "column"},
    {SOFTMAX_ALGO_REFERENCE, "reference"},
};

// NULL for a number that names no algorithm.
constexpr const char *algo_name(std::int32_t algo) {
  for (const AlgoName &entry : kAlgoNames) {
    if (entry.algo == algo) return entry.name;
  }
  return nullptr;
}

}  // namespace softmax
