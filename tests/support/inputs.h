// Seeded input patterns in which a wrong answer shows.
#pragma once

#include <cstdint>

#include "support/element.h"

namespace softmax_test {

enum class Pattern {
  kNormal1,  // standard deviation 1
  kNormal3,
  kNormal10,
  kAscending,  // every element is a new maximum
  kDescending,
  kMaxFirst,  // normals with the maximum in the first place
  kMaxLast,
  kMaxMoving,  // the maximum in a place that goes with the row
  kConfident,  // one element takes nearly everything: log-softmax near 0
  kCertain,    // the same with a gap of 70: log-softmax near 1e-30
  kLarge,      // both signs, up to the format's largest numbers
  kShifted,    // normals far from 0
  kMinusInf,   // a third of the elements -inf, never all of them
  kInfSlices,  // aligned runs of 32 elements that are -inf throughout
  kEqual,
};
constexpr Pattern kPatterns[] = {
    Pattern::kNormal1,    Pattern::kNormal3,   Pattern::kNormal10, Pattern::kAscending,
    Pattern::kDescending, Pattern::kMaxFirst,  Pattern::kMaxLast,  Pattern::kMaxMoving,
    Pattern::kConfident,  Pattern::kCertain,   Pattern::kLarge,    Pattern::kShifted,
    Pattern::kMinusInf,   Pattern::kInfSlices, Pattern::kEqual,
};
constexpr int kPatternCount = sizeof kPatterns / sizeof kPatterns[0];

const char *pattern_name(Pattern pattern);

// The same numbers for the same arguments, on every machine and for any number of threads.
Elements make_input(softmax_dtype_t dtype, std::int64_t rows, std::int64_t cols, Pattern pattern,
                    std::uint64_t seed);

// Normal rows of which every second run of `run` columns is far below the rest (in row 1 all but
// the last `run` columns): by as much as leaves terms in the sum, results in the normal range, or
// nothing.
constexpr std::int64_t kRowsOfRunsBelow = 6;
Elements make_runs_below(softmax_dtype_t dtype, std::int64_t cols, std::int64_t run,
                         std::uint64_t seed);

// Uniform in (0, 1): a hash of its arguments.
double uniform(std::uint64_t seed, std::uint64_t index);

// Standard normal.
double normal(std::uint64_t seed, std::uint64_t index);

}  // namespace softmax_test
