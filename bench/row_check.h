// The correctness check before timing: sampled rows against float64 on the host, float64 rows
// against long double.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "softmax.h"

namespace bench {

int element_bytes(softmax_dtype_t dtype);

// What softmax.h section 3 promises for the type, in units in the last place.
double promised_ulp(softmax_dtype_t dtype);

// Rows of one input with their softmax, rounded to float64: made once, held against every
// algorithm.
class RowCheck {
 public:
  // Samples the first row, the last, and rows evenly between them.
  RowCheck(const void *x, softmax_dtype_t dtype, std::int64_t rows, std::int64_t cols);

  // The largest error over the sampled rows, in units in the last place of the float64 result;
  // infinity where an element is NaN. Waits for the device.
  double max_ulp(const void *y) const;

 private:
  softmax_dtype_t dtype_;
  std::int64_t cols_;
  std::vector<std::int64_t> sampled_;
  std::vector<double> expected_;  // sampled_.size() x cols_
};

}  // namespace bench
