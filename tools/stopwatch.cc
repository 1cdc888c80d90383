// See stopwatch.h.
#include "stopwatch.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

#include "error.h"

namespace tool {
namespace {

constexpr int kMinRepeats = 7;
constexpr int kMaxRepeats = 1000;
constexpr double kLogitDeviation = 4.0;  // logits of real classifiers spread about so far

using Bytes = std::unique_ptr<char[]>;

// Host memory, touched first by the threads that will work on it.
Bytes new_bytes(std::int64_t count) {
  Bytes bytes(new char[static_cast<std::size_t>(count)]);
  char *data = bytes.get();
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < count; i += 4096) data[i] = 1;
  return bytes;
}

// Normal logits, drawn from a table of values that were converted once.
Bytes random_logits(const Dtype &dtype, std::int64_t count) {
  constexpr std::uint32_t kTableValues = 1 << 16;
  std::mt19937 generator(20180608);  // a fixed seed: the same input in every run
  std::normal_distribution<double> normal(0.0, kLogitDeviation);
  const Bytes table(new char[kTableValues * sizeof(double)]);
  for (std::uint32_t i = 0; i < kTableValues; ++i) {
    store_element(table.get(), dtype, i, normal(generator));
  }
  Bytes data = new_bytes(count * dtype.bytes);
  std::uint32_t state = 1;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;  // a linear congruential step; the high bits are used
    std::memcpy(data.get() + i * dtype.bytes, table.get() + (state >> 16) * dtype.bytes,
                static_cast<std::size_t>(dtype.bytes));
  }
  return data;
}

// Calls work until min_seconds have passed, and returns the median time.
template <typename Work>
double median_seconds(double min_seconds, Work work) {
  using Clock = std::chrono::steady_clock;
  work();  // the first call touches pages and starts threads
  std::vector<double> seconds;
  double total = 0;
  while (static_cast<int>(seconds.size()) < kMaxRepeats &&
         (static_cast<int>(seconds.size()) < kMinRepeats || total < min_seconds)) {
    const auto start = Clock::now();
    work();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    total += seconds.back();
  }
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
  return seconds[seconds.size() / 2];
}

void parallel_copy(char *to, const char *from, std::int64_t bytes) {
#pragma omp parallel
  {
    const std::int64_t threads = omp_get_num_threads();
    const std::int64_t share = (bytes + threads - 1) / threads;
    const std::int64_t begin = std::min(bytes, share * omp_get_thread_num());
    const std::int64_t end = std::min(bytes, begin + share);
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
  }
}

class CpuStopwatch : public Stopwatch {
 public:
  CpuStopwatch(const Device &device, const Dtype &dtype, std::int64_t rows, std::int64_t cols,
               double min_seconds)
      : device_(device),
        rows_(rows),
        cols_(cols),
        bytes_(rows * cols * dtype.bytes),
        min_seconds_(min_seconds),
        x_(random_logits(dtype, rows * cols)),
        y_(new_bytes(bytes_)) {}

  void run_once(const Operation &operation) override {
    std::memset(y_.get(), 0xff, static_cast<std::size_t>(bytes_));  // NaN, for each of the types
    enqueue_softmax(device_, operation, x_.get(), y_.get(), rows_, cols_, nullptr);
  }
  const void *host_x() override { return x_.get(); }
  const void *host_y() override { return y_.get(); }
  double time_softmax(const Operation &operation) override {
    return median_seconds(min_seconds_, [&] {
      enqueue_softmax(device_, operation, x_.get(), y_.get(), rows_, cols_, nullptr);
    });
  }
  double time_copy() override {
    const double plain = median_seconds(
        min_seconds_, [&] { std::memcpy(y_.get(), x_.get(), static_cast<std::size_t>(bytes_)); });
    const double parallel =
        median_seconds(min_seconds_, [&] { parallel_copy(y_.get(), x_.get(), bytes_); });
    method_ = plain <= parallel ? "memcpy"
                                : fmt::format("parallel memcpy, {} threads", omp_get_max_threads());
    return std::min(plain, parallel);
  }
  std::string copy_method() const override { return method_; }

