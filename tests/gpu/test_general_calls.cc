// The general call as CUDA code meets it: streams, graphs, broadcast inputs, far offsets, and
// shapes without work. What it computes is in the other test_general files.
#include <cuda_runtime_api.h>

#include <cmath>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gpu/general_args.h"
#include "support/catch.h"
#include "support/general_calls.h"

namespace softmax_test {

TEST_CASE("general: no rows or no columns: success, and nothing is read", "[general]") {
  for (const softmax_algo_t algo : GeneralCalls(device()).algos()) {
    for (const int empty : {0, 1}) {
      for (const int axis : {0, 1}) {
        for (const int direction : {0, 1}) {
          softmax_desc_t desc = matrix(empty == 0 ? 0 : 5, empty == 0 ? 5 : 0);
          desc.mask_kind = SOFTMAX_MASK_ROW_LENGTH;
          desc.scale = 2;
          desc.axis = axis;
          desc.direction = direction;
          const softmax_status_t status = execute(desc, no_args(), algo);
          INFO(softmax_algo_name(algo) << " axis " << axis);
          CHECK((status == SOFTMAX_SUCCESS || (status == SOFTMAX_STATUS_NOT_SUPPORTED_ALGO &&
                                               GeneralCalls(device()).may_refuse(algo))));
        }
      }
    }
  }
}

TEST_CASE("general: inputs of stride 0 are one for all", "[general]") {
  const Array<float> x(std::vector<float>{0.0f, 1.0f, 2.0f});
  const Array<float> y(12, 7.0f), one(3, 7.0f), mask(std::vector<float>{0.5f, 0.0f, -1.0f});
  softmax_desc_t desc = matrix(4, 3);
  desc.mask_kind = SOFTMAX_MASK_ADDITIVE;
  softmax_args_t args = no_args();
  args.x = x.data();
  args.mask = mask.data();
  args.y = y.data();
  desc.x_stride[1] = desc.mask_stride[1] = 1;
  REQUIRE(execute(desc, args) == SOFTMAX_SUCCESS);
  softmax_desc_t row = matrix(1, 3);
  row.mask_kind = SOFTMAX_MASK_ADDITIVE;
  args.y = one.data();
  REQUIRE(execute(row, args) == SOFTMAX_SUCCESS);
  const std::vector<float> all = y.get(), expected = one.get();
  for (std::size_t i = 0; i < 12; ++i) CHECK(all[i] == expected[i % 3]);
  // Along the axis itself: one value for all columns.
  desc.mask_kind = SOFTMAX_MASK_NONE;
  desc.x_stride[0] = 0;
  desc.x_stride[1] = 0;
  desc.axis = 1;
  desc.shape[0] = 1, desc.x_stride[0] = 5;  // of an extent of 1: ignored
  args.mask = nullptr;
  args.y = y.data();
  REQUIRE(execute(desc, args) == SOFTMAX_SUCCESS);
  CHECK(std::fabs(y.get()[2] - 1.0f / 3) < 1e-7f);
}

TEST_CASE("general: a sink and a length are one a row, one a head, or one for all", "[general]") {
  // (batch, head, column) of zeros.
  const Array<float> x(24, 0.0f), y(24, 7.0f);
  const std::vector<float> sinks = {-1.0f, 0.0f, 1.0f, 2.0f, 3.0f, 4.0f};
  const std::vector<int32_t> lengths = {1, 2, 3, 4, 1, 2};
  const Array<float> sink(sinks);
  const Array<int32_t> length(lengths);
  softmax_desc_t base = matrix(1, 1);
  base.ndim = 3;
  base.shape[0] = 2, base.shape[1] = 3, base.shape[2] = 4;
  const auto check = [&](const softmax_desc_t &desc, bool has_sink,
                         const std::function<int(int)> &index) {
    softmax_args_t args = no_args();
    args.x = x.data();
    args.y = y.data();
    if (has_sink) args.sink = sink.data();
    if (!has_sink) args.mask = length.data();
    REQUIRE(execute(desc, args) == SOFTMAX_SUCCESS);
    const std::vector<float> got = y.get();
    for (int i = 0; i < 24; ++i) {
      const auto at = static_cast<std::size_t>(index(i / 4));
      const double expected = has_sink              ? 1 / (4 + std::exp(double{sinks[at]}))
                              : i % 4 < lengths[at] ? 1.0 / lengths[at]
                                                    : 0.0;
      CHECK(std::fabs(got[static_cast<std::size_t>(i)] - expected) < 1e-7);
    }
  };
  for (const bool has_sink : {true, false}) {
    softmax_desc_t desc = base;
    desc.mask_kind = has_sink ? SOFTMAX_MASK_NONE : SOFTMAX_MASK_ROW_LENGTH;
    int64_t *stride = has_sink ? desc.sink_stride : desc.mask_stride;
    check(desc, has_sink, [](int r) { return r; });
    stride[1] = 1;
    stride[2] = 77;  // the axis' entry is ignored
    check(desc, has_sink, [](int r) { return r % 3; });
    stride[0] = 1;
    stride[1] = 0;
    check(desc, has_sink, [](int r) { return r / 3; });
    stride[0] = stride[2] = 0;
    desc.flags = SOFTMAX_FLAG_ZERO_STRIDES;
    check(desc, has_sink, [](int) { return 0; });
  }
}

TEST_CASE("general: calls that need each other's results follow each other in a stream",
          "[general][streams]") {
  // Statistics, their merging, the last pass, a gradient and a plain call, again and again, with
  // and without waiting between them.
  constexpr std::int64_t kRows = 300, kCols = 700, kCount = kRows * kCols;
  const auto run = [&](bool waits) {
    const Array<float> x(ramp(kCount)), y(kCount, 0.0f), dx(kCount, 0.0f);
    const Array<float> row_max(2 * kRows, 0.0f), row_sum(2 * kRows, 0.0f), max(kRows, 0.0f),
        sum(kRows, 0.0f);
    const auto then = [&](softmax_status_t status) {
      REQUIRE(status == SOFTMAX_SUCCESS);
      if (waits) must(cudaDeviceSynchronize());
    };
    softmax_desc_t half = matrix(kRows, kCols / 2, SOFTMAX_OP_STATS);
    half.x_stride[0] = kCols;
    half.x_stride[1] = 1;
    softmax_desc_t whole = matrix(kRows, kCols);
    whole.scale = 1.5;
    half.scale = 1.5;
    for (int round = 0; round < 20; ++round) {
      for (std::int64_t p = 0; p < 2; ++p) {
        softmax_args_t args = no_args();
        args.x = x.data() + p * kCols / 2;
        args.row_max = row_max.data() + p * kRows;
        args.row_sum = row_sum.data() + p * kRows;
        then(execute(half, args));
      }
      then(softmax_merge_stats(device().handle(), 2, kRows, row_max.data(), row_sum.data(),
                               max.data(), sum.data(), nullptr, device().stream()));
      softmax_args_t args = no_args();
      args.x = x.data();
      args.y = y.data();
      args.row_max = max.data();
      args.row_sum = sum.data();
      softmax_desc_t desc = whole;
      desc.flags = SOFTMAX_FLAG_GIVEN_STATS;
      then(execute(desc, args));
      args = no_args();
      args.y = y.data();
      args.dy = x.data();
      args.dx = dx.data();
      desc = whole;
      desc.direction = SOFTMAX_DIRECTION_BACKWARD;
      then(execute(desc, args));
      // The transposed view of what came out, in place, and plain rows on top of it.
      desc = whole;
      desc.axis = 0;
      desc.scale = 300;
      args = no_args();
      args.x = args.y = dx.data();
      then(execute(desc, args));
      then(logsoftmax_forward_to(device().handle(), SOFTMAX_ALGO_AUTO, dx.data(), SOFTMAX_DTYPE_F32,
                                 x.data(), SOFTMAX_DTYPE_F32, kRows, kCols, device().stream()));
    }
    return x.get();
  };
  const std::vector<float> expected = run(true);
  CHECK(std::isfinite(expected[7]));
  for (int time = 0; time < 5; ++time) CHECK(run(false) == expected);
}

TEST_CASE("general: two threads with a stream each make calls on one handle at once",
          "[general][streams][threads]") {
  constexpr std::int64_t kRows = 500, kCols = 300, kCount = kRows * kCols;
  const Array<float> x(ramp(kCount)), row_scale(ramp(kCount / 300));
  const auto call = [&](int axis, float *y, float *lse, cudaStream_t stream) {
    softmax_desc_t desc = matrix(kRows, kCols, SOFTMAX_OP_LOGSOFTMAX);
    desc.axis = axis;
    desc.softcap = 4;
    softmax_args_t args = no_args();
    args.x = x.data();
    args.y = y;
    args.row_scale = row_scale.data();
    args.lse = lse;
    return softmax_execute(device().handle(), SOFTMAX_ALGO_AUTO, &desc, &args, stream);
  };
  std::vector<std::vector<float>> expected;
  for (const int axis : {0, 1}) {
    const Array<float> y(kCount, 0.0f), lse(kRows, 0.0f);
    REQUIRE(call(axis, y.data(), lse.data(), device().stream()) == SOFTMAX_SUCCESS);
    expected.push_back(y.get());
  }
  int wrong[2] = {0, 0};
  std::vector<std::thread> threads;
  for (const int axis : {0, 1}) {
    threads.emplace_back([&, axis] {
      must(cudaSetDevice(0));
      const Stream stream;
      const Array<float> y(kCount, 0.0f), lse(kRows, 0.0f);
      std::vector<float> got(kCount);
      for (int time = 0; time < 100; ++time) {
        must(cudaMemsetAsync(y.data(), 0xff, kCount * 4, stream));
        if (call(axis, y.data(), lse.data(), stream) != SOFTMAX_SUCCESS) ++wrong[axis];
        must(cudaMemcpyAsync(got.data(), y.data(), kCount * 4, cudaMemcpyDeviceToHost, stream));
        stream.synchronize();
        if (got != expected[static_cast<std::size_t>(axis)]) ++wrong[axis];
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  CHECK(wrong[0] == 0);
  CHECK(wrong[1] == 0);
}

TEST_CASE("general: a graph that is replayed takes what its buffers then hold",
          "[general][graphs]") {
  constexpr std::int64_t kRows = 90, kCols = 700, kCount = kRows * kCols;
  for (const softmax_algo_t algo : GeneralCalls(device()).algos()) {
    for (const int axis : {0, 1}) {
      const Array<float> x(kCount, 0.0f), y(kCount, 0.0f), eager(kCount, 0.0f);
      const Array<float> sink(kCols, 0.5f);
      softmax_desc_t desc = matrix(kRows, kCols, SOFTMAX_OP_SOFTMAX);
      desc.axis = axis;
      desc.scale = 0.5;
      softmax_args_t args = no_args();
      args.x = x.data();
      args.y = y.data();
      args.sink = sink.data();
      Graph graph;
      const softmax_status_t status =
          graph.capture(device().stream(), [&] { return execute(desc, args, algo); });
      if (status == SOFTMAX_STATUS_NOT_SUPPORTED_ALGO && GeneralCalls(device()).may_refuse(algo)) {
        continue;
      }
      INFO(softmax_algo_name(algo) << " axis " << axis);
      REQUIRE(status == SOFTMAX_SUCCESS);
      for (const std::size_t shift : {0, 13}) {
        std::vector<float> values = ramp(kCount + 13);
        values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(shift));
        to_device(x.data(), values.data(), kCount * 4);
        graph.launch(device().stream());
        args.y = eager.data();
        REQUIRE(execute(desc, args, algo) == SOFTMAX_SUCCESS);
        CHECK(y.get() == eager.get());
      }
    }
  }
}

TEST_CASE("general: offsets beyond 2^31 and 2^32 elements", "[general][huge]") {
  constexpr std::int64_t kFar = (std::int64_t{1} << 32) + 64;
  constexpr std::int64_t kCols = 1000;
  const std::size_t bytes = static_cast<std::size_t>(kFar + kCols);
  if (device().free_bytes() < 2 * bytes + (std::size_t{1} << 30)) {
    SOFTMAX_SKIP("needs 10 GB of device memory");
  }
  auto *x = static_cast<unsigned char *>(device().allocate(bytes));
  auto *y = static_cast<unsigned char *>(device().allocate(bytes));
  REQUIRE((x != nullptr && y != nullptr));
  // 8-bit zeros; results of 1 / extent, scaled to 1, which is 0x38.
  device().fill(x, 0, bytes);
  const auto check = [&](const softmax_desc_t &desc, softmax_algo_t algo) {
    device().fill(y, 0xff, bytes);
    softmax_args_t args = no_args();
    args.x = x;
    args.y = y;
    REQUIRE(execute(desc, args, algo) == SOFTMAX_SUCCESS);
    must(cudaStreamSynchronize(device().stream()));
  };
  const auto are = [&](std::int64_t first, std::int64_t count, int byte) {
    std::vector<unsigned char> got(static_cast<std::size_t>(count));
    device().download(got.data(), y + first, got.size());
    return got == std::vector<unsigned char>(got.size(), static_cast<unsigned char>(byte));
  };
  // Two rows that far apart.
  softmax_desc_t desc;
  softmax_desc_init(&desc, sizeof desc, SOFTMAX_OP_SOFTMAX, SOFTMAX_DTYPE_F8_E4M3, 2, kCols);
  desc.y_scale = kCols;
  desc.x_stride[0] = desc.y_stride[0] = kFar;
  desc.x_stride[1] = desc.y_stride[1] = 1;
  check(desc, SOFTMAX_ALGO_AUTO);
  CHECK((are(0, kCols, 0x38) && are(kFar, kCols, 0x38) && are(kCols, 4096, 0xff)));
  CHECK((are(64, kCols - 64, 0x38) && are(kFar - 4096, 4096, 0xff)));

  // As many rows, and as many columns beside each other, as reach that far.
  constexpr std::int64_t kMany = kFar / kCols;
  for (const int axis : {1, 0}) {
    softmax_desc_init(&desc, sizeof desc, SOFTMAX_OP_SOFTMAX, SOFTMAX_DTYPE_F8_E4M3,
                      axis == 1 ? kMany : kCols, axis == 1 ? kCols : kMany);
    desc.axis = axis;
    desc.y_scale = kCols;
    check(desc, axis == 1 ? SOFTMAX_ALGO_AUTO : SOFTMAX_ALGO_COLUMN);
    constexpr std::int64_t kAll = kMany * kCols;
    INFO("axis " << axis);
    for (const std::int64_t first :
         {std::int64_t{0}, (std::int64_t{1} << 31) - 5000, kAll / 3, kAll - 10000}) {
      CHECK(are(first, 10000, 0x38));
    }
    CHECK(are(kAll, kFar + kCols - kAll, 0xff));
  }
  device().release(x);
  device().release(y);
}

}  // namespace softmax_test
