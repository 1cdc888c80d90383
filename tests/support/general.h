// A problem of the general call: what is asked, with values that are made up from it, laid out in
// memory as strides say; the call; and the check of everything that it must and must not do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/compare.h"
#include "support/device.h"
#include "support/element.h"

namespace softmax_test {

constexpr softmax_dtype_t kEveryType[] = {SOFTMAX_DTYPE_F32,     SOFTMAX_DTYPE_F16,
                                          SOFTMAX_DTYPE_BF16,    SOFTMAX_DTYPE_F64,
                                          SOFTMAX_DTYPE_F8_E4M3, SOFTMAX_DTYPE_F8_E5M2};
// The CPU's fast way and its obvious one.
constexpr softmax_algo_t kBoth[] = {SOFTMAX_ALGO_AUTO, SOFTMAX_ALGO_REFERENCE};

// How a tensor lies in memory.
enum class Lie {
  kContiguous,  // strides all zero
  kPadded,      // three elements after each innermost run
  kReversed,    // contiguous with the dimensions in reverse order: a transposed view
  kSpread,      // every second element of a contiguous tensor
};
constexpr Lie kLies[] = {Lie::kContiguous, Lie::kPadded, Lie::kReversed, Lie::kSpread};

struct GeneralCase {
  std::vector<std::int64_t> shape = {3, 10};
  int axis = -1;
  Lie x_lie = Lie::kContiguous;
  Lie y_lie = Lie::kContiguous;
  Lie mask_lie = Lie::kContiguous;
  Lie dy_lie = Lie::kContiguous;
  softmax_dtype_t x_dtype = SOFTMAX_DTYPE_F32;
  softmax_dtype_t y_dtype = SOFTMAX_DTYPE_F32;
  softmax_dtype_t dy_dtype = 0;
  softmax_algo_t algo = SOFTMAX_ALGO_AUTO;
  int32_t op = SOFTMAX_OP_SOFTMAX;
  int32_t direction = SOFTMAX_DIRECTION_FORWARD;
  int32_t mask_kind = SOFTMAX_MASK_NONE;
  int32_t empty_row = SOFTMAX_EMPTY_ROW_NAN;
  std::int64_t causal_offset = 0;
  double scale = 1;
  double softcap = 0;
  double y_scale = 0;
  bool has_row_scale = false;
  bool has_sink = false;
  bool has_stats = false;    // row_max, row_sum and lse are outputs
  bool lse_alone = false;    // of those lse alone
  bool given_stats = false;  // row_max and row_sum are inputs
  bool in_place = false;     // y on x; BACKWARD: dx on dy
  double spread = 2;         // of x
  std::uint64_t seed = 1;
  std::uint64_t flags = 0;  // beside GIVEN_STATS

  double sum_ulps = 0.51;  // what a row_sum may be off
  double tanh_ulps = 0;    // what the device's tanh is off beside this one's, of its largest

  int offset = 0;          // elements that each tensor lies past an aligned address
  int gap = 0xa5;          // the bytes around and between elements; 0xff is NaN in every type
  std::int64_t every = 1;  // so many rows apart are those that are compared

  bool is_log() const { return op == SOFTMAX_OP_LOGSOFTMAX; }
  bool is_backward() const { return direction == SOFTMAX_DIRECTION_BACKWARD; }
  int axis_index() const { return axis < 0 ? axis + static_cast<int>(shape.size()) : axis; }
  std::int64_t cols() const { return shape[static_cast<std::size_t>(axis_index())]; }
  std::int64_t rows() const;
  bool is_from_y() const { return is_backward() && !given_stats; }
  std::string text() const;
};

// As softmax_execute takes it.
softmax_desc_t desc_of(const GeneralCase &c);
std::vector<std::int64_t> strides_for(const std::vector<std::int64_t> &shape, Lie lie);
// What y is multiplied with.
double y_scale_of(const GeneralCase &c);

// The values of a case, by row and column, as the types hold them.
struct GeneralValues {
  std::vector<double> x, dy, y;  // y: an input of BACKWARD alone
  std::vector<double> additive;
  std::vector<unsigned char> keep;
  std::vector<std::int32_t> length;
  std::vector<float> row_scale, sink, row_max, row_sum;
};
GeneralValues make_values(const GeneralCase &c);
// Each value as the type holds it.
std::vector<double> rounded_to(softmax_dtype_t dtype, std::vector<double> values);

// The answer, in long double, from the header's formulas. Where x or y is F64, v is formed in
// float64. Rows that are not compared are 0.
struct GeneralReference {
  std::vector<long double> y;      // before y_scale; of BACKWARD: dx; of STATS: nothing
  std::vector<long double> slack;  // of dx: what may be lost before the last rounding
  // The maximum before it is rounded, and the sum against that.
  std::vector<long double> row_max, row_sum, lse;
  std::vector<unsigned char> is_limit;  // row_scale is 0

  // The sum against the maximum as it is stored.
  long double row_sum_against(std::size_t row, float stored) const;
};
GeneralReference make_general_reference(const GeneralCase &c, const GeneralValues &values);

// What a call has left, by row and column.
struct GeneralResult {
  softmax_status_t status = SOFTMAX_SUCCESS;
  std::string damage;         // a byte that is no output's has changed
  bool is_untouched = false;  // no byte has changed
  Elements y;                 // or dx
  std::vector<float> row_max, row_sum, lse;
};
// In host memory, through a CPU handle.
GeneralResult run_general(softmax_handle_t handle, const GeneralCase &c,
                          const GeneralValues &values);
// In the device's memory.
enum class How {
  kTogether,   // all buffers in one block, between bytes that are looked at
  kOtherwise,  // the same, run as Device::run_otherwise says; not in place
  kExactly,    // each buffer in an allocation that ends with it, for those who watch allocations
};
GeneralResult run_general(Device &device, const GeneralCase &c, const GeneralValues &values,
                          How how = How::kTogether);

// "" where the call has done what it must, or a sentence that begins with the case.
std::string judge_general(const GeneralCase &c, const GeneralReference &reference,
                          const GeneralResult &result);
std::string check_general(softmax_handle_t handle, const GeneralCase &c);
std::string check_general(softmax_handle_t handle, const GeneralCase &c,
                          const GeneralValues &values);

}  // namespace softmax_test
