// Stream capture: legal for the very first call, bit for bit the eager result on replay, next to
// other threads, and independent of the handle's life.
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gpu/cuda_check.h"
#include "support/catch.h"
#include "support/child.h"
#include "support/problem.h"

namespace softmax_test {
namespace {

struct Work {
  std::int64_t rows, cols;
  Elements input;
  DeviceFloats x, y;

  Work(std::int64_t rows_, std::int64_t cols_)
      : rows(rows_),
        cols(cols_),
        input(make_input(SOFTMAX_DTYPE_F32, rows_, cols_, Pattern::kNormal3, 41)),
        x(rows_ * cols_),
        y(rows_ * cols_) {
    to_device(x.data(), input.bytes.data(), input.bytes.size());
    poison();
  }
  void poison() {
    must(cudaMemset(y.data(), 0x5a, y.bytes()));
    must(cudaDeviceSynchronize());
  }
  softmax_status_t call(softmax_handle_t handle, softmax_algo_t algo, cudaStream_t stream) const {
    return softmax_forward_to(handle, algo, x.data(), SOFTMAX_DTYPE_F32, y.data(),
                              SOFTMAX_DTYPE_F32, rows, cols, stream);
  }
  Elements result() const {
    Elements elements(SOFTMAX_DTYPE_F32, rows * cols);
    must(cudaDeviceSynchronize());
    must(cudaMemcpy(elements.bytes.data(), y.data(), y.bytes(), cudaMemcpyDeviceToHost));
    return elements;
  }
};

// Captures the first call that this process makes, on its first handle, and replays it. Prints what
// is wrong.
int first_capture() {
  const char *name = std::getenv("SOFTMAX_TEST_ALGO");
  softmax_algo_t algo;
  if (name == nullptr || softmax_algo_from_name(name, &algo) != SOFTMAX_SUCCESS) return 1;
  const Stream stream;
  Work work(19, 500);
  softmax_handle_t fresh = nullptr;
  if (softmax_create(&fresh, 0) != SOFTMAX_SUCCESS) return 2;
  Graph graph;
  if (graph.capture(stream, [&] { return work.call(fresh, algo, stream); }) != SOFTMAX_SUCCESS) {
    std::printf("captured: %s\n", last_error().c_str());
    return 3;
  }
  if (work.call(fresh, algo, stream) != SOFTMAX_SUCCESS) return 4;
  stream.synchronize();
  const Elements eager = work.result();
  int different = 0;
  for (int replay = 0; replay < 100; ++replay) {
    work.poison();
    graph.launch(stream);
    stream.synchronize();
    different += work.result().bytes != eager.bytes ? 1 : 0;
  }
  const Comparison result = compare(eager, make_reference(work.input, 19, 500), false, 500,
                                    promised_bound(SOFTMAX_DTYPE_F32));
  std::printf("%d replays differ; %s\n", different, result.failure.c_str());
  return different == 0 && result.failure.empty() ? 0 : 5;
}
const Child first_capture_registered("first_capture", first_capture);

}  // namespace

TEST_CASE("the very first call of a process can be captured and replays 100 times", "[graphs]") {
  // In a process of its own, where nothing has loaded the kernel yet.
  for (const softmax_algo_t algo : device().algorithms()) {
    const char *name = softmax_algo_name(algo);
    const ChildResult result = run_child("first_capture", {{"SOFTMAX_TEST_ALGO", name}});
    INFO(name << ": " << result.out << result.err);
    CHECK(result.exit_code == 0);
  }
}

TEST_CASE("a captured call does not run", "[graphs]") {
  const Stream stream;
  for (const softmax_algo_t algo : device().algorithms()) {
    Work work(3, 100);
    const Elements poison = work.result();
    Graph graph;
    CHECK(graph.capture(stream, [&] { return work.call(device().handle(), algo, stream); }) ==
          SOFTMAX_SUCCESS);
    stream.synchronize();
    CHECK(work.result().bytes == poison.bytes);
  }
}

TEST_CASE("every capture mode is legal", "[graphs]") {
  const Stream stream;
  for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                          cudaStreamCaptureModeRelaxed}) {
    for (const softmax_algo_t algo : device().algorithms()) {
      Work work(5, 257);
      Graph graph;
      CHECK(graph.capture(
                stream, [&] { return work.call(device().handle(), algo, stream); }, mode) ==
            SOFTMAX_SUCCESS);
      graph.launch(stream);
      stream.synchronize();
      CHECK(compare(work.result(), make_reference(work.input, 5, 257), false, 257,
                    promised_bound(SOFTMAX_DTYPE_F32))
                .failure == "");
    }
  }
}

