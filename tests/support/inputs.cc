// Input patterns. See inputs.h.
#include "support/inputs.h"

#include <cmath>
#include <cstdlib>

namespace softmax_test {
namespace {

// The finaliser of splitmix64: every bit of the result depends on every bit of the argument.
std::uint64_t mix(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// The largest magnitude that Pattern::kLarge uses: differences of two overflow the format.
double large_magnitude(softmax_dtype_t dtype) {
  const Format &format = format_of(dtype);
  return std::ldexp(1.9, format.max_exponent);
}

double value(Pattern pattern, softmax_dtype_t dtype, std::uint64_t seed, std::int64_t row,
             std::int64_t col, std::int64_t cols) {
  const auto index = static_cast<std::uint64_t>(row * cols + col);
  const double last = static_cast<double>(cols > 1 ? cols - 1 : 1);
  // A place that moves through the row with the row's number and the seed.
  const auto place = static_cast<std::int64_t>(mix(seed + static_cast<std::uint64_t>(row)) %
                                               static_cast<std::uint64_t>(cols));
  switch (pattern) {
    case Pattern::kNormal1: return normal(seed, index);
    case Pattern::kNormal3: return 3 * normal(seed, index);
    case Pattern::kNormal10: return 10 * normal(seed, index);
    case Pattern::kAscending: return -20 + 40 * static_cast<double>(col) / last;
    case Pattern::kDescending: return 20 - 40 * static_cast<double>(col) / last;
    case Pattern::kMaxFirst: return col == 0 ? 7.3 : normal(seed, index);
    case Pattern::kMaxLast: return col == cols - 1 ? 7.3 : normal(seed, index);
    case Pattern::kMaxMoving: return col == place ? 7.3 : normal(seed, index);
    case Pattern::kConfident: return col == place ? 30.5 : 2 * normal(seed, index);
    case Pattern::kCertain: return col == place ? 70 : 2 * normal(seed, index);
    case Pattern::kLarge: {
      // Three in four are of small magnitude, so that rows do not all collapse onto one element.
      const double u = uniform(seed, index);
      const bool row_is_huge = uniform(~seed, static_cast<std::uint64_t>(row)) < 0.5;
      if (row_is_huge) return (2 * u - 1) * large_magnitude(dtype);
      return u < 0.25 ? -u * large_magnitude(dtype) : 4 * normal(seed, index);
    }
    case Pattern::kShifted: return (row % 2 == 0 ? 1000 : -1000) + 3 * normal(seed, index);
    case Pattern::kMinusInf:
      return col != place && uniform(~seed, index) < 0.33 ? -HUGE_VAL : 3 * normal(seed, index);
    case Pattern::kInfSlices:
      return (col / 32 + row) % 2 == 0 && col != place ? -HUGE_VAL : normal(seed, index);
    case Pattern::kEqual: return 1.75;
  }
  std::abort();
}

}  // namespace

Elements make_runs_below(softmax_dtype_t dtype, std::int64_t cols, std::int64_t run,
                         std::uint64_t seed) {
  const double gaps[kRowsOfRunsBelow] = {20, 28, 60, 87, 95, HUGE_VAL};
  Elements x = make_input(dtype, kRowsOfRunsBelow, cols, Pattern::kNormal1, seed);
  for (std::int64_t row = 0; row < kRowsOfRunsBelow; ++row) {
    for (std::int64_t j = 0; j < cols; ++j) {
      const bool is_below = row == 1 ? j + run < cols : j / run % 2 == 0;
      if (is_below) x.set(row * cols + j, x[row * cols + j] - gaps[row]);
    }
  }
  return x;
}

double uniform(std::uint64_t seed, std::uint64_t index) {
  const std::uint64_t bits = mix(mix(seed) ^ index) >> 11;  // 53 bits
  return (static_cast<double>(bits) + 0.5) * 0x1p-53;
}

double normal(std::uint64_t seed, std::uint64_t index) {  // Box and Muller
  const double radius = std::sqrt(-2 * std::log(uniform(seed, 2 * index)));
  return radius * std::cos(6.283185307179586 * uniform(seed, 2 * index + 1));
}

const char *pattern_name(Pattern pattern) {
  switch (pattern) {
    case Pattern::kNormal1: return "normal1";
    case Pattern::kNormal3: return "normal3";
    case Pattern::kNormal10: return "normal10";
    case Pattern::kAscending: return "ascending";
    case Pattern::kDescending: return "descending";
    case Pattern::kMaxFirst: return "max_first";
    case Pattern::kMaxLast: return "max_last";
    case Pattern::kMaxMoving: return "max_moving";
    case Pattern::kConfident: return "confident";
    case Pattern::kCertain: return "certain";
    case Pattern::kLarge: return "large";
    case Pattern::kShifted: return "shifted";
    case Pattern::kMinusInf: return "minus_inf";
    case Pattern::kInfSlices: return "inf_slices";
    case Pattern::kEqual: return "equal";
  }
  std::abort();
}

Elements make_input(softmax_dtype_t dtype, std::int64_t rows, std::int64_t cols, Pattern pattern,
                    std::uint64_t seed) {
  Elements input(dtype, rows * cols);
  const std::int64_t count = rows * cols;
#pragma omp parallel for schedule(static) if (count > 32768)
  for (std::int64_t i = 0; i < count; ++i) {
    input.set(i, value(pattern, dtype, seed, i / cols, i % cols, cols));
  }
  return input;
}

}  // namespace softmax_test
