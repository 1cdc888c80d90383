// Calls that begin while the one before them in the stream still runs: each finds all that was
// written before it, and writes over nothing that is still read.
#include <cuda_runtime_api.h>

#include <vector>

#include "gpu/cuda_check.h"
#include "support/catch.h"
#include "support/problem.h"

namespace softmax_test {
namespace {

constexpr int kCalls = 9;

struct Shape {
  softmax_algo_t algo;
  std::int64_t rows, cols;
};
// On an H200: few threads, which wait and let the next call begin early; more, which wait alone;
// and more than the device has at once, which do neither.
constexpr Shape kShapes[] = {{SOFTMAX_ALGO_AUTO, 1, 128},       {SOFTMAX_ALGO_AUTO, 64, 1000},
                             {SOFTMAX_ALGO_WARP, 3, 1001},      {SOFTMAX_ALGO_WARP, 300, 500},
                             {SOFTMAX_ALGO_BLOCK, 16, 4096},    {SOFTMAX_ALGO_BLOCK, 200, 8192},
                             {SOFTMAX_ALGO_TILE, 100, 333},     {SOFTMAX_ALGO_CLUSTER, 1, 32000},
                             {SOFTMAX_ALGO_CLUSTER, 16, 50257}, {SOFTMAX_ALGO_CLUSTER, 600, 9000},
                             {SOFTMAX_ALGO_WARP, 20000, 96},    {SOFTMAX_ALGO_WARP, 40000, 96}};

// Where call i reads and writes.
enum class Way {
  kAlong,    // from buffer i to buffer i + 1: none reads what has not been written
  kToAndFro  // between two buffers: none writes over what is still read, and none finds old lines
};

class Chain {
 public:
  Chain(const Shape &shape, Way way)
      : shape_(shape),
        way_(way),
        count_(shape.rows * shape.cols),
        values_(count_ * (kCalls + 1)),
        x_(make_input(SOFTMAX_DTYPE_F32, shape.rows, shape.cols, Pattern::kNormal10, 61)) {}

  // NaN everywhere but in the first buffer: whoever comes too early takes it on.
  void reset() const {
    must(cudaMemset(values_.data(), 0xff, values_.bytes()));
    to_device(values_.data(), x_.bytes.data(), x_.bytes.size());
    must(cudaDeviceSynchronize());
  }
  // Log-softmax and softmax in turn. Before each, a call of few threads, which lets it begin early,
  // and makes a part of what it reads; the last part, and the first.
  softmax_status_t call(int i, cudaStream_t stream) const {
    const softmax_handle_t handle = device().handle();
    const std::int64_t some = count_ < 256 ? count_ : 256;
    float *const from = buffer(i);
    for (float *part : {from + count_ - some, from}) {
      if (const softmax_status_t status =
              softmax_forward(handle, SOFTMAX_ALGO_AUTO, part, 1, some, stream)) {
        return status;
      }
    }
    const auto forward = i % 2 == 0 ? logsoftmax_forward_to : softmax_forward_to;
    return forward(handle, shape_.algo, from, SOFTMAX_DTYPE_F32, buffer(i + 1), SOFTMAX_DTYPE_F32,
                   shape_.rows, shape_.cols, stream);
  }
  softmax_status_t all(cudaStream_t stream, bool one_by_one) const {
    for (int i = 0; i < kCalls; ++i) {
      if (const softmax_status_t status = call(i, stream)) return status;
      if (one_by_one) must(cudaStreamSynchronize(stream));
    }
    return SOFTMAX_SUCCESS;
  }
  // Of the buffers that are in use.
  std::vector<unsigned char> bytes() const {
    const std::size_t used =
        values_.bytes() / (kCalls + 1) * (way_ == Way::kAlong ? kCalls + 1 : 2);
    std::vector<unsigned char> result(used);
    must(cudaDeviceSynchronize());
    must(cudaMemcpy(result.data(), values_.data(), used, cudaMemcpyDeviceToHost));
    return result;
  }

 private:
  float *buffer(int i) const { return values_.data() + (way_ == Way::kAlong ? i : i % 2) * count_; }

  const Shape shape_;
  const Way way_;
  const std::int64_t count_;
  const DeviceFloats values_;
  const Elements x_;
};

bool holds_no_nan(const std::vector<unsigned char> &bytes) {
  const float *values = reinterpret_cast<const float *>(bytes.data());
  for (std::size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
    if (!(values[i] == values[i])) return false;
  }
  return true;
}

bool can_run(const Shape &shape) {
  for (const softmax_algo_t algo :
       device().algorithms_for(SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F32, shape.cols)) {
    if (algo == shape.algo) return true;
  }
  return shape.algo == SOFTMAX_ALGO_AUTO;
}

}  // namespace

TEST_CASE("calls one after another have the results of calls that are waited for", "[overlap]") {
  const Stream stream;
  int chains = 0;
  for (const Shape &shape : kShapes) {
    if (!can_run(shape)) continue;
    for (const Way way : {Way::kAlong, Way::kToAndFro}) {
      ++chains;
      INFO(softmax_algo_name(shape.algo) << ", " << shape.rows << " x " << shape.cols
                                         << (way == Way::kAlong ? ", along" : ", to and fro"));
      const Chain chain(shape, way);
      chain.reset();
      REQUIRE(chain.all(stream, true) == SOFTMAX_SUCCESS);
      const std::vector<unsigned char> expected = chain.bytes();
      CHECK(holds_no_nan(expected));

      constexpr int kRounds = 6;
      for (int round = 0; round < kRounds; ++round) {
        chain.reset();
        REQUIRE(chain.all(stream, false) == SOFTMAX_SUCCESS);
        CHECK(chain.bytes() == expected);
      }
      Graph graph;
      REQUIRE(graph.capture(stream, [&] { return chain.all(stream, false); }) == SOFTMAX_SUCCESS);
      for (int round = 0; round < kRounds; ++round) {
        chain.reset();
        graph.launch(stream);
        CHECK(chain.bytes() == expected);
      }
    }
  }
  CHECK(chains >= 8);
}

}  // namespace softmax_test
