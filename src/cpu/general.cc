// The general call on the CPU, forward: tiles of rows that fit in scratch, or rows by parts.
#include "cpu/general.h"

#include <omp.h>

#include <algorithm>

#include "cpu/backend.h"
#include "cpu/drivers.h"
#include "cpu/gather.h"
#include "cpu/row_driver.h"
#include "cpu/scratch.h"

namespace softmax {
namespace {

// Inputs of a tile, and its outputs where they are apart, take as much at most: they stay in the
// second-level cache.
constexpr std::int64_t kTileBytes = std::int64_t{256} << 10;

Work work_for(const RowAccess &access) {
  const Problem &problem = *access.call().problem;
  Work work{};
  work.kernels = access.kernels();
  work.rows = problem.rows;
  work.cols = problem.cols;
  work.is_log = access.is_log();
  work.empty_is_zero = problem.empty_is_zero();
  work.access = &access;
  return work;
}

RowScale scale_of(const Work &work, std::int64_t row, const VectorStrategy &strategy) {
  if (work.access->is_values()) return work.access->scale(row, strategy.max, strategy.sum);
  return strategy.scale(work);
}
RowScale scale_of(const Work &work, std::int64_t, const OnlineStrategy &strategy) {
  return strategy.scale(work);
}

double tail_value(const Work &work, const RowScale &scale) {
  if (scale.is_constant) return scale.constant;
  // A NaN in the row is in its factors.
  const double factor = work.is_log ? scale.log_sum : scale.inverse_sum;
  if (factor != factor) return factor;
  return work.is_log ? -Limits<double>::infinity() : 0.0;
}

// One row on this thread, by parts.
template <typename Strategy>
void run_row_by_parts(Work work, std::int64_t row) {
  const RowAccess &access = *work.access;
  if (access.call().is_limit_row(row)) return access.run_limit_row(row);
  work.cols = access.call().length(row);
  const std::int64_t parts = part_count(work.cols);
  Strategy strategy;
  see_maxima(work, row, parts, &strategy);
  if (Strategy::kNeedsRowMax) strategy.see_max(access.sink(row));
  if (!access.given_stats()) add_parts(work, row, parts, &strategy);
  const RowScale scale = scale_of(work, row, strategy);
  if (!access.writes_outputs()) return;
  for (std::int64_t p = 0; p < parts; ++p) Strategy::finish(work, row, p, scale);
  access.write_tail(row, work.cols, tail_value(work, scale));
}

// All threads on one row at a time; false, and nothing done, where there is no memory for the
// shares.
template <typename Strategy>
bool run_split_rows(const Work &all, int threads) {
  Share *shares = new (std::nothrow) Share[static_cast<std::size_t>(part_count(all.cols))];
  if (shares == nullptr) return false;
  const RowAccess &access = *all.access;
#pragma omp parallel num_threads(threads)
  for (std::int64_t row = 0; row < all.rows; ++row) {
    if (access.call().is_limit_row(row)) {
#pragma omp single
      access.run_limit_row(row);
      continue;
    }
    Work work = all;
    work.cols = access.call().length(row);
    const std::int64_t parts = part_count(work.cols);
    Strategy strategy;  // every thread makes its own from all shares: the same
#pragma omp for schedule(static)
    for (std::int64_t p = 0; p < parts; ++p) Strategy::share_alone(work, row, p, &shares[p]);
    if (Strategy::kNeedsRowMax) {
      for (std::int64_t p = 0; p < parts; ++p) strategy.see_max(shares[p].max);
      strategy.see_max(access.sink(row));
      if (!access.given_stats()) {
#pragma omp for schedule(static)
        for (std::int64_t p = 0; p < parts; ++p) {
          strategy.share_against_row_max(work, row, p, &shares[p]);
        }
      }
    }
    for (std::int64_t p = 0; p < parts && !access.given_stats(); ++p) strategy.add(work, shares[p]);
    // Its statistics are written by every thread, and are the same.
    RowScale scale;
#pragma omp critical(softmax_general_scale)
    scale = scale_of(work, row, strategy);
    if (access.writes_outputs()) {
#pragma omp for schedule(static)
      for (std::int64_t p = 0; p < parts; ++p) Strategy::finish(work, row, p, scale);
#pragma omp single
      access.write_tail(row, work.cols, tail_value(work, scale));
    } else {
#pragma omp barrier
    }
  }
  delete[] shares;
  return true;
}

// The rows of a tile whose elements are used as they are, by the kernel for whole rows.
void run_whole_rows(const RowAccess &access, std::int64_t first, std::int64_t rows, bool together,
                    void *scratch) {
  const Work work = work_for(access);
  RowsTask task{access.row_input(first),
                access.row_output(first),
                rows,
                work.cols,
                work.is_log,
                work.empty_is_zero,
                scratch};
  if (together) return work.kernels->rows(task);
  task.rows = 1;
  for (std::int64_t row = first; row < first + rows; ++row) {
    const std::int64_t length = access.call().length(row);
    task.x = access.row_input(row);
    task.y = access.row_output(row);
    task.cols = length;
    RowScale scale;
    if (length > 0) {
      work.kernels->rows(task);
      // What a NaN or an empty row has become, it is in the tail as well.
      with_type(work.kernels->y_size == 8   ? SOFTMAX_DTYPE_F64
                : work.kernels->y_size == 4 ? SOFTMAX_DTYPE_F32
                                            : access.call().problem->y_dtype,
                [&](auto type) {
                  const double value = widen(static_cast<decltype(type) *>(task.y)[0]);
                  scale.inverse_sum = value != value ? value : 1.0;
                  scale.log_sum = scale.inverse_sum;
                });
    } else {
      scale = constant_row(true, work.is_log, work.empty_is_zero);
    }
    access.write_tail(row, length, tail_value(work, scale));
  }
}

// How many rows a tile has, 0 where rows are too long to be kept.
std::int64_t tile_rows_for(const Problem &problem, std::int64_t row_bytes, int threads) {
  const std::int64_t even = (problem.rows + threads - 1) / threads;
  return std::min({kPatchRows, kTileBytes / row_bytes, even});
}

template <typename Strategy>
void run_forward(const Call &call, RowAccess::Purpose purpose) {
  const Problem &problem = *call.problem;
  const RowAccess access(call, purpose);
  const Work work = work_for(access);
  const Kernels &kernels = *access.kernels();
  const int threads = threads_for(problem);
  if (work.rows <= threads / 2 && part_count(work.cols) >= 2 &&
      run_split_rows<Strategy>(work, threads)) {
    return;
  }

  const bool is_values = access.is_values();
  const bool keeps_inputs = !access.has_direct_input();
  // Values become outputs where they are.
  const bool keeps_outputs =
      access.writes_outputs() && !(is_values && keeps_inputs) && !access.has_direct_output();
  // Of a row that is too long to be kept, any number that says so: the product may overflow.
  const std::int64_t row_bytes = work.cols > kTileBytes
                                     ? kTileBytes + 1
                                     : work.cols * std::max(kernels.x_size, kernels.y_size);
  const std::int64_t tile_rows = tile_rows_for(problem, row_bytes, threads);
  const bool whole = Strategy::kNeedsRowMax && tile_rows > 0;
  const std::size_t tile_bytes =
      static_cast<std::size_t>(whole ? (row_bytes * tile_rows + 63) / 64 * 64 : 0);
  const std::size_t kernel_bytes =
      whole && !is_values ? kernels.scratch_bytes(work.cols, work.is_log) : 0;
  const std::int64_t rows_at_once = whole ? tile_rows : 1;
  const std::int64_t tiles = (work.rows + rows_at_once - 1) / rows_at_once;
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    const Scratch scratch(tile_bytes * (keeps_inputs + keeps_outputs) + kernel_bytes);
    const bool has_scratch = whole && scratch.data() != nullptr;
    auto *inputs = static_cast<char *>(scratch.data());
    char *outputs = inputs + tile_bytes * keeps_inputs;
    char *kernel_scratch = outputs + tile_bytes * keeps_outputs;
#pragma omp for schedule(dynamic)
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const std::int64_t first = tile * rows_at_once;
      const std::int64_t rows = std::min(rows_at_once, work.rows - first);
      RowAccess own = access;
      if (has_scratch) {
        const bool in_place = is_values && keeps_inputs && own.writes_outputs();
        own.keep(keeps_inputs ? inputs : nullptr,
                 keeps_outputs ? outputs
                 : in_place    ? inputs
                               : nullptr,
                 first, work.cols);
        if (keeps_inputs) own.gather_kept(rows);
        if (is_values) {
          for (std::int64_t r = first; r < first + rows; ++r) {
            run_row_by_parts<Strategy>(work_for(own), r);
          }
        } else {
          const bool together = keeps_inputs && keeps_outputs && !call.has_lengths();
          run_whole_rows(own, first, rows, together, kernel_scratch);
        }
        if (keeps_outputs || in_place) own.scatter_kept(rows);
      } else {
        for (std::int64_t r = first; r < first + rows; ++r) {
          run_row_by_parts<Strategy>(work_for(own), r);
        }
      }
    }
  }
}

}  // namespace

void run_vector_general(const Call &call) {
  const Problem &problem = *call.problem;
  if (problem.op == SOFTMAX_OP_STATS) {
    return run_forward<VectorStrategy>(call, RowAccess::Purpose::kStats);
  }
  // Statistics come with log-softmax of values. Otherwise they are a pass of their own, before x
  // may be written over, so that they have the same bits and change none of y.
  const bool come_along = call.general->given_stats || (call.is_log() && needs_values(problem));
  if (call.wants_stats() && !come_along) {
    run_forward<VectorStrategy>(call, RowAccess::Purpose::kStats);
  }
  run_forward<VectorStrategy>(call, RowAccess::Purpose::kOutputs);
}

void run_online_general(const Call &call) {
  run_forward<OnlineStrategy>(call, RowAccess::Purpose::kOutputs);
}

}  // namespace softmax
