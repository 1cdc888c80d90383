// How the SIMD kernels reach a row of the general call: where it lies, or gathered into scratch;
// and what such a row needs besides: length, sink, statistics.
//
// Two ways. A row whose elements are used as they are goes to the kernels of its own type and has
// the bits of the contiguous call. A row of values goes to the float64 kernels, as
// scale, soft-cap, additive masks and a sink need.
#pragma once

#include "cpu/call.h"
#include "cpu/kernels.h"
#include "cpu/row_state.h"

namespace softmax {

class RowAccess {
 public:
  enum class Purpose {
    kOutputs,  // y; and statistics where they cost nothing
    kStats     // statistics alone
  };

  RowAccess(const Call &call, Purpose purpose);

  const Kernels *kernels() const { return kernels_; }
  const Call &call() const { return call_; }
  bool is_values() const { return is_values_; }
  bool writes_outputs() const { return purpose_ == Purpose::kOutputs; }
  // Of the sums: statistics want the maximum's own 1 apart, as log-softmax does.
  bool is_log() const { return purpose_ == Purpose::kStats || call_.is_log(); }
  bool given_stats() const { return call_.general->given_stats; }
  bool has_direct_input() const { return direct_x_; }
  bool has_direct_output() const { return direct_y_; }

  // A tile of whole rows from `first` on that is in scratch, `pitch` elements a row. Either may be
  // null: those elements are reached in the tensor.
  void keep(void *inputs, void *outputs, std::int64_t first, std::int64_t pitch);
  // Fills a kept tile's inputs; writes its outputs to y.
  void gather_kept(std::int64_t rows) const;
  void scatter_kept(std::int64_t rows) const;

  // ---- a row of a kept tile, or one that is dense where it lies ----

  const void *row_input(std::int64_t row) const;
  void *row_output(std::int64_t row) const;

  // ---- one part of one row, for row_driver.h ----

  double max_of(std::int64_t row, std::int64_t col, std::int64_t cols) const;
  PartSum sum_of(std::int64_t row, std::int64_t col, std::int64_t cols, double max, bool is_log,
                 bool keep_terms) const;
  void scale_terms(std::int64_t row, std::int64_t col, std::int64_t cols,
                   const RowScale &scale) const;
  void write(std::int64_t row, std::int64_t col, std::int64_t cols, const RowScale &scale,
             bool is_log) const;
  // Terms can wait in the output until it is scaled.
  bool keeps_terms() const {
    return writes_outputs() && !given_stats() && (kept_outputs_ != nullptr || direct_y_);
  }

  // ---- a row as a whole ----

  // What is at and past the row's length.
  void write_tail(std::int64_t row, std::int64_t length, double value) const;
  // -inf where there is none.
  double sink(std::int64_t row) const;
  // Of a row of values, from the sum of its parts against max, which the sink has taken part in;
  // writes its statistics.
  RowScale scale(std::int64_t row, double max, RowSum sum) const;
  // A row whose row_scale is 0, all of it.
  void run_limit_row(std::int64_t row) const;

 private:
  const void *input(std::int64_t row, std::int64_t col, std::int64_t cols, void *buffer) const;
  void fill(void *to, std::int64_t cols, double value) const;
  void put(std::int64_t row, std::int64_t col, std::int64_t cols, const void *from) const;
  void write_stats(std::int64_t row, double max, double sum, double lse) const;
  RowScale given_scale(std::int64_t row, double max) const;
  bool is_far_above_given(std::int64_t row, const RowScale &scale) const;

  Call call_;
  Purpose purpose_;
  bool is_values_;
  bool writes_stats_;
  bool direct_x_;
  bool direct_y_;
  std::int32_t out_dtype_;  // what the kernels write
  const Kernels *kernels_;
  char *kept_inputs_ = nullptr;
  char *kept_outputs_ = nullptr;
  std::int64_t kept_first_ = 0;
  std::int64_t kept_pitch_ = 0;
};

// Whether rows of the call have to be taken as values.
bool needs_values(const Problem &problem);

}  // namespace softmax
