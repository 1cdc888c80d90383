// What one call costs the host, printed beside a bare memset's.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "gpu/cuda_check.h"
#include "support/catch.h"
#include "support/device.h"

namespace softmax_test {
namespace {

// Microseconds a call: the least of several batches, each short enough not to fill the stream.
template <typename Call>
double host_microseconds(cudaStream_t stream, Call call) {
  constexpr int kBatches = 30;
  constexpr int kCalls = 200;
  double least = 1e9;
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    least = std::min(least, time.count() / kCalls);
    must(cudaStreamSynchronize(stream));
  }
  return least;
}

}  // namespace

TEST_CASE("a call costs the host less than 10 microseconds", "[cost]") {
  constexpr double kLimitMicroseconds = 10;
  // Without a workspace GRID has memory allocated, cleared and freed: three calls more.
  constexpr double kWithMemoryMicroseconds = 15;
  const Stream stream;
  DeviceFloats work(64 * 128);
  must(cudaMemset(work.data(), 0, work.bytes()));
  must(cudaDeviceSynchronize());
  const double bare = host_microseconds(
      stream, [&] { must(cudaMemsetAsync(work.data(), 0, work.bytes(), stream)); });
  std::printf("host cost of a call, microseconds: cudaMemsetAsync %.2f", bare);
  for (const softmax_algo_t algo : device().algorithms()) {
    const softmax_handle_t handle = device().handle();
    int failures = 0;
    const double cost = host_microseconds(stream, [&] {
      failures += softmax_forward(handle, algo, work.data(), 64, 128, stream) != SOFTMAX_SUCCESS;
    });
    std::printf(", %s %.2f", softmax_algo_name(algo), cost);
    CHECK(failures == 0);
    CHECK(cost < (algo == SOFTMAX_ALGO_GRID ? kWithMemoryMicroseconds : kLimitMicroseconds));
  }
  std::printf("\n");
}

}  // namespace softmax_test