 private:
  const Device &device_;
  const std::int64_t rows_, cols_, bytes_;
  const double min_seconds_;
  const Bytes x_, y_;
  std::string method_;
};

// Launches go round over pairs of buffers that together exceed the L2 cache, so that each finds its
// input in DRAM.
class CudaStopwatch : public Stopwatch {
 public:
  CudaStopwatch(const Device &device, const Dtype &dtype, std::int64_t rows, std::int64_t cols,
                double min_seconds)
      : device_(device),
        rows_(rows),
        cols_(cols),
        bytes_(static_cast<std::size_t>(rows * cols * dtype.bytes)),
        min_seconds_(min_seconds),
        x_(random_logits(dtype, rows * cols)),
        y_(new_bytes(static_cast<std::int64_t>(bytes_))) {
    const DeviceLimits limits = device_limits();
    const std::size_t cold_pairs = 1 + 2 * limits.l2_bytes / (2 * bytes_) + 1;
    const std::size_t pairs_that_fit = limits.free_bytes / 2 / (2 * bytes_);
    if (pairs_that_fit == 0) {
      fail_run("({}, {}) needs {} bytes of GPU memory, {} are free", rows, cols, 2 * bytes_,
               limits.free_bytes);
    }
    for (std::size_t i = 0; i < std::min(cold_pairs, pairs_that_fit); ++i) {
      pairs_.push_back({DeviceBuffer(bytes_), DeviceBuffer(bytes_)});
      pairs_.back().x.upload(x_.get(), bytes_);
    }
  }

  void run_once(const Operation &operation) override {
    std::memset(y_.get(), 0xff, bytes_);
    pairs_[0].y.upload(y_.get(), bytes_);
    enqueue_softmax(device_, operation, pairs_[0].x.data(), pairs_[0].y.data(), rows_, cols_,
                    nullptr);
    pairs_[0].y.download(y_.get(), bytes_);
  }
  const void *host_x() override { return x_.get(); }
  const void *host_y() override { return y_.get(); }
  double time_softmax(const Operation &operation) override {
    return time_rotated([&](const Pair &pair, softmax_stream_t stream) {
      enqueue_softmax(device_, operation, pair.x.data(), pair.y.data(), rows_, cols_, stream);
    });
  }
  double time_copy() override {
    return time_rotated([&](const Pair &pair, softmax_stream_t stream) {
      copy_on_device(pair.y.data(), pair.x.data(), bytes_, stream);
    });
  }
  std::string copy_method() const override { return "cudaMemcpyAsync, device to device"; }

 private:
  struct Pair {
    DeviceBuffer x, y;
  };

  template <typename Enqueue>
  double time_rotated(Enqueue enqueue) {
    constexpr std::size_t kMinLaunches = 10;
    const int launches = static_cast<int>(std::max(pairs_.size(), kMinLaunches));
    const auto one = [&](int i, softmax_stream_t stream) {
      enqueue(pairs_[static_cast<std::size_t>(i) % pairs_.size()], stream);
    };
    const double first = time_on_device(launches, 1, one);
    const double wanted = std::ceil(min_seconds_ / (first * launches));
    const int repeats = static_cast<int>(
        std::clamp(wanted, static_cast<double>(kMinRepeats), static_cast<double>(kMaxRepeats)));
    return time_on_device(launches, repeats, one);
  }

  const Device &device_;
  const std::int64_t rows_, cols_;
  const std::size_t bytes_;
  const double min_seconds_;
  const Bytes x_, y_;
  std::vector<Pair> pairs_;
};

}  // namespace

std::unique_ptr<Stopwatch> make_stopwatch(const Device &device, const Dtype &dtype,
                                          std::int64_t rows, std::int64_t cols,
                                          double min_seconds) {
  if (device.is_cuda()) {
    return std::make_unique<CudaStopwatch>(device, dtype, rows, cols, min_seconds);
  }
  return std::make_unique<CpuStopwatch>(device, dtype, rows, cols, min_seconds);
}

}  // namespace tool
