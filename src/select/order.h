// Order classes: which algorithms add up a row in the same order, and so give the same bits.
//
// A schedule (how many blocks share a row) may follow M only within a class: there it changes who
// computes a part, and not how the parts are added.
#pragma once

#include <cstdint>

#include "softmax.h"

namespace softmax {

struct OrderClass {
  std::int32_t algo;
  std::int32_t id;
};

constexpr OrderClass kOrderClasses[] = {
    {SOFTMAX_ALGO_NAIVE, 1},
    {SOFTMAX_ALGO_SHARED, 2},
    {SOFTMAX_ALGO_SHUFFLE, 3},
    {SOFTMAX_ALGO_VECTOR, 4},
    {SOFTMAX_ALGO_ONLINE, 5},
    {SOFTMAX_ALGO_WARP_ONLINE, 6},
    {SOFTMAX_ALGO_WARP, 7},
    // Rows of odd length, by unit_shape in both. Whole words are dealt to other lanes by each, and
    // never to one where few and to the other where many: a test holds every choice to that.
    {SOFTMAX_ALGO_TILE, 7},
    // A row is cut into runs of as many columns as a warp holds, whose parts are merged in one tree
    // over their numbers. It is the same where both hold as many packs (Policy::packs) and the row
    // has at most 32 runs. A test holds every tuning row to that.
    {SOFTMAX_ALGO_BLOCK, 8},
    {SOFTMAX_ALGO_CLUSTER, 8},
    {SOFTMAX_ALGO_GRID, 10},
    {SOFTMAX_ALGO_COLUMN, 11},
    {SOFTMAX_ALGO_REFERENCE, 12},
};

// 0 for what is in no class.
constexpr std::int32_t order_class(std::int32_t algo) {
  for (const OrderClass &entry : kOrderClasses) {
    if (entry.algo == algo) return entry.id;
  }
  return 0;
}

constexpr bool same_order(std::int32_t a, std::int32_t b) {
  return order_class(a) != 0 && order_class(a) == order_class(b);
}

}  // namespace softmax
