// Handles: their life, misuse that can be seen, sharing between threads, and machines without GPU.
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "host/api.h"
#include "support/catch.h"
#include "support/child.h"
#include "support/compare.h"
#include "support/inputs.h"
#include "support/reference.h"

namespace softmax_test {

TEST_CASE("a CPU handle knows its device and describes it in one line", "[handles]") {
  const CpuHandle handle;
  int32_t device = 99;
  CHECK(softmax_handle_device(handle, &device) == SOFTMAX_SUCCESS);
  CHECK(device == SOFTMAX_DEVICE_CPU);
  char text[200];
  const std::size_t length = softmax_handle_description(handle, text, sizeof text);
  CHECK(length == std::strlen(text));
  CHECK(std::string(text).find("CPU") != std::string::npos);
  CHECK(std::string(text).find('\n') == std::string::npos);
  char cut[4];
  CHECK(softmax_handle_description(handle, cut, sizeof cut) == length);
  CHECK(std::string(cut) == std::string(text).substr(0, 3));
}

TEST_CASE("a handle that was destroyed is refused by every call", "[handles]") {
  softmax_handle_t handle = nullptr;
  REQUIRE(softmax_create(&handle, SOFTMAX_DEVICE_CPU) == SOFTMAX_SUCCESS);
  CHECK(softmax_destroy(handle) == SOFTMAX_SUCCESS);
  float values[10] = {};
  const softmax_desc_t desc = make_desc(1, 10);
  const softmax_args_t args = make_args(values, values);
  softmax_choice_t choice = {};
  choice.struct_size = sizeof choice;
  int32_t device;
  CHECK(softmax_destroy(handle) == SOFTMAX_STATUS_BAD_HANDLE);
  CHECK(softmax_forward(handle, 0, values, 1, 10, nullptr) == SOFTMAX_STATUS_BAD_HANDLE);
  CHECK(softmax_execute(handle, 0, &desc, &args, nullptr) == SOFTMAX_STATUS_BAD_HANDLE);
  CHECK(softmax_select(handle, 0, &desc, &choice) == SOFTMAX_STATUS_BAD_HANDLE);
  CHECK(softmax_handle_device(handle, &device) == SOFTMAX_STATUS_BAD_HANDLE);
  CHECK(softmax_set_workspace(handle, nullptr, 0) == SOFTMAX_STATUS_BAD_HANDLE);
  CHECK(softmax_handle_description(handle, nullptr, 0) == 0);
  CHECK(values[0] == 0);
}

TEST_CASE("memory that is no handle is refused", "[handles]") {
  std::vector<std::uint64_t> memory(200, 0x5a5a5a5a5a5a5a5a);
  const auto handle = reinterpret_cast<softmax_handle_t>(memory.data());
  float values[10] = {};
  CHECK(softmax_forward(handle, 0, values, 1, 10, nullptr) == SOFTMAX_STATUS_BAD_HANDLE);
  CHECK(softmax_destroy(handle) == SOFTMAX_STATUS_BAD_HANDLE);
}

TEST_CASE("handles can be created and destroyed from many threads", "[handles][threads]") {
  constexpr int kThreads = 8;
  std::vector<int> failures(kThreads, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t, &failures] {
      for (int i = 0; i < 300; ++i) {
        softmax_handle_t handle = nullptr;
        float values[4] = {1, 1, 1, 1};
        failures[t] += softmax_create(&handle, SOFTMAX_DEVICE_CPU) != SOFTMAX_SUCCESS;
        failures[t] += softmax_forward(handle, 0, values, 1, 4, nullptr) != SOFTMAX_SUCCESS;
        failures[t] += values[0] != 0.25f;
        failures[t] += softmax_destroy(handle) != SOFTMAX_SUCCESS;
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  for (const int count : failures) CHECK(count == 0);
}

TEST_CASE("eight threads share one handle", "[handles][threads]") {
  const CpuHandle handle;
  constexpr int kThreads = 8;
  constexpr std::int64_t kRows = 9;
  std::vector<std::string> failures(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const softmax_algo_t algorithms[] = {SOFTMAX_ALGO_AUTO, SOFTMAX_ALGO_NAIVE,
                                           SOFTMAX_ALGO_VECTOR, SOFTMAX_ALGO_ONLINE,
                                           SOFTMAX_ALGO_REFERENCE};
      for (int c = 0; c < 50 && failures[t].empty(); ++c) {
        const std::int64_t cols = 1 + (c * 131 + t * 17) % 1500;
        const bool is_log = c % 2 == 0;
        Elements x = make_input(SOFTMAX_DTYPE_F32, kRows, cols, Pattern::kNormal3,
                                static_cast<std::uint64_t>(100 * t + c));
        const Reference reference = make_reference(x, kRows, cols);
        auto *values = reinterpret_cast<float *>(x.bytes.data());
        const softmax_algo_t algo = algorithms[(c + t) % 5];
        const softmax_status_t status =
            is_log ? logsoftmax_forward(handle, algo, values, kRows, cols, nullptr)
                   : softmax_forward(handle, algo, values, kRows, cols, nullptr);
        if (status != SOFTMAX_SUCCESS) failures[t] = last_error();
        const Comparison result =
            compare(x, reference, is_log, cols, promised_bound(SOFTMAX_DTYPE_F32));
        if (!result.failure.empty()) failures[t] = result.failure;
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  for (const std::string &failure : failures) CHECK(failure == "");
}

TEST_CASE("devices that do not exist are refused with 1009", "[handles]") {
  for (const int32_t none : {-3, -100, INT32_MIN}) {
    softmax_handle_t handle = reinterpret_cast<softmax_handle_t>(std::uintptr_t{8});
    CHECK(softmax_create(&handle, none) == SOFTMAX_STATUS_WRONG_DEVICE);
    CHECK(handle == nullptr);
    CHECK(last_error().find(std::to_string(none)) != std::string::npos);
  }
}

TEST_CASE("where no GPU can be used CUDA is refused and AUTO takes the CPU", "[handles]") {
  int32_t count = -1;
  REQUIRE(softmax_device_count(&count) == SOFTMAX_SUCCESS);
  if (count > 0) SOFTMAX_SKIP("this machine has a GPU");
  CHECK(count == 0);
  for (const int32_t ordinal : {0, 1, INT32_MAX}) {
    softmax_handle_t handle = reinterpret_cast<softmax_handle_t>(std::uintptr_t{8});
    const softmax_status_t status = softmax_create(&handle, ordinal);
    INFO(last_error());
    if (SOFTMAX_TEST_WITH_CUDA) {
      // No driver, one that is too old, or a driver that shows no GPU.
      CHECK(
          (status == SOFTMAX_STATUS_NOT_SUPPORTED_DRIVER || status == SOFTMAX_STATUS_WRONG_DEVICE));
      CHECK(last_error().find("driver") != std::string::npos);
    } else {
      CHECK(status == SOFTMAX_STATUS_NOT_SUPPORTED);
      CHECK(last_error().find("without CUDA") != std::string::npos);
    }
    CHECK(handle == nullptr);
  }
  softmax_handle_t automatic = nullptr;
  REQUIRE(softmax_create(&automatic, SOFTMAX_DEVICE_AUTO) == SOFTMAX_SUCCESS);
  int32_t device = 0;
  CHECK(softmax_handle_device(automatic, &device) == SOFTMAX_SUCCESS);
  CHECK(device == SOFTMAX_DEVICE_CPU);
  CHECK(softmax_destroy(automatic) == SOFTMAX_SUCCESS);
}

TEST_CASE("without a driver a build with CUDA says 2005", "[handles]") {
  if (!SOFTMAX_TEST_WITH_CUDA) SOFTMAX_SKIP("this build has no CUDA");
  if (std::system("ldconfig -p | grep -q 'libcuda\\.so\\.1'") == 0) {
    SOFTMAX_SKIP("this machine has an NVIDIA driver");
  }
  softmax_handle_t handle = nullptr;
  CHECK(softmax_create(&handle, 0) == SOFTMAX_STATUS_NOT_SUPPORTED_DRIVER);
  CHECK(last_error().find("no NVIDIA driver") != std::string::npos);
}

namespace {
struct AtExit {
  softmax_handle_t handle = nullptr;
  ~AtExit() {
    if (handle != nullptr && softmax_destroy(handle) != SOFTMAX_SUCCESS) std::_Exit(9);
  }
};
int exit_child() {
  static AtExit at_exit;  // destroyed after the library's own static objects may be
  return softmax_create(&at_exit.handle, SOFTMAX_DEVICE_AUTO) == SOFTMAX_SUCCESS ? 0 : 1;
}
const Child exit_registered("destroy_at_exit", exit_child);
}  // namespace

TEST_CASE("a handle may be destroyed at process exit", "[handles]") {
  const ChildResult result = run_child("destroy_at_exit");
  CHECK(result.exit_code == 0);
  CHECK(result.out == "");
  CHECK(result.err == "");
}

TEST_CASE("a workspace can be given and taken away", "[handles]") {
  const CpuHandle handle;
  std::vector<double> scratch(64);
  float values[4] = {1, 1, 1, 1};
  CHECK(softmax_set_workspace(handle, scratch.data(), 512) == SOFTMAX_SUCCESS);
  CHECK(softmax_forward(handle, 0, values, 1, 4, nullptr) == SOFTMAX_SUCCESS);
  CHECK(values[3] == 0.25f);
  CHECK(softmax_set_workspace(handle, nullptr, 0) == SOFTMAX_SUCCESS);
  CHECK(scratch == std::vector<double>(64));
}

}  // namespace softmax_test
