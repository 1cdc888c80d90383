// The SIMD kernels as the drivers see them: one table of functions for a pair of data types.
//
// Two shapes of work. `rows` computes many whole rows, each small enough to stay in cache between
// its passes. The others work on one part of a row, at most kPartColumns columns of it: long rows
// are cut into parts at multiples of kPartColumns, whoever computes them and in whichever order, so
// that a row's bits do not depend on the threads. Values pass as float64, which holds every float32
// exactly.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/numerics.h"

namespace softmax {

// 16 KiB of float32: a part stays in the first-level cache between the pass that finds its maximum
// and the pass that sums.
constexpr std::int64_t kPartColumns = 4096;

// The sum over a part of its terms, which are exp(x_j - max) times the unit of max, max being the
// part's maximum or a larger one. The unit is between 0.7 and 1.5; it cancels where terms are
// divided by sums of terms against the same max.
//
// For log-softmax the elements that equal max are counted in `maxima` and are not in `others`: a
// tiny rest beside the maximum's own 1 keeps all of its digits. For softmax, which needs the whole
// sum alone, maxima is 0.
struct PartSum {
  double maxima = 0;
  CompensatedSum<double> others;
};

// What the last pass over a row needs.
struct RowScale {
  double max = 0;
  double inverse_sum = 0;  // 1 / the sum of terms
  double log_sum = 0;      // log s
  bool is_constant = false;
  double constant = 0;  // what every element becomes, where is_constant
};

struct RowsTask {
  const void *x;
  void *y;
  std::int64_t rows;
  std::int64_t cols;
  bool is_log;
  bool empty_is_zero;
  void *scratch;  // Kernels::scratch_bytes(...) bytes, aligned to 64, for this thread alone
};

struct Kernels {
  int x_size;
  int y_size;
  std::int64_t target;  // HWY_AVX3, ...

  // Whole rows. scratch_bytes is what `rows` needs for the same values, often 0.
  void (*rows)(const RowsTask &task);
  std::size_t (*scratch_bytes)(std::int64_t cols, bool is_log);

  // Parts. The maximum is -inf for a part without an element above it; where the part holds a NaN,
  // any value may come out, and part_sum brings the NaN to light. part_sum leaves the terms of
  // softmax in `terms`, unless that is null; part_scale makes outputs of them in place, and
  // part_write computes them again.
  bool terms_fit_output;  // an output is as wide as a term
  double (*part_max)(const void *x, std::int64_t cols);
  double (*unit)(double max);
  double (*log_sum)(const CompensatedSum<double> &rest);  // log(1 + rest)
  PartSum (*part_sum)(const void *x, std::int64_t cols, double max, bool is_log, void *terms);
  void (*part_scale)(void *terms, std::int64_t cols, const RowScale &row);
  void (*part_write)(const void *x, void *y, std::int64_t cols, const RowScale &row, bool is_log);
};

// The tables for this machine's best target, one getter a file.
const Kernels *kernels_f32_f32();
const Kernels *kernels_f16_f16();
const Kernels *kernels_f16_f32();
const Kernels *kernels_bf16_bf16();
const Kernels *kernels_bf16_f32();
const Kernels *kernels_f64_f64();

// For the pair of data types, which is one of those above.
const Kernels *kernels_for(std::int32_t x_dtype, std::int32_t y_dtype);

}  // namespace softmax
