// Distance from the unrounded reference in units in the last place of the output's type.
#pragma once

#include <cstdint>
#include <string>

#include "support/element.h"
#include "support/reference.h"

namespace softmax_test {

// How far an output may be from the reference.
//
// Normal outputs: `ulps` units in the last place. Outputs below the normal range: the step is the
// least subnormal; a result that is rounded once is 0.5 steps off at most, to which the relative
// error behind it adds less and less as the value shrinks. `subnormal_steps` is that allowance at
// 0; it grows to `ulps` at the least normal number.
struct Bound {
  double ulps;
  double subnormal_steps;
};

// What softmax.h promises (section 3) for an output type.
Bound promised_bound(softmax_dtype_t y_dtype);

// |value - reference| in units in the last place of the format at the reference. 0 where both are
// NaN or the same infinity; infinity where one alone is NaN, where the infinities differ, or where
// the reference is exactly 0 and the value is not. An overflow to infinity counts as the number
// that the format would have next.
double error_ulps(const Format &format, double value, double reference);
double error_ulps(const Format &format, double value, long double reference);

struct Comparison {
  double worst_ulps = 0;  // over normal outputs
  std::string failure;    // empty: every element is within the bound
};

// Compares rows * cols outputs with one result of the reference.
Comparison compare(const Elements &y, const Reference &reference, bool is_log, std::int64_t cols,
                   const Bound &bound);

}  // namespace softmax_test
