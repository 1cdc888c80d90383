// The drivers of the SIMD kernels: whole rows where they fit in cache, parts of rows otherwise.
#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>

#include "core/dtype.h"
#include "cpu/drivers.h"
#include "cpu/kernels.h"
#include "cpu/row_driver.h"
#include "cpu/scratch.h"

namespace softmax {
namespace {

// Work that threads take at a time: small enough to balance, large enough to cost nothing.
constexpr std::int64_t kChunkElements = 131072;

// Below it a parallel region costs more than it brings: 2 threads, N = 256: 6.2 us for 16384
// elements with and without, 12.4 against 9.4 for 32768.
constexpr std::int64_t kParallelElements = 32768;

// Longer rows' terms would leave the cache.
constexpr std::size_t kMaxScratchBytes = std::size_t{4} << 20;
constexpr std::int64_t kRowsWorthAllocating = 8;

Work work_for(const Problem &problem, const Buffers &buffers) {
  return {kernels_for(problem.x_dtype, problem.y_dtype),
          static_cast<const char *>(buffers.x),
          static_cast<char *>(buffers.y),
          problem.rows,
          problem.cols,
          problem.is_log(),
          problem.empty_is_zero()};
}

// ---- whole rows ----

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
