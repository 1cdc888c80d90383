// Entries about streams and graphs, on a CUDA device.
#include <algorithm>
#include <atomic>
#include <thread>

#include "cuda_device.h"
#include "cuda_specials.h"
#include "cuda_tools.h"
#include "element.h"
#include "matrix.h"
#include "process.h"

namespace reports {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 22;
constexpr std::int64_t kSizeClasses[] = {1, 31, 32, 1024, 1025, 50000, 200000, 300000};

// An f32 problem on the device, out of place, and its expected result on the host.
class GraphProblem {
 public:
  GraphProblem(CudaDevice *device, const Input &input, bool is_log)
      : device_(device),
        is_log_(is_log),
        bytes_(static_cast<std::size_t>(input.count()) * 4),
        x_(device, bytes_, 4096, 0),
        y_(device, bytes_, 4096, 0) {
    case_.input = input;
    case_.y_dtype = input.dtype;
    case_.op = is_log ? "log_softmax" : "softmax";
    expected_ = expected_of(case_, is_log);
    x_.write(encode_all(input));
    device->finish();
  }

  Call call(softmax_algo_t algo) const {
    const Input &input = case_.input;
    return {algo,      is_log_,     x_.data(),  input.dtype,
            y_.data(), input.dtype, input.rows, input.columns};
  }
  void poison() {
    y_.poison();
    device_->finish();
  }
  void check(Verdict *verdict) const {
    check_output(case_, is_log_, expected_, y_.read().data(), verdict);
    verdict->expect(y_.guards_untouched(), "the guards are untouched");
  }
  std::vector<unsigned char> output() const { return y_.read(); }
  void *x() const { return x_.data(); }
  std::size_t bytes() const { return bytes_; }

