// The device under test: one interface over host memory with a CPU handle and over CUDA memory with
// a CUDA handle, so that one test body serves both. Each test program defines device().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "softmax.h"

namespace softmax_test {

class Device {
 public:
  virtual ~Device() = default;

  virtual bool is_cuda() const = 0;
  virtual int compute_capability() const { return 0; }  // 90 for sm_90; 0 on the CPU
  virtual softmax_handle_t handle() = 0;
  virtual softmax_stream_t stream() = 0;  // where the tests' work goes; null on the CPU

  // Null where there is not so much memory.
  virtual void *allocate(std::size_t bytes) = 0;
  virtual void release(void *memory) = 0;
  // Ordered on stream() and done on return.
  virtual void upload(void *to, const void *from, std::size_t bytes) = 0;
  virtual void download(void *to, const void *from, std::size_t bytes) = 0;
  virtual void fill(void *to, int byte, std::size_t bytes) = 0;
  virtual void copy(void *to, const void *from, std::size_t bytes) = 0;  // device to device
  virtual std::size_t free_bytes() = 0;

  // Runs `call` in another way that the device has and that must give the same bits: on CUDA,
  // captured into a graph that is replayed; on the CPU, with another number of threads.
  virtual softmax_status_t run_otherwise(const std::function<softmax_status_t()> &call) = 0;

  // Every algorithm of the device, AUTO first. All of them take rows of up to 2 KB. Those that hold
  // a row on chip take no longer rows than fit: algorithms_for() leaves them out where
  // softmax_select declines, and nowhere else, and not where they must take the problem, so that
  // the refusal shows. It counts what it left out.
  std::vector<softmax_algo_t> algorithms() const {
    if (!is_cuda()) {
      return {SOFTMAX_ALGO_AUTO, SOFTMAX_ALGO_NAIVE, SOFTMAX_ALGO_VECTOR, SOFTMAX_ALGO_ONLINE,
              SOFTMAX_ALGO_REFERENCE};
    }
    std::vector<softmax_algo_t> all = {
        SOFTMAX_ALGO_AUTO,   SOFTMAX_ALGO_NAIVE,  SOFTMAX_ALGO_SHARED,      SOFTMAX_ALGO_SHUFFLE,
        SOFTMAX_ALGO_VECTOR, SOFTMAX_ALGO_ONLINE, SOFTMAX_ALGO_WARP_ONLINE, SOFTMAX_ALGO_REFERENCE,
        SOFTMAX_ALGO_WARP,   SOFTMAX_ALGO_BLOCK};
    if (has_bulk_copies()) {
      all.insert(all.end(), {SOFTMAX_ALGO_TILE, SOFTMAX_ALGO_CLUSTER, SOFTMAX_ALGO_GRID});
    }
    return all;
  }
  // What TILE, CLUSTER and GRID are made of.
  bool has_bulk_copies() const { return compute_capability() >= 90; }
  std::vector<softmax_algo_t> algorithms_for(softmax_dtype_t x_dtype, softmax_dtype_t y_dtype,
                                             std::int64_t cols);
  std::int64_t left_out() const { return left_out_; }
  // The least M from which on the algorithm works as for many rows: WARP, BLOCK, CLUSTER, GRID and
  // TILE's rows of whole words have another kernel for few. 1 where M does not matter.
  std::int64_t least_many_rows(softmax_algo_t algo, softmax_dtype_t x_dtype,
                               softmax_dtype_t y_dtype, std::int64_t cols);
  // One thread a row: on a GPU a single long row takes seconds.
  bool is_slow(softmax_algo_t algo) const {
    return is_cuda() && (algo == SOFTMAX_ALGO_NAIVE || algo == SOFTMAX_ALGO_REFERENCE);
  }

 private:
  std::atomic<std::int64_t> left_out_{0};
};

Device &device();

}  // namespace softmax_test
