// The general call at its edges: rows of temperature 0 that are shared, elements far above the
// given maximum, and extents and strides near 63 bits.
#include <cmath>
#include <limits>
#include <vector>

#include "core/layout.h"
#include "host/api.h"
#include "support/catch.h"

namespace softmax_test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr softmax_algo_t kAlgos[] = {SOFTMAX_ALGO_VECTOR, SOFTMAX_ALGO_REFERENCE};

// One row of three.
struct Row {
  float x[3] = {1, 3, 2};
  float y[3] = {7, 7, 7};
  float dy[3] = {1, 2, 4};
  float dx[3] = {7, 7, 7};
  float row_scale = 0;
  float row_max = 3, row_sum = 1, lse = 7;

  softmax_status_t run(softmax_handle_t handle, softmax_algo_t algo, int32_t op,
                       int32_t direction = SOFTMAX_DIRECTION_FORWARD) {
    softmax_desc_t desc = make_desc(1, 3, op);
    desc.flags = SOFTMAX_FLAG_GIVEN_STATS;
    desc.direction = direction;
    const bool backward = direction == SOFTMAX_DIRECTION_BACKWARD;
    softmax_args_t args = make_args(x, backward ? nullptr : y);
    args.row_scale = &row_scale;
    args.row_max = &row_max;
    args.row_sum = &row_sum;
    if (backward) {
      args.dy = dy;
      args.dx = dx;
    } else {
      args.lse = &lse;
    }
    return softmax_execute(handle, algo, &desc, &args, nullptr);
  }
};

}  // namespace

TEST_CASE("of a shared row at temperature 0 only the part that has the given maximum is 1",
          "[general]") {
  const CpuHandle handle;
  for (const softmax_algo_t algo : kAlgos) {
    INFO("algo " << algo);
    Row row;
    REQUIRE(row.run(handle, algo, SOFTMAX_OP_SOFTMAX) == SOFTMAX_SUCCESS);
    CHECK((row.y[0] == 0 && row.y[1] == 1 && row.y[2] == 0 && row.lse == 3));
    row.row_max = 5;  // in another part of the row, or the sink
    REQUIRE(row.run(handle, algo, SOFTMAX_OP_SOFTMAX) == SOFTMAX_SUCCESS);
    CHECK((row.y[0] == 0 && row.y[1] == 0 && row.y[2] == 0 && row.lse == 5));
    REQUIRE(row.run(handle, algo, SOFTMAX_OP_LOGSOFTMAX) == SOFTMAX_SUCCESS);
    CHECK((row.y[0] == -kInf && row.y[1] == -kInf && row.y[2] == -kInf));
    for (float &x : row.x) x = -kInf;  // nothing in this part, which is no empty row
    REQUIRE(row.run(handle, algo, SOFTMAX_OP_SOFTMAX) == SOFTMAX_SUCCESS);
    CHECK((row.y[0] == 0 && row.y[1] == 0 && row.y[2] == 0 && row.lse == 5));
    row.row_max = std::nanf("");
    REQUIRE(row.run(handle, algo, SOFTMAX_OP_SOFTMAX) == SOFTMAX_SUCCESS);
    CHECK((std::isnan(row.y[0]) && std::isnan(row.y[2]) && std::isnan(row.lse)));
  }
}

TEST_CASE("the gradient of a shared row at temperature 0 takes the given maximum too",
          "[general][backward]") {
  const CpuHandle handle;
  for (const softmax_algo_t algo : kAlgos) {
    INFO("algo " << algo);
    Row row;
    row.row_max = 5;
    for (float &x : row.x) x = -kInf;
    REQUIRE(row.run(handle, algo, SOFTMAX_OP_SOFTMAX, SOFTMAX_DIRECTION_BACKWARD) ==
            SOFTMAX_SUCCESS);
    CHECK((row.dx[0] == 0 && row.dx[1] == 0 && row.dx[2] == 0));
    row.row_max = std::nanf("");
    row.x[0] = 1;
    REQUIRE(row.run(handle, algo, SOFTMAX_OP_SOFTMAX, SOFTMAX_DIRECTION_BACKWARD) ==
            SOFTMAX_SUCCESS);
    CHECK((std::isnan(row.dx[0]) && std::isnan(row.dx[2])));
  }
}

TEST_CASE("an element far above the given maximum leaves the others what they are", "[general]") {
  const CpuHandle handle;
  for (const softmax_algo_t algo : kAlgos) {
    INFO("algo " << algo);
    Row row;
    row.row_scale = 1;
    row.row_max = -1000;
    row.row_sum = 4;
    row.x[0] = 0, row.x[1] = -1000, row.x[2] = -1001;
    REQUIRE(row.run(handle, algo, SOFTMAX_OP_SOFTMAX) == SOFTMAX_SUCCESS);
    CHECK((row.y[0] == kInf && row.y[1] == 0.25f));
    CHECK(std::fabs(row.y[2] - std::exp(-1.0) / 4) < 1e-7);
  }
}