 private:
  CudaDevice *device_;
  bool is_log_;
  std::size_t bytes_;
  Case case_;
  Expected expected_;
  Guarded x_;
  Guarded y_;
};

struct Stream {
  explicit Stream(CudaDevice *d) : device(d), stream(d->open_stream()) {}
  ~Stream() { cudaStreamDestroy(stream); }
  CudaDevice *device;
  softmax_stream_t stream;
};

// What `enqueue` puts on a stream, as an executable graph.
class Graph {
 public:
  template <typename Enqueue>
  bool capture(softmax_stream_t stream, Enqueue enqueue, Verdict *verdict) {
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    enqueue();
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    cudaGetLastError();
    if (!verdict->expect(ended == cudaSuccess && graph != nullptr,
                         std::string("the capture ends with ") + cudaGetErrorName(ended))) {
      return false;
    }
    std::size_t nodes = 0;
    must(cudaGraphGetNodes(graph, nullptr, &nodes));
    verdict->expect(nodes > 0, "the call was captured, not run");
    must(cudaGraphInstantiate(&executable_, graph, 0));
    must(cudaGraphDestroy(graph));
    return true;
  }
  void launch(softmax_stream_t stream) { must(cudaGraphLaunch(executable_, stream)); }
  ~Graph() {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
  }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

Input own_input(const Entry &entry, std::int64_t rows, std::int64_t columns) {
  return make_input(entry.gen, dtype_of(entry.dtype), rows, columns);
}

bool is_log_entry(const Entry &entry) { return entry.op == "log_softmax"; }

void check_captured(CudaDevice *device, softmax_handle_t handle, softmax_algo_t algo,
                    GraphProblem *problem, Verdict *verdict) {
  const Stream own(device);
  Graph graph;
  problem->poison();
  const auto enqueue = [&] {
    verdict->expect_status(make_call(problem->call(algo), handle, own.stream), SOFTMAX_SUCCESS,
                           "the captured call");
  };
  if (!graph.capture(own.stream, enqueue, verdict)) return;
  graph.launch(own.stream);
  verdict->expect(device->finish(own.stream).empty(), "the replay ends well");
  problem->check(verdict);
}

}  // namespace

// The input arrives on the stream after a wait: a call that went to another stream, or a pass of
// it, would read what was there before. And the call returns while the stream still waits.
constexpr std::int64_t kWaitMicroseconds = 20000;

void run_stream_order(Device *base, const Entry &entry, Verdict *verdict) {
  auto *device = static_cast<CudaDevice *>(base);
  const Stream own(device);
  const std::int32_t dtype = dtype_of(entry.dtype);
  for (const std::int64_t columns : kSizeClasses) {
    const std::int64_t rows =
        std::max<std::int64_t>(1, std::min(entry.shape.at(0), kMostElements / columns));
    GraphProblem problem(device, own_input(entry, rows, columns), is_log_entry(entry));
    Guarded late(device, problem.bytes(), 4096, 0);
    must(cudaMemcpy(late.data(), problem.x(), problem.bytes(), cudaMemcpyDeviceToDevice));
    for (const softmax_algo_t algo : device->algos_for(dtype, dtype, columns)) {
      if (!device->affords(algo, columns)) continue;
      verdict->set_context("N = " + std::to_string(columns) + ", " + algo_label(algo));
      // CUDA may have to wait for the device when it loads a kernel for its first call.
      verdict->expect_status(make_call(problem.call(algo), device->handle(), own.stream),
                             SOFTMAX_SUCCESS, "the first call");
      device->finish(own.stream);
      problem.poison();
      must(cudaMemsetAsync(problem.x(), 0xff, problem.bytes(), device->stream()));
      device->finish();
      launch_wait(kWaitMicroseconds, own.stream);
      must(cudaMemcpyAsync(problem.x(), late.data(), problem.bytes(), cudaMemcpyDeviceToDevice,
                           own.stream));
      verdict->expect_status(make_call(problem.call(algo), device->handle(), own.stream),
                             SOFTMAX_SUCCESS, "the call");
      verdict->expect(cudaStreamQuery(own.stream) == cudaErrorNotReady,
                      "the call returns before the stream reaches it");
      cudaGetLastError();
      const std::string error = device->finish(own.stream);
      verdict->expect(error.empty(), error);
      problem.check(verdict);
    }
  }
}

// In a process of its own, where no kernel has run before.
void run_first_capture(Device *device, const Entry &, Verdict *verdict) {
  const int status = run_self("--part-first-capture " + std::to_string(device->ordinal()));
  verdict->expect(status == 0, "the process ends with " + std::to_string(status) + ", not 0");
}

int first_capture_part(std::int32_t ordinal) {
  CudaDevice device(ordinal);
  Verdict verdict;
  for (const std::int64_t columns : kSizeClasses) {
    const std::int64_t rows = std::min<std::int64_t>(16, kMostElements / columns);
    GraphProblem problem(&device, formula_input("u(k)*4", SOFTMAX_DTYPE_F32, rows, columns), false);
    for (const softmax_algo_t algo : device.algos()) {
      verdict.set_context("N = " + std::to_string(columns) + ", " + algo_label(algo));
      softmax_handle_t handle = nullptr;
      verdict.expect_status(softmax_create(&handle, ordinal), SOFTMAX_SUCCESS, "create");
      check_captured(&device, handle, algo, &problem, &verdict);
      verdict.expect_status(softmax_destroy(handle), SOFTMAX_SUCCESS, "destroy");
    }
  }
  for (const std::string &message : verdict.messages()) std::printf("%s\n", message.c_str());
  return verdict.failures() == 0 && verdict.comparisons() > 0 ? 0 : 1;
}

void run_destroy_around_capture(Device *base, const Entry &entry, Verdict *verdict) {
  auto *device = static_cast<CudaDevice *>(base);
  GraphProblem problem(device, own_input(entry, entry.shape.at(0), entry.shape.at(1)),
                       is_log_entry(entry));
  const Stream own(device);
  for (const softmax_algo_t algo : device->algos()) {
    for (const bool before_the_end : {true, false}) {
      verdict->set_context(algo_label(algo) + (before_the_end ? ", destroyed before the end"
                                                              : ", destroyed after instantiation"));
      softmax_handle_t handle = nullptr;
      verdict->expect_status(softmax_create(&handle, device->ordinal()), SOFTMAX_SUCCESS, "create");
      Graph graph;
      problem.poison();
      const bool captured = graph.capture(
          own.stream,
          [&] {
            verdict->expect_status(make_call(problem.call(algo), handle, own.stream),
                                   SOFTMAX_SUCCESS, "the captured call");
            if (before_the_end) {
              verdict->expect_status(softmax_destroy(handle), SOFTMAX_SUCCESS, "destroy");
            }
          },
          verdict);
      if (!before_the_end) {
        verdict->expect_status(softmax_destroy(handle), SOFTMAX_SUCCESS, "destroy");
      }
      if (!captured) continue;
      graph.launch(own.stream);
      verdict->expect(device->finish(own.stream).empty(), "the replay ends well");
      problem.check(verdict);
    }
  }
}

void run_capture_beside_calls(Device *base, const Entry &entry, Verdict *verdict) {
  auto *device = static_cast<CudaDevice *>(base);
  const Input input = own_input(entry, entry.shape.at(0), entry.shape.at(1));
  GraphProblem captured(device, input, is_log_entry(entry));
  GraphProblem called(device, input, is_log_entry(entry));
  std::atomic<bool> stop{false};
  std::atomic<std::int64_t> calls{0};
  std::atomic<std::int64_t> refused{0};
  std::thread other([&] {
    const Stream own(device);
    while (!stop) {
      const Call call = called.call(SOFTMAX_ALGO_AUTO);
      if (make_call(call, device->handle(), own.stream) != SOFTMAX_SUCCESS) ++refused;
      ++calls;
      if (calls % 64 == 0) std::this_thread::yield();
    }
    device->finish(own.stream);
  });
  while (calls == 0) std::this_thread::yield();
  const std::int64_t calls_before = calls;
  for (int n = 0; n < 20; ++n) {
    for (const softmax_algo_t algo : device->algos()) {
      const Stream own(device);
      Graph graph;
      graph.capture(
          own.stream,
          [&] {
            const std::int64_t seen = calls;
            verdict->expect_status(make_call(captured.call(algo), device->handle(), own.stream),
                                   SOFTMAX_SUCCESS, "the captured call");
            while (calls < seen + 2 && refused == 0) std::this_thread::yield();
          },
          verdict);
    }
  }
  stop = true;
  other.join();
  verdict->expect(calls > calls_before, "the other thread made calls meanwhile");
  verdict->expect(refused == 0, std::to_string(refused.load()) + " of its calls were refused");
  called.check(verdict);
  for (const softmax_algo_t algo : device->algos()) {
    check_captured(device, device->handle(), algo, &captured, verdict);
  }
}

void run_replays(Device *base, const Entry &entry, Verdict *verdict) {
  auto *device = static_cast<CudaDevice *>(base);
  GraphProblem problem(device, own_input(entry, entry.shape.at(0), entry.shape.at(1)),
                       is_log_entry(entry));
  const Stream own(device);
  const int replays = entry.check.value("graph_replay", 0);
  for (const softmax_algo_t algo : device->algos()) {
    verdict->set_context(algo_label(algo));
    const Call call = problem.call(algo);
    for (int n = 0; n < 5; ++n) {
      verdict->expect_status(make_call(call, device->handle(), own.stream), SOFTMAX_SUCCESS,
                             "a call before the capture");
    }
    device->finish(own.stream);
    problem.check(verdict);
    const std::vector<unsigned char> eager = problem.output();
    Graph graph;
    const auto enqueue = [&] { make_call(call, device->handle(), own.stream); };
    if (!graph.capture(own.stream, enqueue, verdict)) continue;
    for (int n = 0; n < replays; ++n) {
      problem.poison();
      graph.launch(own.stream);
      verdict->expect(device->finish(own.stream).empty(), "the replay ends well");
      verdict->expect(problem.output() == eager, "a replay has the bits of the eager call");
    }
  }
}

}  // namespace reports
