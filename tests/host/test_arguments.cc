// Arguments of the computing calls: each pointer NULL in turn, bad constants, overflow, overlap,
// misalignment, streams; nothing is written by a call that is refused.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "host/api.h"
#include "support/catch.h"
#include "support/element.h"

namespace softmax_test {
namespace {

softmax_stream_t some_stream() { return reinterpret_cast<softmax_stream_t>(std::uintptr_t{1}); }

struct Plain {
  std::vector<double> memory = std::vector<double>(300, 2.5);  // aligned for every type
  const std::vector<double> before = memory;
  float *at(std::ptrdiff_t floats = 0) { return reinterpret_cast<float *>(memory.data()) + floats; }
  bool is_unchanged() const { return memory == before; }
};

softmax_status_t forward_to(softmax_handle_t handle, const void *x, softmax_dtype_t x_dtype,
                            void *y, softmax_dtype_t y_dtype, int64_t rows = 4, int64_t cols = 25,
                            softmax_algo_t algo = SOFTMAX_ALGO_AUTO,
                            softmax_stream_t stream = nullptr) {
  const softmax_status_t softmax =
      softmax_forward_to(handle, algo, x, x_dtype, y, y_dtype, rows, cols, stream);
  const softmax_status_t logsoftmax =
      logsoftmax_forward_to(handle, algo, x, x_dtype, y, y_dtype, rows, cols, stream);
  CHECK(softmax == logsoftmax);
  return softmax;
}

}  // namespace

TEST_CASE("every pointer that is needed is refused when NULL", "[arguments]") {
  const CpuHandle handle;
  Plain plain;
  softmax_desc_t desc = make_desc();
  softmax_args_t args = make_args(plain.at(), plain.at());
  softmax_choice_t choice = {};
  choice.struct_size = sizeof choice;
  softmax_algo_t algo;
  int32_t number;
  const struct {
    const char *what;
    softmax_status_t status, expected;
  } calls[] = {
      {"create", softmax_create(nullptr, SOFTMAX_DEVICE_CPU), SOFTMAX_STATUS_NULL_POINTER},
      {"handle_device: handle", softmax_handle_device(nullptr, &number), SOFTMAX_STATUS_BAD_HANDLE},
      {"handle_device: device", softmax_handle_device(handle, nullptr),
       SOFTMAX_STATUS_NULL_POINTER},
      {"device_count", softmax_device_count(nullptr), SOFTMAX_STATUS_NULL_POINTER},
      {"set_workspace: handle", softmax_set_workspace(nullptr, plain.at(), 8),
       SOFTMAX_STATUS_BAD_HANDLE},
      {"set_workspace: ptr", softmax_set_workspace(handle, nullptr, 8),
       SOFTMAX_STATUS_NULL_POINTER},
      {"forward: handle", softmax_forward(nullptr, 0, plain.at(), 4, 25, nullptr),
       SOFTMAX_STATUS_BAD_HANDLE},
      {"forward: ptr", softmax_forward(handle, 0, nullptr, 4, 25, nullptr),
       SOFTMAX_STATUS_NULL_POINTER},
      {"log forward: handle", logsoftmax_forward(nullptr, 0, plain.at(), 4, 25, nullptr),
       SOFTMAX_STATUS_BAD_HANDLE},
      {"log forward: ptr", logsoftmax_forward(handle, 0, nullptr, 4, 25, nullptr),
       SOFTMAX_STATUS_NULL_POINTER},
      {"desc_init", softmax_desc_init(nullptr, sizeof desc, 0, 1, 1, 1),
       SOFTMAX_STATUS_NULL_POINTER},
      {"desc_check", softmax_desc_check(nullptr), SOFTMAX_STATUS_NULL_POINTER},
      {"execute: handle", softmax_execute(nullptr, 0, &desc, &args, nullptr),
       SOFTMAX_STATUS_BAD_HANDLE},
      {"execute: desc", softmax_execute(handle, 0, nullptr, &args, nullptr),
       SOFTMAX_STATUS_NULL_POINTER},
      {"execute: args", softmax_execute(handle, 0, &desc, nullptr, nullptr),
       SOFTMAX_STATUS_NULL_POINTER},
      {"select: handle", softmax_select(nullptr, 0, &desc, &choice), SOFTMAX_STATUS_BAD_HANDLE},
      {"select: desc", softmax_select(handle, 0, nullptr, &choice), SOFTMAX_STATUS_NULL_POINTER},
      {"select: out", softmax_select(handle, 0, &desc, nullptr), SOFTMAX_STATUS_NULL_POINTER},
      {"algo_from_name: name", softmax_algo_from_name(nullptr, &algo), SOFTMAX_STATUS_NULL_POINTER},
      {"algo_from_name: algo", softmax_algo_from_name("auto", nullptr),
       SOFTMAX_STATUS_NULL_POINTER},
  };
  for (const auto &call : calls) {
    INFO(call.what);
    CHECK(call.status == call.expected);
  }
  for (const bool x_is_null : {true, false}) {
    CHECK(forward_to(handle, x_is_null ? nullptr : plain.at(), SOFTMAX_DTYPE_F32,
                     x_is_null ? plain.at() : nullptr,
                     SOFTMAX_DTYPE_F32) == SOFTMAX_STATUS_NULL_POINTER);
    args = make_args(x_is_null ? nullptr : plain.at(), x_is_null ? plain.at() : nullptr);
    CHECK(softmax_execute(handle, 0, &desc, &args, nullptr) == SOFTMAX_STATUS_NULL_POINTER);
    CHECK(last_error().find(x_is_null ? "x " : "y ") != std::string::npos);
  }
  CHECK(plain.is_unchanged());
}

TEST_CASE("the text functions take NULL and size 0", "[arguments]") {
  const CpuHandle handle;
  CHECK(softmax_handle_description(handle, nullptr, 0) > 0);
  CHECK(softmax_handle_description(nullptr, nullptr, 0) == 0);
  char text[8] = "xxxxxxx";
  CHECK(softmax_handle_description(nullptr, text, sizeof text) == 0);
  CHECK(std::string(text) == "");
  CHECK(softmax_destroy(nullptr) == SOFTMAX_SUCCESS);
  CHECK(softmax_set_workspace(handle, nullptr, 0) == SOFTMAX_SUCCESS);
}

TEST_CASE("constants that do not exist are refused with 1005", "[arguments]") {
  const CpuHandle handle;
  Plain plain;
  for (const softmax_algo_t none : {-1, 7, 8, 9, 16, 999, 1001, INT32_MAX, INT32_MIN}) {
    CHECK(softmax_forward(handle, none, plain.at(), 4, 25, nullptr) == SOFTMAX_STATUS_BAD_ENUM);
    CHECK(last_error().find(std::to_string(none)) != std::string::npos);
  }
  for (const softmax_dtype_t none : {0, -1, 7, INT32_MAX}) {
    CHECK(forward_to(handle, plain.at(), none, plain.at(200), SOFTMAX_DTYPE_F32) ==
          SOFTMAX_STATUS_BAD_ENUM);
    CHECK(forward_to(handle, plain.at(), SOFTMAX_DTYPE_F32, plain.at(200), none) ==
          SOFTMAX_STATUS_BAD_ENUM);
  }
  CHECK(plain.is_unchanged());
}

TEST_CASE("algorithms that the CPU lacks are refused with 2001 and a reason", "[arguments]") {
  const CpuHandle handle;
  Plain plain;
  int refused = 0;
  for (const softmax_algo_t algo : kEveryAlgorithm) {
    if (algo == SOFTMAX_ALGO_AUTO || algo == SOFTMAX_ALGO_NAIVE || algo == SOFTMAX_ALGO_VECTOR ||
        algo == SOFTMAX_ALGO_ONLINE || algo == SOFTMAX_ALGO_REFERENCE) {
      continue;
    }
    ++refused;
    INFO(softmax_algo_name(algo));
    CHECK(softmax_forward(handle, algo, plain.at(), 4, 25, nullptr) ==
          SOFTMAX_STATUS_NOT_SUPPORTED_ALGO);
    CHECK(last_error().find(softmax_algo_name(algo)) != std::string::npos);
    // Also where there is nothing to compute: a name that cannot run is wrong at every size.
    CHECK(softmax_forward(handle, algo, plain.at(), 0, 25, nullptr) ==
          SOFTMAX_STATUS_NOT_SUPPORTED_ALGO);
  }
  CHECK(refused == 9);
  CHECK(plain.is_unchanged());
}

TEST_CASE("pairs of types beyond the headline's are taken by AUTO, VECTOR and REFERENCE alone",
          "[arguments]") {
  const CpuHandle handle;
  int more = 0;
  for (softmax_dtype_t x = 1; x <= 6; ++x) {
    for (softmax_dtype_t y = 1; y <= 6; ++y) {
      bool headline = false;
      for (const TypePair &types : kTypePairs) {
        headline = headline || (types.x == x && types.y == y);
      }
      if (headline) continue;
      ++more;
      for (const softmax_algo_t algo : kEveryAlgorithm) {
        Plain plain;
        const bool taken = algo == SOFTMAX_ALGO_AUTO || algo == SOFTMAX_ALGO_VECTOR ||
                           algo == SOFTMAX_ALGO_REFERENCE;
        CHECK(forward_to(handle, plain.at(), x, plain.at(300), y, 4, 25, algo) ==
              (taken ? SOFTMAX_SUCCESS : SOFTMAX_STATUS_NOT_SUPPORTED_ALGO));
        CHECK((taken || plain.is_unchanged()));
      }
    }
  }
  CHECK(more == 30);
}

TEST_CASE("negative extents and overflow are refused with 1003", "[arguments]") {
  const CpuHandle handle;
  Plain plain;
  const int64_t shapes[][2] = {{-1, 5},
                               {5, -1},
                               {INT64_MIN, 1},
                               {0, -1},
                               {-1, 0},
                               {INT64_MAX, 2},
                               {INT64_MAX, 1},
                               {int64_t{1} << 32, int64_t{1} << 31},
                               {int64_t{3} << 40, int64_t{1} << 21}};
  for (const auto &shape : shapes) {
    INFO(shape[0] << " x " << shape[1]);
    CHECK(softmax_forward(handle, 0, plain.at(), shape[0], shape[1], nullptr) ==
          SOFTMAX_STATUS_BAD_SHAPE);
    CHECK(forward_to(handle, plain.at(), SOFTMAX_DTYPE_F64, plain.at(), SOFTMAX_DTYPE_F64, shape[0],
                     shape[1]) == SOFTMAX_STATUS_BAD_SHAPE);
  }
  CHECK(plain.is_unchanged());
}

TEST_CASE("buffers that overlap without being equal are refused with 1007", "[arguments]") {
  const CpuHandle handle;
  Plain plain;
  const softmax_dtype_t f32 = SOFTMAX_DTYPE_F32;
  for (const std::ptrdiff_t distance : {1, 3, 50, 99}) {
    CHECK(forward_to(handle, plain.at(200), f32, plain.at(200 + distance), f32) ==
          SOFTMAX_STATUS_OVERLAP);
    CHECK(forward_to(handle, plain.at(200), f32, plain.at(200 - distance), f32) ==
          SOFTMAX_STATUS_OVERLAP);
  }
  // The same address with another type is no in place.
  CHECK(forward_to(handle, plain.at(), SOFTMAX_DTYPE_F16, plain.at(), f32) ==
        SOFTMAX_STATUS_OVERLAP);
  CHECK(forward_to(handle, plain.at(), SOFTMAX_DTYPE_BF16, plain.at(49), f32) ==
        SOFTMAX_STATUS_OVERLAP);
  CHECK(plain.is_unchanged());
  // Side by side is none.
  CHECK(forward_to(handle, plain.at(200), f32, plain.at(300), f32) == SOFTMAX_SUCCESS);
  CHECK(forward_to(handle, plain.at(200), f32, plain.at(100), f32) == SOFTMAX_SUCCESS);
  CHECK(forward_to(handle, plain.at(0), SOFTMAX_DTYPE_F16, plain.at(50), f32) == SOFTMAX_SUCCESS);
}

TEST_CASE("pointers that are not aligned to their element are refused", "[arguments]") {
  const CpuHandle handle;
  Plain plain;
  auto *bytes = reinterpret_cast<unsigned char *>(plain.at());
  for (const TypePair &types : kTypePairs) {
    for (const int shift : {1, 2, 4}) {
      const bool x_is_off = shift % format_of(types.x).size_bytes != 0;
      const bool y_is_off = shift % format_of(types.y).size_bytes != 0;
      if (x_is_off) {
        CHECK(forward_to(handle, bytes + shift, types.x, bytes + 1200, types.y) ==
              SOFTMAX_STATUS_INVALID_ARGUMENT);
      }
      if (y_is_off) {
        CHECK(forward_to(handle, bytes, types.x, bytes + 1200 + shift, types.y) ==
              SOFTMAX_STATUS_INVALID_ARGUMENT);
      }
    }
  }
  CHECK(plain.is_unchanged());
}

TEST_CASE("a stream on a CPU handle is refused with 1009", "[arguments]") {
  const CpuHandle handle;
  Plain plain;
  CHECK(softmax_forward(handle, 0, plain.at(), 4, 25, some_stream()) ==
        SOFTMAX_STATUS_WRONG_DEVICE);
  CHECK(softmax_forward(handle, 0, plain.at(), 0, 25, some_stream()) ==
        SOFTMAX_STATUS_WRONG_DEVICE);
  CHECK(plain.is_unchanged());
}

TEST_CASE("buffers that a call has no use for are refused by name", "[arguments]") {
  const CpuHandle handle;
  Plain plain;
  const softmax_desc_t desc = make_desc();
  float other[4] = {};
  const struct {
    const char *name;
    softmax_status_t status;
    std::function<void(softmax_args_t *)> change;
  } cases[] = {
      {"mask", SOFTMAX_STATUS_INVALID_ARGUMENT, [&](softmax_args_t *a) { a->mask = other; }},
      {"dy", SOFTMAX_STATUS_INVALID_ARGUMENT, [&](softmax_args_t *a) { a->dy = other; }},
      {"dx", SOFTMAX_STATUS_INVALID_ARGUMENT, [&](softmax_args_t *a) { a->dx = other; }},
      {"reserved", SOFTMAX_STATUS_NEWER_FIELD, [&](softmax_args_t *a) { a->reserved = 1; }},
      {"workspace", SOFTMAX_STATUS_NULL_POINTER,
       [&](softmax_args_t *a) { a->workspace_bytes = 16; }},
  };
  for (const auto &c : cases) {
    softmax_args_t args = make_args(plain.at(), plain.at());
    c.change(&args);
    INFO(c.name);
    CHECK(softmax_execute(handle, 0, &desc, &args, nullptr) == c.status);
    CHECK(last_error().find(c.name) != std::string::npos);
  }
  CHECK(plain.is_unchanged());
}

TEST_CASE("softmax_select names what softmax_execute logs", "[arguments]") {
  const CpuHandle handle;
  std::vector<std::string> lines;
  REQUIRE(softmax_set_log(
              [](int32_t, const char *message, void *user) {
                static_cast<std::vector<std::string> *>(user)->push_back(message);
              },
              &lines, SOFTMAX_LOG_INFO) == SOFTMAX_SUCCESS);
  for (const softmax_algo_t algo : {SOFTMAX_ALGO_AUTO, SOFTMAX_ALGO_NAIVE, SOFTMAX_ALGO_VECTOR,
                                    SOFTMAX_ALGO_ONLINE, SOFTMAX_ALGO_REFERENCE}) {
    for (const int64_t cols : {1, 100, 200000}) {
      std::vector<float> values(static_cast<std::size_t>(cols), 1.0f);
      const softmax_desc_t desc = make_desc(1, cols, SOFTMAX_OP_LOGSOFTMAX);
      softmax_choice_t choice = {};
      choice.struct_size = sizeof choice;
      REQUIRE(softmax_select(handle, algo, &desc, &choice) == SOFTMAX_SUCCESS);
      lines.clear();
      REQUIRE(logsoftmax_forward(handle, algo, values.data(), 1, cols, nullptr) == SOFTMAX_SUCCESS);
      REQUIRE(lines.size() == 1);
      CHECK(lines[0].find(choice.kernel) != std::string::npos);
      CHECK(lines[0].find(choice.reason) != std::string::npos);
      CHECK(std::string(choice.kernel).find(softmax_algo_name(choice.algo)) != std::string::npos);
      CHECK((algo == SOFTMAX_ALGO_AUTO || choice.algo == algo));
      CHECK(choice.threads >= 1);
    }
  }
  REQUIRE(softmax_set_log(nullptr, nullptr, SOFTMAX_LOG_OFF) == SOFTMAX_SUCCESS);
}

}  // namespace softmax_test