TEST_CASE("a stride that is ignored may be negative", "[descriptor]") {
  const CpuHandle handle;
  std::vector<float> x(4), y(4), sink(4);
  softmax_desc_t desc = make_desc(1, 4);
  desc.x_stride[0] = desc.y_stride[0] = -4;
  desc.x_stride[1] = desc.y_stride[1] = 1;
  softmax_args_t args = make_args(x.data(), y.data());
  CHECK(softmax_execute(handle, SOFTMAX_ALGO_AUTO, &desc, &args, nullptr) == SOFTMAX_SUCCESS);
  CHECK(y[3] == 0.25f);
  desc.sink_stride[0] = 1;
  desc.sink_stride[1] = -1;  // the axis' entry
  args.sink = sink.data();
  CHECK(softmax_execute(handle, SOFTMAX_ALGO_AUTO, &desc, &args, nullptr) == SOFTMAX_SUCCESS);
  CHECK(y[3] == 0.2f);
}

TEST_CASE("a row of any extent may end early", "[general]") {
  const CpuHandle handle;
  const unsigned char x = 0;  // every element
  for (const int bits : {18, 20, 59, 60, 61}) {
    INFO("2^" << bits);
    softmax_desc_t desc =
        make_desc(1, std::int64_t{1} << bits, SOFTMAX_OP_STATS, SOFTMAX_DTYPE_F8_E4M3);
    desc.x_stride[0] = 1;  // ignored, so that the axis' 0 broadcasts
    desc.mask_kind = SOFTMAX_MASK_ROW_LENGTH;
    const int32_t length = 5;
    float sum = 0;
    softmax_args_t args = make_args(&x, nullptr);
    args.mask = &length;
    args.row_sum = &sum;
    REQUIRE(softmax_execute(handle, SOFTMAX_ALGO_AUTO, &desc, &args, nullptr) == SOFTMAX_SUCCESS);
    CHECK(sum == 5.0f);
  }
}

TEST_CASE("statistics of more rows than memory has floats are refused", "[general]") {
  const CpuHandle handle;
  const unsigned char x = 0;
  float lse = 7;
  for (const std::int64_t rows : {std::int64_t{1} << 61, (std::int64_t{1} << 62) + 5}) {
    softmax_desc_t desc = make_desc(rows, 1, SOFTMAX_OP_STATS, SOFTMAX_DTYPE_F8_E4M3);
    desc.x_stride[1] = 1;  // ignored, so that the rows' 0 broadcasts
    softmax_args_t args = make_args(&x, nullptr);
    args.lse = &lse;
    CHECK(softmax_execute(handle, SOFTMAX_ALGO_AUTO, &desc, &args, nullptr) ==
          SOFTMAX_STATUS_BAD_SHAPE);
    CHECK(lse == 7);
  }
}

TEST_CASE("strides near 63 bits are compared without overflow", "[layout]") {
  constexpr std::int64_t kFar = INT64_MAX - 64;
  softmax_desc_t desc = make_desc(3, 2, SOFTMAX_OP_SOFTMAX, SOFTMAX_DTYPE_F8_E4M3);
  desc.ndim = 3;
  desc.axis = 0;
  desc.shape[2] = 2;
  desc.x_stride[1] = 1;
  desc.x_stride[2] = INT64_MAX / 2 + 9;
  CHECK(softmax_desc_check(&desc) == SOFTMAX_SUCCESS);

  softmax::Footprint a, b;
  a.first = 64;
  b.first = 64 + 63 + 40;
  a.size = b.size = 1;
  a.steps.add(2, kFar);
  b.steps.add(2, kFar);
  CHECK(softmax::provably_apart(a, b));
  CHECK(softmax::provably_apart(b, a));
  b.first = a.first;
  CHECK_FALSE(softmax::provably_apart(a, b));
}

TEST_CASE("a merged sum below float64's normal numbers has its logarithm", "[merge]") {
  const CpuHandle handle;
  const float part_max[] = {0, -700};
  const float part_sum[] = {0, 1e-10f};
  float lse = 7;
  REQUIRE(softmax_merge_stats(handle, 2, 1, part_max, part_sum, nullptr, nullptr, &lse, nullptr) ==
          SOFTMAX_SUCCESS);
  CHECK(std::fabs(lse - (-700 + std::log(1e-10))) < 1e-3);
}

}  // namespace softmax_test
