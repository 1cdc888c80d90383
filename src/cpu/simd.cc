// The drivers of the SIMD kernels: whole rows where they fit in cache, parts of rows otherwise.
#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "core/dtype.h"
#include "cpu/drivers.h"
#include "cpu/kernels.h"
#include "cpu/row_state.h"

namespace softmax {
namespace {

// Work that threads take at a time: small enough to balance, large enough to cost nothing.
constexpr std::int64_t kChunkElements = 131072;

// Below it a parallel region costs more than it brings: 2 threads, N = 256: 6.2 us for 16384
// elements with and without, 12.4 against 9.4 for 32768.
constexpr std::int64_t kParallelElements = 32768;

// Scratch that needs no allocation: a tile of short rows. Fresh pages from the system cost about as
// much as computing a few rows of terms again, and terms of longer rows would leave the cache.
constexpr std::size_t kStackScratchBytes = 16384;
constexpr std::size_t kMaxScratchBytes = std::size_t{4} << 20;
constexpr std::int64_t kRowsWorthAllocating = 8;

struct Work {
  const Kernels *kernels;
  const char *x;
  char *y;
  std::int64_t rows;
  std::int64_t cols;
  bool is_log;
  bool empty_is_zero;

  const char *x_at(std::int64_t row, std::int64_t col) const {
    return x + (row * cols + col) * kernels->x_size;
  }
  char *y_at(std::int64_t row, std::int64_t col) const {
    return y + (row * cols + col) * kernels->y_size;
  }
};

Work work_for(const Problem &problem, const Buffers &buffers) {
  return {kernels_for(problem.x_dtype, problem.y_dtype),
          static_cast<const char *>(buffers.x),
          static_cast<char *>(buffers.y),
          problem.rows,
          problem.cols,
          problem.is_log(),
          problem.empty_is_zero()};
}

// ---- parts ----

std::int64_t part_count(std::int64_t cols) { return (cols + kPartColumns - 1) / kPartColumns; }

struct PartRange {
  std::int64_t col;
  std::int64_t cols;
};

PartRange part_range(const Work &work, std::int64_t part) {
  const std::int64_t col = part * kPartColumns;
  return {col, std::min(kPartColumns, work.cols - col)};
}

double max_of(const Work &work, std::int64_t row, std::int64_t part) {
  const PartRange range = part_range(work, part);
  return work.kernels->part_max(work.x_at(row, range.col), range.cols);
}

// keep_terms: in the output, where they fit.
PartSum sum_of(const Work &work, std::int64_t row, std::int64_t part, double max, bool keep_terms) {
  const PartRange range = part_range(work, part);
  return work.kernels->part_sum(work.x_at(row, range.col), range.cols, max, work.is_log,
                                keep_terms ? work.y_at(row, range.col) : nullptr);
}

void scale_terms(const Work &work, std::int64_t row, std::int64_t part, const RowScale &scale) {
  const PartRange range = part_range(work, part);
  work.kernels->part_scale(work.y_at(row, range.col), range.cols, scale);
}

void write(const Work &work, std::int64_t row, std::int64_t part, const RowScale &scale) {
  const PartRange range = part_range(work, part);
  work.kernels->part_write(work.x_at(row, range.col), work.y_at(row, range.col), range.cols, scale,
                           work.is_log);
}

// The lowest finite number: a reference for parts without any element above -inf, against which
// every term is 0, but for a NaN's.
double lowest_of(const Work &work) {
  return work.kernels->x_size == 8 ? Limits<double>::lowest() : double{Limits<float>::lowest()};
}

// A part's share in its row. It does not depend on which thread computed it, and the shares of a
// row are always taken in order.
struct Share {
  double max;
  PartSum sum;
};

// ---- VECTOR: the row's maximum is known before sums are taken against it ----

struct VectorStrategy {
  double max = -Limits<double>::infinity();
  RowSum sum;

  static constexpr bool kNeedsRowMax = true;

  void see_max(double part_max) {
    max = part_max > max || part_max != part_max ? part_max : max;  // a NaN stays
  }
  void share_against_row_max(const Work &work, std::int64_t row, std::int64_t part,
                             Share *share) const {
    share->sum = sum_of(work, row, part, is_finite(max) ? max : lowest_of(work), keeps_terms(work));
  }
  static void share_alone(const Work &work, std::int64_t row, std::int64_t part, Share *share) {
    share->max = max_of(work, row, part);
  }
  static void finish(const Work &work, std::int64_t row, std::int64_t part, const RowScale &scale) {
    if (keeps_terms(work)) {
      scale_terms(work, row, part, scale);
    } else {
      write(work, row, part, scale);
    }
  }
  void add(const Work &, const Share &share) { sum.add(share.sum); }
  RowScale scale(const Work &work) const {
    if (is_finite(max)) {
      if (!work.is_log) return softmax_scale(max, sum.others);
      return log_scale(max, work.kernels->log_sum(sum.rest(work.kernels->unit(max))));
    }
    const bool is_nan = sum.others.hi != sum.others.hi;
    return constant_row(max < 0 && !is_nan, work.is_log, work.empty_is_zero);
  }

