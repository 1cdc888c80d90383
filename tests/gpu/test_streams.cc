// Stream order: work is enqueued behind what the stream holds, and nothing is waited for.
#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gpu/cuda_check.h"
#include "support/catch.h"
#include "support/problem.h"

namespace softmax_test {
namespace {

// Holds a stream until it is let go: what the library enqueues behind it cannot have run before.
// A time limit ends the wait, so that a defect cannot hang the tests.
class Gate {
 public:
  explicit Gate(cudaStream_t stream) { must(cudaLaunchHostFunc(stream, wait, this)); }
  ~Gate() { open_ = true; }
  void open() { open_ = true; }

 private:
  static void wait(void *self) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!static_cast<Gate *>(self)->open_ && std::chrono::steady_clock::now() < limit) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  std::atomic<bool> open_{false};
};

Elements floats(const std::vector<float> &values) {
  Elements elements(SOFTMAX_DTYPE_F32, static_cast<std::int64_t>(values.size()));
  std::memcpy(elements.bytes.data(), values.data(), elements.bytes.size());
  return elements;
}

// The input is written by a copy that stands before the call in the stream, and the result read by
// one behind it. The call is made while a gate holds all three, so that a call that ran early, on
// another stream, would have read the zeros that are there.
void check_order(softmax_algo_t algo, std::int64_t rows, std::int64_t cols, cudaStream_t stream,
                 softmax_handle_t handle) {
  const Elements x = make_input(SOFTMAX_DTYPE_F32, rows, cols, Pattern::kNormal3, 31);
  const Reference reference = make_reference(x, rows, cols);
  DeviceFloats source(rows * cols), work(rows * cols), result(rows * cols);
  to_device(source.data(), x.bytes.data(), x.bytes.size());
  // CUDA may have to wait for the device when it loads a kernel for its first call.
  must(cudaMemset(work.data(), 0, work.bytes()));
  CHECK(softmax_forward(handle, algo, work.data(), rows, cols, stream) == SOFTMAX_SUCCESS);
  must(cudaMemset(work.data(), 0, work.bytes()));
  must(cudaMemset(result.data(), 0x5a, result.bytes()));
  must(cudaDeviceSynchronize());

  softmax_status_t status;
  cudaError_t busy;
  {
    Gate gate(stream);
    must(cudaMemcpyAsync(work.data(), source.data(), work.bytes(), cudaMemcpyDeviceToDevice,
                         stream));
    status = softmax_forward(handle, algo, work.data(), rows, cols, stream);
    must(cudaMemcpyAsync(result.data(), work.data(), work.bytes(), cudaMemcpyDeviceToDevice,
                         stream));
    busy = cudaStreamQuery(stream);  // the call has returned and nothing has run yet
    gate.open();
    must(cudaStreamSynchronize(stream));
  }
  std::vector<float> y(static_cast<std::size_t>(rows * cols));
  must(cudaMemcpy(y.data(), result.data(), result.bytes(), cudaMemcpyDeviceToHost));

  INFO(softmax_algo_name(algo) << ", " << rows << " x " << cols);
  CHECK(status == SOFTMAX_SUCCESS);
  CHECK(busy == cudaErrorNotReady);
  CHECK(compare(floats(y), reference, false, cols, promised_bound(SOFTMAX_DTYPE_F32)).failure ==
        "");
}

constexpr std::int64_t kShapes[][2] = {{1, 1},    {3, 33},    {500, 100}, {7, 500},
                                       {7, 1000}, {65, 4097}, {2, 50257}};

}  // namespace

TEST_CASE("a call runs behind what its stream holds and waits for nothing", "[streams]") {
  const Stream stream;
  for (const auto &shape : kShapes) {
    for (const softmax_algo_t algo :
         device().algorithms_for(SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F32, shape[1])) {
      check_order(algo, shape[0], shape[1], stream, device().handle());
    }
  }
}

TEST_CASE("a call on a blocking stream runs in its order", "[streams]") {
  const Stream stream(cudaStreamDefault);
  for (const softmax_algo_t algo : device().algorithms()) {
    check_order(algo, 7, 500, stream, device().handle());
  }
}

TEST_CASE("the NULL stream is the legacy default stream", "[streams]") {
  for (const softmax_algo_t algo : device().algorithms()) {
    check_order(algo, 7, 500, nullptr, device().handle());
    check_order(algo, 7, 500, cudaStreamLegacy, device().handle());
  }
}

TEST_CASE("the per-thread default stream is accepted", "[streams]") {
  for (const softmax_algo_t algo : device().algorithms()) {
    check_order(algo, 7, 500, cudaStreamPerThread, device().handle());
  }
}

TEST_CASE("a call does not wait for other streams", "[streams]") {
  // Were the default stream used inside, a blocking stream that is held would hold the call too.
  const Stream held(cudaStreamDefault);
  const Stream stream;
  DeviceFloats work(1000);
  for (const softmax_algo_t algo : device().algorithms()) {
    must(cudaMemset(work.data(), 0, work.bytes()));
    must(cudaDeviceSynchronize());
    bool done = false;
    softmax_status_t status;
    {
      Gate gate(held);
      status = softmax_forward(device().handle(), algo, work.data(), 10, 100, stream);
      const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (!done && std::chrono::steady_clock::now() < limit) {
        done = cudaStreamQuery(stream) == cudaSuccess;
      }
      gate.open();
      held.synchronize();
    }
    stream.synchronize();
    INFO(softmax_algo_name(algo));
    CHECK(status == SOFTMAX_SUCCESS);
    CHECK(done);
  }
}

TEST_CASE("four threads with a stream each make 500 calls on one handle", "[streams][threads]") {
  constexpr int kThreads = 4;
  constexpr int kCalls = 500;
  constexpr std::int64_t kRows = 37;
  constexpr std::int64_t kMaxCols = 500;  // what every algorithm takes
  std::vector<std::string> failures(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t, &failures] {
      const Stream stream;
      DeviceFloats work(kRows * kMaxCols);
      const auto algorithms = device().algorithms();
      for (int c = 0; c < kCalls && failures[t].empty(); ++c) {
        const std::int64_t cols = 1 + (c * 131 + t * 17) % kMaxCols;
        const softmax_algo_t algo = algorithms[static_cast<std::size_t>(c + t) % algorithms.size()];
        const Elements x = make_input(SOFTMAX_DTYPE_F32, kRows, cols, Pattern::kNormal3,
                                      static_cast<std::uint64_t>(1000 * t + c));
        must(cudaMemcpyAsync(work.data(), x.bytes.data(), x.bytes.size(), cudaMemcpyHostToDevice,
                             stream));
        const softmax_status_t status =
            softmax_forward(device().handle(), algo, work.data(), kRows, cols, stream);
        Elements y(SOFTMAX_DTYPE_F32, kRows * cols);
        must(cudaMemcpyAsync(y.bytes.data(), work.data(), y.bytes.size(), cudaMemcpyDeviceToHost,
                             stream));
        stream.synchronize();
        if (status != SOFTMAX_SUCCESS) failures[t] = last_error();
        // Every tenth result is compared in full; that is most of the time here.
        if (c % 10 == 0) {
          const Comparison result = compare(y, make_reference(x, kRows, cols), false, cols,
                                            promised_bound(SOFTMAX_DTYPE_F32));
          if (!result.failure.empty()) failures[t] = result.failure;
        }
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  for (const std::string &failure : failures) CHECK(failure == "");
}

}  // namespace softmax_test
