// Softmax and log-softmax in float64 (of float64 rows: in the platform's long double), from the
// definition, with the edge rows of softmax.h section 2.
#pragma once

#include <cstdint>
#include <vector>

#include "input.h"

namespace reports {

// `count` encoded elements of one row; results to `out`.
void reference_row(std::int32_t dtype, const unsigned char *row, std::int64_t count, bool is_log,
                   long double *out);

std::vector<long double> reference_of(const Input &input, bool is_log);

}  // namespace reports
