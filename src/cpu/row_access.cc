// Rows of the general call as the SIMD kernels see them. See row_access.h.
#include "cpu/row_access.h"

#include <algorithm>
#include <cmath>

#include "cpu/gather.h"

namespace softmax {
namespace {

// A part in scratch, of any type.
struct PartBuffer {
  alignas(64) unsigned char data[kPartColumns * sizeof(double)];
};

double infinity() { return Limits<double>::infinity(); }
double not_a_number() { return infinity() - infinity(); }

bool is_native(std::int32_t dtype) {
  return dtype == SOFTMAX_DTYPE_F32 || dtype == SOFTMAX_DTYPE_F16 || dtype == SOFTMAX_DTYPE_BF16;
}

}  // namespace

bool needs_values(const Problem &problem) {
  constexpr std::uint32_t kNeed =
      kValueFeatures | kFeatureSink | kFeatureStats | kFeatureGivenStats;
  if ((problem.features & kNeed) != 0) return true;
  if (problem.x_dtype == SOFTMAX_DTYPE_F64) return problem.y_dtype != SOFTMAX_DTYPE_F64;
  return !is_native(problem.x_dtype) || !is_native(problem.y_dtype);
}

RowAccess::RowAccess(const Call &call, Purpose purpose) : call_(call), purpose_(purpose) {
  const Problem &problem = *call.problem;
  const Layout &layout = call.layout();
  is_values_ = purpose == Purpose::kStats || needs_values(problem);
  writes_stats_ = purpose == Purpose::kStats ||
                  (is_values_ && call.is_log() && !given_stats() && call.wants_stats());
  const bool plain_pair = dtype_pair_supported(problem.x_dtype, problem.y_dtype);
  out_dtype_ = is_values_ ? SOFTMAX_DTYPE_F64 : plain_pair ? problem.y_dtype : SOFTMAX_DTYPE_F32;
  kernels_ = is_values_ ? kernels_f64_f64() : kernels_for(problem.x_dtype, out_dtype_);
  const bool as_it_is = !is_values_ || (problem.x_dtype == SOFTMAX_DTYPE_F64 &&
                                        (problem.features & kValueFeatures) == 0);
  direct_x_ = as_it_is && layout.axis_is_dense(kTensorX) &&
              call.general->mask_kind != SOFTMAX_MASK_BOOL_KEEP;
  direct_y_ = layout.axis_is_dense(kTensorY) && problem.y_dtype == out_dtype_;
}

void RowAccess::keep(void *inputs, void *outputs, std::int64_t first, std::int64_t pitch) {
  kept_inputs_ = static_cast<char *>(inputs);
  kept_outputs_ = static_cast<char *>(outputs);
  kept_first_ = first;
  kept_pitch_ = pitch;
}

void RowAccess::gather_kept(std::int64_t rows) const {
  const Patch patch{kept_first_, rows, 0, call_.layout().cols};
  if (is_values_) {
    gather_values(call_, patch, reinterpret_cast<double *>(kept_inputs_), kept_pitch_);
  } else {
    gather_elements(call_, patch, kept_inputs_, kept_pitch_);
  }
}

void RowAccess::scatter_kept(std::int64_t rows) const {
  const Patch patch{kept_first_, rows, 0, call_.layout().cols};
  if (is_values_) {
    scatter_values(call_, patch, reinterpret_cast<const double *>(kept_outputs_), kept_pitch_);
  } else if (out_dtype_ == call_.problem->y_dtype) {
    scatter_elements(call_, patch, kept_outputs_, kept_pitch_);
  } else {
    scatter_floats(call_, patch, reinterpret_cast<const float *>(kept_outputs_), kept_pitch_);
  }
}

const void *RowAccess::row_input(std::int64_t row) const {
  if (kept_inputs_ != nullptr) {
    return kept_inputs_ + (row - kept_first_) * kept_pitch_ * kernels_->x_size;
  }
  return static_cast<const char *>(call_.buffers->x) +
         call_.layout().offset(kTensorX, row) * kernels_->x_size;
}

void *RowAccess::row_output(std::int64_t row) const {
  if (kept_outputs_ != nullptr) {
    return kept_outputs_ + (row - kept_first_) * kept_pitch_ * kernels_->y_size;
  }
  return static_cast<char *>(call_.buffers->y) +
         call_.layout().offset(kTensorY, row) * kernels_->y_size;
}

// ---- parts ----

const void *RowAccess::input(std::int64_t row, std::int64_t col, std::int64_t cols,
                             void *buffer) const {
  if (kept_inputs_ != nullptr || direct_x_) {
    return static_cast<const char *>(row_input(row)) + col * kernels_->x_size;
  }
  const Patch patch{row, 1, col, cols};
  if (is_values_) {
    gather_values(call_, patch, static_cast<double *>(buffer), cols);
  } else {
    gather_elements(call_, patch, buffer, cols);
  }
  return buffer;
}

// A part that the kernels have written to scratch.
void RowAccess::put(std::int64_t row, std::int64_t col, std::int64_t cols, const void *from) const {
  const Patch patch{row, 1, col, cols};
  if (is_values_) {
    scatter_values(call_, patch, static_cast<const double *>(from), cols);
  } else if (out_dtype_ == call_.problem->y_dtype) {
    scatter_elements(call_, patch, from, cols);
  } else {
    scatter_floats(call_, patch, static_cast<const float *>(from), cols);
  }
}

double RowAccess::max_of(std::int64_t row, std::int64_t col, std::int64_t cols) const {
  PartBuffer buffer;
  return kernels_->part_max(input(row, col, cols, buffer.data), cols);
}

PartSum RowAccess::sum_of(std::int64_t row, std::int64_t col, std::int64_t cols, double max,
                          bool is_log, bool keep_terms) const {
  PartBuffer buffer;
  void *terms =
      keep_terms ? static_cast<char *>(row_output(row)) + col * kernels_->y_size : nullptr;
  return kernels_->part_sum(input(row, col, cols, buffer.data), cols, max, is_log, terms);
}

void RowAccess::scale_terms(std::int64_t row, std::int64_t col, std::int64_t cols,
                            const RowScale &scale) const {
  kernels_->part_scale(static_cast<char *>(row_output(row)) + col * kernels_->y_size, cols, scale);
}

// Against its own maximum such a row would lose what is near the given one.
bool RowAccess::is_far_above_given(std::int64_t row, const RowScale &scale) const {
  return given_stats() && !scale.is_constant && scale.max - call_.buffers->row_max[row] > 1.0;
}

void RowAccess::write(std::int64_t row, std::int64_t col, std::int64_t cols, const RowScale &scale,
                      bool is_log) const {
  PartBuffer in;
  PartBuffer out;
  const void *from = input(row, col, cols, in.data);
  const bool in_scratch = kept_outputs_ == nullptr && !direct_y_;
  void *to = in_scratch ? static_cast<void *>(out.data)
                        : static_cast<char *>(row_output(row)) + col * kernels_->y_size;
  if (!is_log && is_far_above_given(row, scale)) {
    const double max = call_.buffers->row_max[row];
    const double sum = call_.buffers->row_sum[row];
    const auto *v = static_cast<const double *>(from);
    for (std::int64_t j = 0; j < cols; ++j) {
      static_cast<double *>(to)[j] = given_probability(v[j], max, sum);
    }
  } else {
    kernels_->part_write(from, to, cols, scale, is_log);
  }
  if (in_scratch) put(row, col, cols, out.data);
}

void RowAccess::fill(void *to, std::int64_t cols, double value) const {
  with_type(out_dtype_, [&](auto type) {
    using K = decltype(type);
    std::fill_n(static_cast<K *>(to), cols, narrow<K>(value));
  });
}

void RowAccess::write_tail(std::int64_t row, std::int64_t length, double value) const {
  const std::int64_t cols = call_.layout().cols;
  if (length == cols) return;
  if (kept_outputs_ != nullptr || direct_y_) {
    return fill(static_cast<char *>(row_output(row)) + length * kernels_->y_size, cols - length,
                value);
  }
  PartBuffer buffer;
  fill(buffer.data, std::min(kPartColumns, cols - length), value);
  for (std::int64_t col = length; col < cols; col += kPartColumns) {
    put(row, col, std::min(kPartColumns, cols - col), buffer.data);
  }
}

// ---- a row's numbers ----

double RowAccess::sink(std::int64_t row) const {
  const float *sink = call_.buffers->sink;
  return sink == nullptr ? -infinity() : sink[call_.layout().offset(kTensorSink, row)];
}

void RowAccess::write_stats(std::int64_t row, double max, double sum, double lse) const {
  const GeneralBuffers &b = *call_.buffers;
  if (!given_stats() && b.row_max != nullptr) b.row_max[row] = static_cast<float>(max);
  if (!given_stats() && b.row_sum != nullptr) b.row_sum[row] = static_cast<float>(sum);
  if (b.lse != nullptr) b.lse[row] = static_cast<float>(lse);
}

RowScale RowAccess::given_scale(std::int64_t row, double max) const {
  const double given_max = call_.buffers->row_max[row];
  const double given_sum = call_.buffers->row_sum[row];
  const bool empty_is_zero = call_.problem->empty_is_zero();
  const bool is_empty = given_max < Limits<double>::lowest();
  if (!is_finite(given_max) || given_sum != given_sum) {
    const double lse = is_empty ? -infinity() : not_a_number();
    write_stats(row, given_max, given_sum, lse);
    return constant_row(is_empty, call_.is_log(), empty_is_zero);
  }
  const double log_sum = std::log(given_sum);
  write_stats(row, given_max, given_sum, given_max + log_sum);
  if (call_.is_log()) return log_scale(given_max, log_sum);
  // The kernels take no element above their maximum, and one may be: row_max has been rounded.
  RowScale scale;
  scale.max = is_finite(max) && max > given_max ? max : given_max;
  scale.inverse_sum = std::exp(scale.max - given_max) / given_sum;
  return scale;
}

RowScale RowAccess::scale(std::int64_t row, double max, RowSum sum) const {
  if (given_stats()) return given_scale(row, max);
  const double sink_value = sink(row);
  const bool is_nan = sum.others.hi != sum.others.hi || sink_value != sink_value;
  if (!is_finite(max) || is_nan) {
    const bool is_empty = max < 0 && !is_finite(max) && !is_nan;
    if (writes_stats_ && is_empty) write_stats(row, -infinity(), 0, -infinity());
    if (writes_stats_ && !is_empty)
      write_stats(row, not_a_number(), not_a_number(), not_a_number());
    return constant_row(is_empty, call_.is_log(), call_.problem->empty_is_zero());
  }
  if (sink_value == max) {
    if (is_log()) {
      sum.maxima += 1;
    } else {
      sum.others.add(1.0);
    }
  } else if (sink_value > -infinity()) {
    sum.others.add(exp_of(raw_difference(sink_value, max)));
  }
  if (!is_log()) return softmax_scale(max, sum.others);

  const CompensatedSum<double> rest = sum.rest(1.0);
  const double log_sum = kernels_->log_sum(rest);
  if (writes_stats_) {
    CompensatedSum<double> whole = rest;
    whole.add(1.0);
    const double stored = static_cast<float>(max);
    const double moved = std::exp(max - stored);  // -inf where it has become +inf: 0
    write_stats(row, max, (whole.hi + whole.lo) * moved,
                is_finite(stored) ? max + log_sum : stored);
    if (stored < Limits<double>::lowest()) write_stats(row, stored, 0, stored);
  }
  return log_scale(max, log_sum);
}

// The limit of temperature 0. Elements are looked at one by one: it is not worth a kernel.
void RowAccess::run_limit_row(std::int64_t row) const {
  const std::int64_t length = call_.length(row);
  PartBuffer buffer;
  double max = -infinity();
  std::int64_t at = -1;
  bool is_nan = false;
  for (std::int64_t col = 0; col < length; col += kPartColumns) {
    const std::int64_t cols = std::min(kPartColumns, length - col);
    const auto *v = static_cast<const double *>(input(row, col, cols, buffer.data));
    for (std::int64_t j = 0; j < cols; ++j) {
      is_nan = is_nan || v[j] != v[j];
      if (v[j] > max) {
        max = v[j];
        at = col + j;
      }
    }
  }
  const double sink_value = sink(row);
  if (sink_value > max) {
    max = sink_value;
    at = -1;
  }
  if (given_stats()) {
    // The row's maximum may be in another part of it, or the sink.
    const double given_max = call_.buffers->row_max[row];
    const double given_sum = call_.buffers->row_sum[row];
    if (static_cast<float>(max) < given_max) at = -1;
    is_nan = is_nan || given_sum != given_sum;
    max = given_max;
  }
  is_nan = is_nan || max != max || sink_value != sink_value || max == infinity();
  const bool is_empty = !is_nan && max < Limits<double>::lowest();
  const double statistic = is_nan ? not_a_number() : max;
  if (writes_stats_ || given_stats()) {
    write_stats(row, statistic, is_nan ? statistic : is_empty ? 0 : 1, statistic);
  }
  if (!writes_outputs()) return;
  const bool is_log = call_.is_log();
  double elsewhere = is_log ? -infinity() : 0.0;
  if (is_nan || is_empty) {
    elsewhere = constant_row(is_empty, is_log, call_.problem->empty_is_zero()).constant;
    at = -1;
  }
  write_tail(row, 0, elsewhere);
  if (at < 0) return;
  const double top = is_log ? 0.0 : 1.0;
  if (kept_outputs_ != nullptr || direct_y_) {
    return fill(static_cast<char *>(row_output(row)) + at * kernels_->y_size, 1, top);
  }
  put(row, at, 1, &top);
}

}  // namespace softmax
