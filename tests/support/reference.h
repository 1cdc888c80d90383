// The answer: softmax and log-softmax in float64 for float32 and 16-bit inputs, in the 64-bit
// mantissa of long double for float64 inputs. Nothing of the library is used.
#pragma once

#include <cfloat>
#include <cstdint>
#include <vector>

#include "support/element.h"

namespace softmax_test {

static_assert(LDBL_MANT_DIG >= 64, "the float64 reference needs long double to be wider");

// Both results of a matrix, unrounded. Exactly one of the two pairs of vectors is filled.
struct Reference {
  bool is_wide = false;  // long double
  std::vector<double> softmax, log_softmax;
  std::vector<long double> wide_softmax, wide_log_softmax;
};

// Edge rows as softmax.h says, section 2.
Reference make_reference(const Elements &x, std::int64_t rows, std::int64_t cols,
                         bool empty_is_zero = false);

}  // namespace softmax_test