 private:
  static bool keeps_terms(const Work &work) {
    return !work.is_log && work.kernels->terms_fit_output;
  }
};

// ---- ONLINE: every part has its own maximum ----

struct OnlineStrategy {
  OnlineRow row;

  static constexpr bool kNeedsRowMax = false;

  void see_max(double) {}
  void share_against_row_max(const Work &, std::int64_t, std::int64_t, Share *) const {}
  static void share_alone(const Work &work, std::int64_t row, std::int64_t part, Share *share) {
    share->max = max_of(work, row, part);
    share->sum =
        sum_of(work, row, part, is_finite(share->max) ? share->max : lowest_of(work), false);
  }
  static void finish(const Work &work, std::int64_t row, std::int64_t part, const RowScale &scale) {
    write(work, row, part, scale);
  }
  void add(const Work &work, const Share &share) {
    const bool is_nan = share.sum.others.hi != share.sum.others.hi;
    if (is_finite(share.max) && !is_nan) {
      row.add(share.max, rest_of(work, share));
    } else if (is_nan || !(share.max < 0)) {
      row.poison();
    }
  }
  RowScale scale(const Work &work) const {
    if (row.is_poisoned() || !is_finite(row.max)) {
      return constant_row(!row.is_poisoned(), work.is_log, work.empty_is_zero);
    }
    const CompensatedSum<double> rest = row.rest();
    if (work.is_log) return log_scale(row.max, work.kernels->log_sum(rest));
    CompensatedSum<double> sum = rest;
    sum.add(1.0);
    RowScale scale = softmax_scale(row.max, sum);
    scale.inverse_sum /= work.kernels->unit(row.max);
    return scale;
  }

 private:
  // The part's sum of exp(x_j - max), less its maximum's own 1.
  static CompensatedSum<double> rest_of(const Work &work, const Share &share) {
    const double unit = work.kernels->unit(share.max);
    RowSum part;
    part.add(share.sum);
    if (work.is_log) return part.rest(unit);
    CompensatedSum<double> rest = RowSum::per_unit(part.others, unit);
    rest.add(-1.0);
    return rest;
  }
};

// ---- one row on one thread, or on all ----

template <typename Strategy>
void run_row(const Work &work, std::int64_t row) {
  const std::int64_t parts = part_count(work.cols);
  Strategy strategy;
  Share share;
  if (Strategy::kNeedsRowMax) {
    for (std::int64_t p = 0; p < parts; ++p) {
      Strategy::share_alone(work, row, p, &share);
      strategy.see_max(share.max);
    }
  }
  for (std::int64_t p = 0; p < parts; ++p) {
    if (Strategy::kNeedsRowMax) {
      strategy.share_against_row_max(work, row, p, &share);
    } else {
      Strategy::share_alone(work, row, p, &share);
    }
    strategy.add(work, share);
  }
  const RowScale scale = strategy.scale(work);
  for (std::int64_t p = 0; p < parts; ++p) Strategy::finish(work, row, p, scale);
}

template <typename Strategy>
void run_rows_by_parts(const Work &work, std::int64_t first, std::int64_t count) {
  for (std::int64_t row = first; row < first + count; ++row) run_row<Strategy>(work, row);
}

// All threads on one row at a time; false, and nothing done, where there is no memory for the
// shares.
template <typename Strategy>
bool run_split(const Work &work, int threads) {
  const std::int64_t parts = part_count(work.cols);
  Share *shares = new (std::nothrow) Share[static_cast<std::size_t>(parts)];
  if (shares == nullptr) return false;
#pragma omp parallel num_threads(threads)
  for (std::int64_t row = 0; row < work.rows; ++row) {
    Strategy strategy;  // every thread makes its own from all shares: the same
#pragma omp for schedule(static)
    for (std::int64_t p = 0; p < parts; ++p) Strategy::share_alone(work, row, p, &shares[p]);
    if (Strategy::kNeedsRowMax) {
      for (std::int64_t p = 0; p < parts; ++p) strategy.see_max(shares[p].max);
#pragma omp for schedule(static)
      for (std::int64_t p = 0; p < parts; ++p) {
        strategy.share_against_row_max(work, row, p, &shares[p]);
      }
    }
    for (std::int64_t p = 0; p < parts; ++p) strategy.add(work, shares[p]);
    const RowScale scale = strategy.scale(work);
#pragma omp for schedule(static)
    for (std::int64_t p = 0; p < parts; ++p) Strategy::finish(work, row, p, scale);
  }
  delete[] shares;
  return true;
}

// ---- whole rows ----

// Scratch of one thread: on the stack where it is small.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes) {
    if (bytes > kStackScratchBytes) {
      owned_ = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
      data_ = owned_;
    }
  }
  ~Scratch() { std::free(owned_); }
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;
  void *data() const { return data_; }  // null where memory ran out

