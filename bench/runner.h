// One cell of the benchmark: a shape, a type and an algorithm, checked and then timed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "row_check.h"
#include "softmax.h"
#include "timing.h"

namespace bench {

enum class Mode {
  kCold,  // buffer pairs in rotation, together past three L2s: x comes from DRAM
  kHot    // one pair: x and y stay in L2 where they fit
};

struct Shape {
  softmax_dtype_t dtype;
  std::int64_t rows;
  std::int64_t cols;
  Mode mode;

  std::int64_t elements() const { return rows * cols; }
  std::int64_t bytes() const { return elements() * element_bytes(dtype); }  // of x, and of y
};

struct CopyTiming {
  Timing memcpy;  // cudaMemcpyAsync
  Timing kernel;  // 16-byte streaming loads and stores
  double us() const { return memcpy.us < kernel.us ? memcpy.us : kernel.us; }
};

struct AlgoTiming {
  bool wrong = false;  // past the promised accuracy, or not every element written
  std::uint64_t nan_count = 0;
  double max_ulp = 0.0;
  Timing timing;
  softmax_choice_t choice;  // what ran
};

// Throws std::runtime_error with the library's own sentence.
void check_softmax(softmax_status_t status, const char *what);

class Runner {
 public:
  Runner(int device, std::int64_t max_bytes);  // of x, and of y, of the largest shape
  ~Runner();
  Runner(const Runner &) = delete;
  Runner &operator=(const Runner &) = delete;

  const cudaDeviceProp &properties() const { return properties_; }

  // Fills the inputs and computes the reference of a shape's first pair.
  void prepare(const Shape &shape);
  // Of the prepared shape.
  CopyTiming time_copy(const TimingBox &box);
  AlgoTiming run(softmax_algo_t algo, const TimingBox &box);
  // The same for any other way to enqueue the prepared shape's softmax; `choice` stays empty.
  using Call = std::function<softmax_status_t(const void *x, void *y, cudaStream_t stream)>;
  AlgoTiming run_with(const Call &call, const TimingBox &box);
  // What the library would run for the prepared shape.
  softmax_choice_t choose(softmax_algo_t algo) const;
  // Whether the algorithm takes the prepared shape, and the library's sentence where it does not.
  bool accepts(softmax_algo_t algo, std::string *why) const;
  // One launch, for a profiler; nothing is checked or timed.
  void launch_once(softmax_algo_t algo);
  void copy_once();

 private:
  int pairs() const;
  void *x(int pair) const;
  void *y(int pair) const;
  softmax_status_t ask(softmax_algo_t algo, softmax_choice_t *choice) const;
  void enqueue(softmax_algo_t algo, int pair, cudaStream_t stream) const;

  cudaDeviceProp properties_{};
  softmax_handle_t handle_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::int64_t pool_bytes_ = 0;
  void *x_pool_ = nullptr;
  void *y_pool_ = nullptr;
  softmax_dtype_t filled_with_ = 0;
  Shape shape_{};
  std::optional<RowCheck> check_;
};

}  // namespace bench
