// The general call's buffers: which may meet, which are refused, what a broadcast or a sink for all
// rows says, and that nothing past a row's length is ever read.
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <functional>
#include <vector>

#include "host/api.h"
#include "support/catch.h"

namespace softmax_test {
namespace {

softmax_status_t execute(softmax_handle_t handle, const softmax_desc_t &desc,
                         const softmax_args_t &args) {
  return softmax_execute(handle, SOFTMAX_ALGO_AUTO, &desc, &args, nullptr);
}

void set(int64_t *stride, int64_t row, int64_t col) { stride[0] = row, stride[1] = col; }

}  // namespace

TEST_CASE("halves of one matrix' columns may be x and y, and what shares a column may not",
          "[general][overlap]") {
  const CpuHandle handle;
  std::vector<float> memory(8 * 20 + 20, 1.0f);
  softmax_desc_t desc = make_desc(8, 10);
  set(desc.x_stride, 20, 1);
  set(desc.y_stride, 20, 1);
  const auto call = [&](std::ptrdiff_t x, std::ptrdiff_t y) {
    const softmax_args_t args = make_args(memory.data() + x, memory.data() + y);
    return execute(handle, desc, args);
  };
  CHECK(call(0, 10) == SOFTMAX_SUCCESS);
  CHECK(call(10, 0) == SOFTMAX_SUCCESS);
  CHECK(call(5, 5) == SOFTMAX_SUCCESS);
  CHECK(call(0, 9) == SOFTMAX_STATUS_OVERLAP);
  CHECK(call(0, 11) == SOFTMAX_STATUS_OVERLAP);
  set(desc.x_stride, 10, 1);
  CHECK(call(0, 0) == SOFTMAX_STATUS_OVERLAP);  // in place needs the same strides
  set(desc.x_stride, 20, 2);
  set(desc.y_stride, 20, 2);
  CHECK(call(0, 1) == SOFTMAX_SUCCESS);  // even and odd elements
}

TEST_CASE("every output is kept apart from every other buffer", "[general][overlap]") {
  const CpuHandle handle;
  std::vector<float> x(40, 1.0f), y(40), mask(40), rows(4), sink(4), memory(40);
  const auto try_with = [&](int32_t direction,
                            const std::function<void(softmax_args_t *)> &change) {
    softmax_desc_t desc = make_desc(4, 10);
    desc.mask_kind = SOFTMAX_MASK_ADDITIVE;
    desc.direction = direction;
    softmax_args_t args = make_args(x.data(), y.data());
    args.mask = mask.data();
    args.row_scale = rows.data();
    args.sink = sink.data();
    change(&args);
    return execute(handle, desc, args);
  };
  const int32_t forward = SOFTMAX_DIRECTION_FORWARD;
  using A = softmax_args_t;
  CHECK(try_with(forward, [&](A *) {}) == SOFTMAX_SUCCESS);
  CHECK(try_with(forward, [&](A *a) { a->y = mask.data(); }) == SOFTMAX_STATUS_OVERLAP);
  CHECK(try_with(forward, [&](A *a) { a->mask = a->y; }) == SOFTMAX_STATUS_OVERLAP);
  CHECK(try_with(forward, [&](A *a) { a->lse = x.data() + 3; }) == SOFTMAX_STATUS_OVERLAP);
  CHECK(try_with(forward, [&](A *a) { a->lse = y.data() + 36; }) == SOFTMAX_STATUS_OVERLAP);
  CHECK(try_with(forward, [&](A *a) { a->row_max = rows.data(); }) == SOFTMAX_STATUS_OVERLAP);
  CHECK(try_with(forward, [&](A *a) { a->row_sum = sink.data(); }) == SOFTMAX_STATUS_OVERLAP);
  CHECK(try_with(forward, [&](A *a) { a->row_max = a->row_sum = memory.data(); }) ==
        SOFTMAX_STATUS_OVERLAP);
  CHECK(try_with(forward, [&](A *a) {
          a->row_max = memory.data();
          a->row_sum = memory.data() + 4;
          a->lse = memory.data() + 8;
        }) == SOFTMAX_SUCCESS);
  CHECK(last_error().find("overlap") != std::string::npos);
}

TEST_CASE("buffers that a general call needs are refused when NULL or misaligned", "[general]") {
  const CpuHandle handle;
  std::vector<float> x(40, 1.0f), y(40), rows(8);
  std::vector<unsigned char> bytes(64);
  softmax_desc_t desc = make_desc(4, 10);
  softmax_args_t args = make_args(x.data(), y.data());
  for (const int32_t kind :
       {SOFTMAX_MASK_BOOL_KEEP, SOFTMAX_MASK_ADDITIVE, SOFTMAX_MASK_ROW_LENGTH}) {
    desc.mask_kind = kind;
    CHECK(execute(handle, desc, args) == SOFTMAX_STATUS_NULL_POINTER);
    CHECK(last_error().find("mask") != std::string::npos);
    args.mask = reinterpret_cast<float *>(bytes.data() + 1);
    CHECK(execute(handle, desc, args) ==
          (kind == SOFTMAX_MASK_BOOL_KEEP ? SOFTMAX_SUCCESS : SOFTMAX_STATUS_INVALID_ARGUMENT));
    args.mask = nullptr;
  }
  desc.mask_kind = SOFTMAX_MASK_CAUSAL;
  args.mask = rows.data();
  CHECK(execute(handle, desc, args) == SOFTMAX_STATUS_INVALID_ARGUMENT);
  args.mask = nullptr;
  desc.mask_kind = SOFTMAX_MASK_NONE;

  desc.op = SOFTMAX_OP_STATS;
  CHECK(execute(handle, desc, args) == SOFTMAX_STATUS_NULL_POINTER);
  args.y = nullptr;
  args.lse = rows.data();
  CHECK(execute(handle, desc, args) == SOFTMAX_SUCCESS);
  args.x = nullptr;
  CHECK(execute(handle, desc, args) == SOFTMAX_STATUS_NULL_POINTER);

  desc.op = SOFTMAX_OP_SOFTMAX;
  desc.flags = SOFTMAX_FLAG_GIVEN_STATS;
  args = make_args(x.data(), y.data());
  CHECK(execute(handle, desc, args) == SOFTMAX_STATUS_NULL_POINTER);
  args.row_max = rows.data();
  CHECK(execute(handle, desc, args) == SOFTMAX_STATUS_NULL_POINTER);
  args.row_sum = reinterpret_cast<float *>(reinterpret_cast<char *>(rows.data()) + 2);
  CHECK(execute(handle, desc, args) == SOFTMAX_STATUS_INVALID_ARGUMENT);
}

TEST_CASE("no rows or no columns: success, and nothing is read", "[general]") {
  const CpuHandle handle;
  for (const int shape : {0, 1}) {
    softmax_desc_t desc = make_desc(shape == 0 ? 0 : 5, shape == 0 ? 5 : 0);
    desc.mask_kind = SOFTMAX_MASK_ROW_LENGTH;
    desc.scale = 2;
    desc.axis = 0;
    const softmax_args_t args = make_args(nullptr, nullptr);
    CHECK(execute(handle, desc, args) == SOFTMAX_SUCCESS);
  }
}

TEST_CASE("an input of stride 0 is one row for all", "[general]") {
  const CpuHandle handle;
  const float x[3] = {0.0f, 1.0f, 2.0f};
  std::vector<float> y(12), one(3);
  softmax_desc_t desc = make_desc(4, 3);
  set(desc.x_stride, 0, 1);
  REQUIRE(execute(handle, desc, make_args(x, y.data())) == SOFTMAX_SUCCESS);
  REQUIRE(execute(handle, make_desc(1, 3), make_args(x, one.data())) == SOFTMAX_SUCCESS);
  for (int i = 0; i < 12; ++i) CHECK(y[i] == one[i % 3]);
}

TEST_CASE("a sink is one a row, one a head, or one for all, as its strides say", "[general]") {
  const CpuHandle handle;
  const std::vector<float> x(2 * 3 * 4, 0.0f);  // (batch, head, column)
  softmax_desc_t desc = make_desc();
  desc.ndim = 3;
  desc.shape[0] = 2, desc.shape[1] = 3, desc.shape[2] = 4;
  const std::vector<float> sinks = {-1.0f, 0.0f, 1.0f, 2.0f, 3.0f, 4.0f};
  const auto top_of = [&](int row, const std::vector<float> &y) { return y[4 * row]; };
  const auto is_right = [](float y, float sink) {
    return std::fabs(double{y} - 1 / (4 + std::exp(double{sink}))) < 1e-7;
  };
  std::vector<float> y(24);
  softmax_args_t args = make_args(x.data(), y.data());
  args.sink = sinks.data();
  REQUIRE(execute(handle, desc, args) == SOFTMAX_SUCCESS);
  for (int r = 0; r < 6; ++r) CHECK(is_right(top_of(r, y), sinks[r]));
  desc.sink_stride[1] = 1;
  REQUIRE(execute(handle, desc, args) == SOFTMAX_SUCCESS);
  for (int r = 0; r < 6; ++r) CHECK(is_right(top_of(r, y), sinks[r % 3]));
  desc.sink_stride[1] = 0;
  desc.flags = SOFTMAX_FLAG_ZERO_STRIDES;
  REQUIRE(execute(handle, desc, args) == SOFTMAX_SUCCESS);
  for (int r = 0; r < 6; ++r) CHECK(is_right(top_of(r, y), sinks[0]));
  desc.sink_stride[0] = -1;
  CHECK(execute(handle, desc, args) == SOFTMAX_STATUS_BAD_STRIDE);
}

TEST_CASE("one length can serve all rows, or those of one index", "[general]") {
  const CpuHandle handle;
  const std::vector<float> x(2 * 3 * 4, 0.0f);
  softmax_desc_t desc = make_desc();
  desc.ndim = 3;
  desc.shape[0] = 2, desc.shape[1] = 3, desc.shape[2] = 4;
  desc.mask_kind = SOFTMAX_MASK_ROW_LENGTH;
  const int32_t lengths[6] = {1, 2, 3, 4, 1, 2};
  std::vector<float> y(24);
  softmax_args_t args = make_args(x.data(), y.data());
  args.mask = lengths;
  const auto check = [&](const std::function<int(int)> &length_of) {
    REQUIRE(execute(handle, desc, args) == SOFTMAX_SUCCESS);
    for (int r = 0; r < 6; ++r) {
      for (int j = 0; j < 4; ++j) {
        const int length = length_of(r);
        CHECK(y[4 * r + j] == (j < length ? 1.0f / static_cast<float>(length) : 0.0f));
      }
    }
  };
  check([&](int r) { return lengths[r]; });
  desc.mask_stride[0] = 1;  // one a batch entry; the axis' entry is ignored
  desc.mask_stride[2] = 77;
  check([&](int r) { return lengths[r / 3]; });
  desc.mask_stride[0] = desc.mask_stride[2] = 0;
  desc.flags = SOFTMAX_FLAG_ZERO_STRIDES;
  check([&](int) { return lengths[0]; });
}

TEST_CASE("columns at and past a row's length are never read", "[general][guard]") {
  const CpuHandle handle;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::int64_t floats = static_cast<std::int64_t>(page / sizeof(float));
  // Every row begins on a page of its own, and the page after it may not be touched.
  constexpr std::int64_t kRows = 3;
  auto *memory = static_cast<char *>(
      mmap(nullptr, kRows * 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(memory != MAP_FAILED);
  for (std::int64_t r = 0; r < kRows; ++r) {
    REQUIRE(mprotect(memory + (2 * r + 1) * page, page, PROT_NONE) == 0);
  }
  for (const std::int64_t length : {floats, floats - 3, floats / 2, std::int64_t{5}}) {
    for (const int kind : {SOFTMAX_MASK_ROW_LENGTH, SOFTMAX_MASK_CAUSAL}) {
      for (const int op : {0, 1, 2}) {
        for (const double scale : {1.0, 0.5}) {
          for (const bool strided : {false, true}) {
            const std::int64_t step = strided ? 2 : 1;
            const std::int64_t kept = (length + step - 1) / step;
            const std::int64_t cols = 2 * floats / step;
            std::vector<float> y(static_cast<std::size_t>(kRows * cols)), lse(kRows);
            const std::vector<int32_t> lengths(kRows, static_cast<int32_t>(kept));
            softmax_desc_t desc = make_desc(kRows, cols, op);
            set(desc.x_stride, 2 * floats, step);
            desc.mask_kind = kind;
            desc.scale = scale;
            desc.causal_offset = kept - kRows;
            // The last element of the first page is the last that may be read.
            auto *x = reinterpret_cast<float *>(memory) + floats - ((kept - 1) * step + 1);
            softmax_args_t args = make_args(x, op == 2 ? nullptr : y.data());
            if (kind == SOFTMAX_MASK_ROW_LENGTH) args.mask = lengths.data();
            args.lse = lse.data();
            REQUIRE(execute(handle, desc, args) == SOFTMAX_SUCCESS);
            if (op == 0) CHECK(y[static_cast<std::size_t>(kRows * cols - 1)] == 0.0f);
          }
        }
      }
    }
  }
  munmap(memory, kRows * 2 * page);
}

TEST_CASE("NAIVE and ONLINE say what they do not take", "[general]") {
  const CpuHandle handle;
  std::vector<float> x(40, 1.0f), y(40);
  softmax_desc_t desc = make_desc(4, 10);
  const softmax_args_t args = make_args(x.data(), y.data());
  desc.scale = 2;
  for (const softmax_algo_t algo : {SOFTMAX_ALGO_NAIVE, SOFTMAX_ALGO_ONLINE}) {
    CHECK(softmax_execute(handle, algo, &desc, &args, nullptr) ==
          SOFTMAX_STATUS_NOT_SUPPORTED_ALGO);
    CHECK(last_error().find("headline types, and nothing else") != std::string::npos);
  }
  softmax_choice_t choice = {};
  choice.struct_size = sizeof choice;
  REQUIRE(softmax_select(handle, SOFTMAX_ALGO_AUTO, &desc, &choice) == SOFTMAX_SUCCESS);
  CHECK(choice.algo == SOFTMAX_ALGO_VECTOR);
}

}  // namespace softmax_test