TEST_CASE("a graph replays after its handle was destroyed", "[graphs]") {
  const Stream stream;
  for (const softmax_algo_t algo : device().algorithms()) {
    Work work(19, 300);
    softmax_handle_t fresh = nullptr;
    REQUIRE(softmax_create(&fresh, 0) == SOFTMAX_SUCCESS);
    Graph graph;
    softmax_status_t destroyed = SOFTMAX_STATUS_INTERNAL;
    const softmax_status_t captured = graph.capture(stream, [&] {
      const softmax_status_t status = work.call(fresh, algo, stream);
      destroyed = softmax_destroy(fresh);  // while the capture goes on
      return status;
    });
    CHECK(captured == SOFTMAX_SUCCESS);
    CHECK(destroyed == SOFTMAX_SUCCESS);
    graph.launch(stream);
    stream.synchronize();
    CHECK(compare(work.result(), make_reference(work.input, 19, 300), false, 300,
                  promised_bound(SOFTMAX_DTYPE_F32))
              .failure == "");
  }
}

TEST_CASE("a call works while another thread captures", "[graphs][threads]") {
  // With a thread-local capture in one thread, calls of another are outside it.
  const Stream capturing, eager;
  Work captured_work(19, 300), eager_work(23, 500);
  const Elements expected_input = eager_work.input;
  std::atomic<bool> stop{false};
  std::atomic<int> calls{0};
  std::string failure;
  std::thread other([&] {
    while (!stop || calls < 50) {
      if (eager_work.call(device().handle(), SOFTMAX_ALGO_AUTO, eager) != SOFTMAX_SUCCESS) {
        failure = last_error();
      }
      if (cudaStreamSynchronize(eager) != cudaSuccess) failure = "the stream failed";
      ++calls;
      if (!failure.empty()) break;
    }
  });
  int bad_captures = 0;
  for (int i = 0; i < 50; ++i) {
    Graph graph;
    bad_captures +=
        graph.capture(
            capturing,
            [&] { return captured_work.call(device().handle(), SOFTMAX_ALGO_AUTO, capturing); },
            cudaStreamCaptureModeThreadLocal) != SOFTMAX_SUCCESS;
    graph.launch(capturing);
    capturing.synchronize();
  }
  stop = true;
  other.join();
  CHECK(failure == "");
  CHECK(bad_captures == 0);
  CHECK(compare(captured_work.result(), make_reference(captured_work.input, 19, 300), false, 300,
                promised_bound(SOFTMAX_DTYPE_F32))
            .failure == "");
  CHECK(compare(eager_work.result(), make_reference(expected_input, 23, 500), false, 500,
                promised_bound(SOFTMAX_DTYPE_F32))
            .failure == "");
}

TEST_CASE("a refused call leaves a capture as it was", "[graphs]") {
  // A refused call must not break the capture, nor leave anything in the graph.
  const Stream stream;
  Work work(5, 257);
  const Elements poison = work.result();
  Graph graph;
  softmax_status_t refused = SOFTMAX_SUCCESS;
  const softmax_status_t captured = graph.capture(
      stream,
      [&] {
        std::vector<float> host(10);
        refused = softmax_forward(device().handle(), SOFTMAX_ALGO_AUTO, host.data(), 1, 10, stream);
        return softmax_forward(device().handle(), SOFTMAX_ALGO_COLUMN, work.y.data(), 1, 10,
                               stream);
      },
      cudaStreamCaptureModeRelaxed);
  CHECK(refused == SOFTMAX_STATUS_WRONG_DEVICE);
  CHECK(captured == SOFTMAX_STATUS_NOT_SUPPORTED_ALGO);
  graph.launch(stream);
  stream.synchronize();
  CHECK(work.result().bytes == poison.bytes);
}

}  // namespace softmax_test
