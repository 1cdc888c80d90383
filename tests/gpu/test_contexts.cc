// Which primary contexts the library initialises. Each part runs in a process of its own, in which
// nothing else has used CUDA.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "softmax.h"
#include "support/catch.h"
#include "support/child.h"
#include "support/device.h"

namespace softmax_test {
namespace {

// Whether a device's primary context is active, from the driver; -1 where that cannot be asked.
int is_active(int ordinal) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return -1;
  using GetState = int (*)(int, unsigned *, int *);
  const auto get_state = reinterpret_cast<GetState>(dlsym(driver, "cuDevicePrimaryCtxGetState"));
  unsigned flags = 0;
  int active = -1;
  return get_state != nullptr && get_state(ordinal, &flags, &active) == 0 ? active : -1;
}

int count_child() {
  int32_t count = -1;
  if (softmax_device_count(&count) != SOFTMAX_SUCCESS) return 1;
  std::printf("count %d active %d\n", static_cast<int>(count), is_active(0));
  return 0;
}
const Child count_registered("device_count", count_child);

int first_child() {
  softmax_handle_t handle = nullptr;
  if (softmax_create(&handle, 0) != SOFTMAX_SUCCESS) return 1;
  std::printf("active %d\n", is_active(0));
  return softmax_destroy(handle) == SOFTMAX_SUCCESS ? 0 : 1;
}
const Child first_registered("create_first", first_child);

int second_child() {
  softmax_handle_t handle = nullptr;
  if (softmax_create(&handle, 1) != SOFTMAX_SUCCESS) return 1;
  std::printf("first %d second %d\n", is_active(0), is_active(1));
  return 0;
}
const Child second_registered("create_second", second_child);

// A handle in a static object is destroyed after main, when the CUDA runtime may be gone.
struct AtExit {
  softmax_handle_t handle = nullptr;
  ~AtExit() {
    if (handle != nullptr && softmax_destroy(handle) != SOFTMAX_SUCCESS) std::_Exit(9);
  }
};
int exit_child() {
  static AtExit at_exit;
  return softmax_create(&at_exit.handle, 0) == SOFTMAX_SUCCESS ? 0 : 1;
}
const Child exit_registered("destroy_at_exit", exit_child);

int no_gpu_child() {
  int32_t count = -1;
  if (softmax_device_count(&count) != SOFTMAX_SUCCESS || count != 0) return 1;
  softmax_handle_t handle = nullptr;
  if (softmax_create(&handle, 0) != SOFTMAX_STATUS_WRONG_DEVICE || handle != nullptr) return 2;
  char sentence[512];
  if (softmax_last_error(sentence, sizeof sentence) == 0) return 3;
  std::printf("%s\n", sentence);
  if (softmax_create(&handle, SOFTMAX_DEVICE_AUTO) != SOFTMAX_SUCCESS) return 4;
  int32_t device = 0;
  if (softmax_handle_device(handle, &device) != SOFTMAX_SUCCESS) return 5;
  return device == SOFTMAX_DEVICE_CPU ? 0 : 6;
}
const Child no_gpu_registered("no_gpu", no_gpu_child);

}  // namespace

TEST_CASE("softmax_device_count initialises no context", "[contexts]") {
  const ChildResult result = run_child("device_count");
  int count = 0;
  REQUIRE(cudaGetDeviceCount(&count) == cudaSuccess);
  CHECK(result.exit_code == 0);
  CHECK(result.out == "count " + std::to_string(count) + " active 0\n");
  CHECK(result.err == "");
}

TEST_CASE("softmax_create initialises its device's context", "[contexts]") {
  const ChildResult result = run_child("create_first");
  CHECK(result.exit_code == 0);
  CHECK(result.out == "active 1\n");
  CHECK(result.err == "");
}

TEST_CASE("softmax_create initialises no other device's context", "[contexts]") {
  int count = 0;
  REQUIRE(cudaGetDeviceCount(&count) == cudaSuccess);
  if (count < 2) SOFTMAX_SKIP("needs two GPUs");
  const ChildResult result = run_child("create_second");
  CHECK(result.exit_code == 0);
  CHECK(result.out == "first 0 second 1\n");
  CHECK(result.err == "");
}

TEST_CASE("a handle may be destroyed at process exit", "[contexts]") {
  const ChildResult result = run_child("destroy_at_exit");
  CHECK(result.exit_code == 0);
  CHECK(result.out == "");
  CHECK(result.err == "");
}

TEST_CASE("without a visible GPU CUDA is refused and AUTO takes the CPU", "[contexts]") {
  const ChildResult result = run_child("no_gpu", {{"CUDA_VISIBLE_DEVICES", ""}});
  INFO(result.out << result.err);
  CHECK(result.exit_code == 0);
}

}  // namespace softmax_test
