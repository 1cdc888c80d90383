// Short ways to say "for every algorithm, type pair, operation and place".
#pragma once

#include <initializer_list>

#include "support/problem.h"

namespace softmax_test {

// Calls body(problem) for every algorithm that takes the problem, both operations, in and out of
// place.
template <typename Body>
void over_algorithms(Device &device, const TypePair &types, std::int64_t rows, std::int64_t cols,
                     Body body) {
  for (const softmax_algo_t algo : device.algorithms_for(types.x, types.y, cols)) {
    for (const bool is_log : {false, true}) {
      for (const bool in_place : {false, true}) {
        if (in_place && !can_be_in_place(types)) continue;
        Problem problem;
        problem.algo = algo;
        problem.types = types;
        problem.is_log = is_log;
        problem.in_place = in_place;
        problem.rows = rows;
        problem.cols = cols;
        body(problem);
      }
    }
  }
}

// The same out of place alone.
template <typename Body>
void over_algorithms_apart(Device &device, const TypePair &types, std::int64_t rows,
                           std::int64_t cols, Body body) {
  over_algorithms(device, types, rows, cols, [&](const Problem &problem) {
    if (!problem.in_place) body(problem);
  });
}

}  // namespace softmax_test
