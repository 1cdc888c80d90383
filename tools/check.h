// Whether results are right: against a reference in extended precision, in units in the last place.
#pragma once

#include <cstdint>

#include "dtype.h"

namespace tool {

struct CheckResult {
  double max_ulp = 0;  // over the elements checked
  std::int64_t rows_checked = 0;
};

// Compares rows that are spread evenly over y, the first and the last among them, with softmax (or
// log-softmax) of the finite rows of x. Fails with the worst element where the bound that softmax.h
// states does not hold. At most about 2^20 elements are looked at.
CheckResult check_rows(const void *x, const void *y, const Dtype &dtype, std::int64_t rows,
                       std::int64_t cols, bool is_log, const char *algo);

}  // namespace tool
