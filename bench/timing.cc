// Timing by graph replay. See timing.h.
#include "timing.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "device.h"

namespace bench {
namespace {

class Event {
 public:
  Event() { check_cuda(cudaEventCreate(&event_), "creating an event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;

  void record(cudaStream_t stream) { check_cuda(cudaEventRecord(event_, stream), "recording"); }
  double us_since(const Event &earlier) const {
    check_cuda(cudaEventSynchronize(event_), "running the timed work");
    float ms = 0.0f;
    check_cuda(cudaEventElapsedTime(&ms, earlier.event_, event_), "reading an event");
    return 1000.0 * ms;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// A sequence of calls, captured once.
class Graph {
 public:
  Graph(const Enqueue &enqueue, int pairs, int calls, cudaStream_t stream) {
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
               "beginning a capture");
    cudaGraph_t graph = nullptr;
    try {
      for (int i = 0; i < calls; ++i) enqueue(i % pairs, stream);
    } catch (...) {
      cudaStreamEndCapture(stream, &graph);
      if (graph != nullptr) cudaGraphDestroy(graph);
      throw;
    }
    check_cuda(cudaStreamEndCapture(stream, &graph), "ending a capture");
    const cudaError_t error = cudaGraphInstantiate(&graph_, graph, 0);
    cudaGraphDestroy(graph);
    check_cuda(error, "instantiating a graph");
  }
  ~Graph() { cudaGraphExecDestroy(graph_); }
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;

  void launch(cudaStream_t stream) { check_cuda(cudaGraphLaunch(graph_, stream), "replaying"); }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace

Timing time_calls(const Enqueue &enqueue, int pairs, const TimingBox &box, cudaStream_t stream) {
  Event begin;
  Event end;
  begin.record(stream);
  enqueue(pairs - 1, stream);
  end.record(stream);
  const double once_us = std::max(0.5, end.us_since(begin));
  if (once_us * pairs > 1000.0 * box.cell_ms) return {once_us, once_us, 1, 0};

  Timing timing;
  const int wanted_calls = static_cast<int>(std::ceil(box.graph_us / once_us));
  timing.calls = std::max(pairs, std::min(wanted_calls, box.max_calls));
  timing.calls = (timing.calls + pairs - 1) / pairs * pairs;
  Graph graph(enqueue, pairs, timing.calls, stream);

  // One replay is thrown away, and says how many fit into the box.
  begin.record(stream);
  graph.launch(stream);
  end.record(stream);
  const double replay_us = std::max(1.0, end.us_since(begin));
  const double fitting = 1000.0 * box.cell_ms / replay_us - 1.0;
  timing.replays = static_cast<int>(std::clamp(fitting, 3.0, double(box.max_replays)));

  std::vector<double> us;
  for (int i = 0; i < timing.replays; ++i) {
    begin.record(stream);
    graph.launch(stream);
    end.record(stream);
    us.push_back(end.us_since(begin) / timing.calls);
  }
  std::sort(us.begin(), us.end());
  const std::size_t middle = us.size() / 2;
  timing.us = us.size() % 2 == 1 ? us[middle] : 0.5 * (us[middle - 1] + us[middle]);
  timing.min_us = us.front();
  return timing;
}

}  // namespace bench
