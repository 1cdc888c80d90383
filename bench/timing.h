// Timing by graph replay: several calls in one CUDA graph, median over its replays.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace bench {

// Enqueues one call that works on buffer pair `pair`.
using Enqueue = std::function<void(int pair, cudaStream_t stream)>;

struct Timing {
  double us = 0.0;      // one call: the median of the replays
  double min_us = 0.0;  // one call: the fastest replay
  int calls = 0;        // in the graph
  int replays = 0;      // 0: one launch outside a graph took longer than the box
};

struct TimingBox {
  double cell_ms = 40.0;     // about how long one cell may take
  double graph_us = 1000.0;  // about how long one replay should take
  int max_calls = 200;
  int max_replays = 25;
};

// Call i works on pair i % pairs. A graph holds at least one round over the pairs, so that its
// replays meet a pair again only after all others. The kernel must have run once before: its module
// load is not to be timed.
Timing time_calls(const Enqueue &enqueue, int pairs, const TimingBox &box, cudaStream_t stream);

}  // namespace bench