 private:
  alignas(64) unsigned char stack_[kStackScratchBytes];
  void *owned_ = nullptr;
  void *data_ = stack_;
};

void run_whole_rows(const Work &work, const Scratch &scratch, std::int64_t first,
                    std::int64_t count) {
  if (scratch.data() == nullptr) return run_rows_by_parts<VectorStrategy>(work, first, count);
  work.kernels->rows({work.x_at(first, 0), work.y_at(first, 0), count, work.cols, work.is_log,
                      work.empty_is_zero, scratch.data()});
}

template <typename Strategy>
void run_chunk(const Work &work, bool whole_rows, const Scratch &scratch, std::int64_t first,
               std::int64_t count) {
  if (whole_rows) {
    run_whole_rows(work, scratch, first, count);
  } else {
    run_rows_by_parts<Strategy>(work, first, count);
  }
}

template <typename Strategy>
void run(const Problem &problem, const Buffers &buffers) {
  const Work work = work_for(problem, buffers);
  const int threads = threads_for(problem);
  const bool split = work.rows <= threads / 2 && part_count(work.cols) >= 2;
  if (split && run_split<Strategy>(work, threads)) return;

  // Whole rows and parts give the same bits: the choice is free.
  const std::size_t scratch_bytes = work.kernels->scratch_bytes(work.cols, work.is_log);
  const bool scratch_pays =
      scratch_bytes <= kStackScratchBytes ||
      (scratch_bytes <= kMaxScratchBytes && work.rows >= kRowsWorthAllocating * threads);
  const bool whole_rows = Strategy::kNeedsRowMax && scratch_pays;
  if (threads == 1) {
    const Scratch scratch(whole_rows ? scratch_bytes : 0);
    return run_chunk<Strategy>(work, whole_rows, scratch, 0, work.rows);
  }
  const std::int64_t even_rows = (work.rows + threads - 1) / threads;
  const std::int64_t chunk_rows =
      std::max<std::int64_t>(1, std::min(even_rows, kChunkElements / work.cols));
  const std::int64_t chunks = (work.rows + chunk_rows - 1) / chunk_rows;
#pragma omp parallel num_threads(threads)
  {
    const Scratch scratch(whole_rows ? scratch_bytes : 0);
#pragma omp for schedule(dynamic)
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      const std::int64_t first = chunk * chunk_rows;
      run_chunk<Strategy>(work, whole_rows, scratch, first,
                          std::min(chunk_rows, work.rows - first));
    }
  }
}

}  // namespace

namespace {

// OpenMP's threads do not survive a fork, and a parallel region in the child would wait for them
// for ever. The bits of a result do not depend on the number of threads, so the child goes on with
// one.
std::atomic<bool> is_forked_child{false};

bool watch_for_fork() {
  return pthread_atfork(nullptr, nullptr, [] { is_forked_child.store(true); }) == 0;
}

}  // namespace

int threads_for(const Problem &problem) {
  // Divided, not multiplied: rows * cols of a valid problem fits, but this needs no such promise.
  if (problem.cols < kParallelElements && problem.rows < kParallelElements / problem.cols) return 1;
  if (is_forked_child.load(std::memory_order_relaxed)) return 1;
  static const bool watched = watch_for_fork();
  (void)watched;
  return omp_get_max_threads();
}

const Kernels *kernels_for(std::int32_t x_dtype, std::int32_t y_dtype) {
  const bool widens = x_dtype != y_dtype;
  switch (x_dtype) {
    case SOFTMAX_DTYPE_F16: return widens ? kernels_f16_f32() : kernels_f16_f16();
    case SOFTMAX_DTYPE_BF16: return widens ? kernels_bf16_f32() : kernels_bf16_bf16();
    case SOFTMAX_DTYPE_F64: return kernels_f64_f64();
    default: return kernels_f32_f32();
  }
}

void run_vector(const Problem &problem, const Buffers &buffers) {
  run<VectorStrategy>(problem, buffers);
}

void run_online(const Problem &problem, const Buffers &buffers) {
  run<OnlineStrategy>(problem, buffers);
}

}  // namespace softmax
