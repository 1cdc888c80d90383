// Errors on a CUDA handle: what is refused, and that the caller's CUDA state is left alone.
#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "gpu/cuda_check.h"
#include "support/catch.h"
#include "support/compare.h"
#include "support/device.h"

namespace softmax_test {
namespace {

softmax_status_t forward(float *ptr, softmax_algo_t algo = SOFTMAX_ALGO_AUTO,
                         cudaStream_t stream = nullptr) {
  return softmax_forward(device().handle(), algo, ptr, 4, 25, stream);
}

// What 25 equal values give.
bool is_one_in_25(float value) {
  return error_ulps(format_of(SOFTMAX_DTYPE_F32), value, 0.04) <= 4;
}

// Leaves an error pending in the runtime that is not sticky.
void leave_error_pending() {
  CHECK(cudaSetDevice(12345) == cudaErrorInvalidDevice);
  REQUIRE(cudaPeekAtLastError() == cudaErrorInvalidDevice);
}

}  // namespace

TEST_CASE("an error that was pending is neither blamed on the call nor cleared", "[errors]") {
  DeviceFloats work(100);
  must(cudaMemset(work.data(), 0, work.bytes()));
  for (const softmax_algo_t algo : device().algorithms()) {
    leave_error_pending();
    CHECK(forward(work.data(), algo) == SOFTMAX_SUCCESS);
    CHECK(cudaPeekAtLastError() == cudaErrorInvalidDevice);
    CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
    CHECK(cudaGetLastError() == cudaSuccess);
  }
  leave_error_pending();
  softmax_handle_t fresh = nullptr;
  CHECK(softmax_create(&fresh, 0) == SOFTMAX_SUCCESS);
  int32_t count = 0;
  CHECK(softmax_device_count(&count) == SOFTMAX_SUCCESS);
  CHECK(softmax_destroy(fresh) == SOFTMAX_SUCCESS);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  must(cudaDeviceSynchronize());
}

TEST_CASE("a refused call leaves no error behind", "[errors]") {
  must(cudaDeviceSynchronize());
  REQUIRE(cudaGetLastError() == cudaSuccess);
  std::vector<float> host(100);
  CHECK(forward(host.data()) == SOFTMAX_STATUS_WRONG_DEVICE);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(forward(nullptr) == SOFTMAX_STATUS_NULL_POINTER);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  softmax_handle_t none = nullptr;
  CHECK(softmax_create(&none, 12345) == SOFTMAX_STATUS_WRONG_DEVICE);
  CHECK(none == nullptr);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("host memory is refused with 1009 and a sentence", "[errors]") {
  std::vector<float> host(100, 7.5f);
  DeviceFloats work(100);
  CHECK(forward(host.data()) == SOFTMAX_STATUS_WRONG_DEVICE);
  CHECK(last_error() != "");
  CHECK(softmax_forward_to(device().handle(), SOFTMAX_ALGO_AUTO, host.data(), SOFTMAX_DTYPE_F32,
                           work.data(), SOFTMAX_DTYPE_F32, 4, 25,
                           nullptr) == SOFTMAX_STATUS_WRONG_DEVICE);
  CHECK(softmax_forward_to(device().handle(), SOFTMAX_ALGO_AUTO, work.data(), SOFTMAX_DTYPE_F32,
                           host.data(), SOFTMAX_DTYPE_F32, 4, 25,
                           nullptr) == SOFTMAX_STATUS_WRONG_DEVICE);
  CHECK(host == std::vector<float>(100, 7.5f));
  must(cudaDeviceSynchronize());
}

TEST_CASE("pinned and managed memory are accepted", "[errors]") {
  void *pinned = nullptr;
  must(cudaMallocHost(&pinned, 400));
  void *managed = nullptr;
  must(cudaMallocManaged(&managed, 400));
  for (void *memory : {pinned, managed}) {
    auto *values = static_cast<float *>(memory);
    for (int i = 0; i < 100; ++i) values[i] = 3;
    for (const softmax_algo_t algo : {SOFTMAX_ALGO_AUTO, SOFTMAX_ALGO_VECTOR}) {
      CHECK(forward(values, algo) == SOFTMAX_SUCCESS);
      must(cudaDeviceSynchronize());
      for (int i = 0; i < 100; ++i) CHECK(is_one_in_25(values[i]));
    }
  }
  must(cudaFreeHost(pinned));
  must(cudaFree(managed));
}

TEST_CASE("TRUST_POINTERS skips the check of where memory is", "[errors]") {
  void *pinned = nullptr;
  must(cudaMallocHost(&pinned, 400));
  auto *values = static_cast<float *>(pinned);
  for (int i = 0; i < 100; ++i) values[i] = 3;
  softmax_desc_t desc;
  CHECK(softmax_desc_init(&desc, sizeof desc, SOFTMAX_OP_SOFTMAX, SOFTMAX_DTYPE_F32, 4, 25) ==
        SOFTMAX_SUCCESS);
  desc.flags = SOFTMAX_FLAG_TRUST_POINTERS;
  softmax_args_t args = {};
  args.struct_size = sizeof args;
  args.x = values;
  args.y = values;
  CHECK(softmax_execute(device().handle(), SOFTMAX_ALGO_AUTO, &desc, &args, nullptr) ==
        SOFTMAX_SUCCESS);
  must(cudaDeviceSynchronize());
  CHECK(is_one_in_25(values[99]));
  must(cudaFreeHost(pinned));
}

TEST_CASE("memory from a stream-ordered pool is accepted", "[errors]") {
  const Stream stream;
  void *memory = nullptr;
  must(cudaMallocAsync(&memory, 400, stream));
  must(cudaMemsetAsync(memory, 0, 400, stream));
  CHECK(forward(static_cast<float *>(memory), SOFTMAX_ALGO_AUTO, stream) == SOFTMAX_SUCCESS);
  float last = 0;
  must(
      cudaMemcpyAsync(&last, static_cast<float *>(memory) + 99, 4, cudaMemcpyDeviceToHost, stream));
  stream.synchronize();
  CHECK(is_one_in_25(last));
  must(cudaFreeAsync(memory, stream));
  stream.synchronize();
}

TEST_CASE("an ordinal that does not exist is refused with 1009 and a sentence", "[errors]") {
  int count = 0;
  must(cudaGetDeviceCount(&count));
  for (const int32_t ordinal : {count, count + 7, INT32_MAX, -3, INT32_MIN}) {
    softmax_handle_t none = device().handle();
    CHECK(softmax_create(&none, ordinal) == SOFTMAX_STATUS_WRONG_DEVICE);
    CHECK(none == nullptr);
    CHECK(last_error().find(std::to_string(ordinal)) != std::string::npos);
  }
  int32_t seen = -1;
  CHECK(softmax_device_count(&seen) == SOFTMAX_SUCCESS);
  CHECK(seen == count);
}

TEST_CASE("AUTO takes the calling thread's current device", "[errors]") {
  softmax_handle_t automatic = nullptr;
  int current = -1;
  must(cudaGetDevice(&current));
  REQUIRE(softmax_create(&automatic, SOFTMAX_DEVICE_AUTO) == SOFTMAX_SUCCESS);
  int32_t ordinal = -7;
  CHECK(softmax_handle_device(automatic, &ordinal) == SOFTMAX_SUCCESS);
  CHECK(ordinal == current);
  char text[200];
  CHECK(softmax_handle_description(automatic, text, sizeof text) > 0);
  CHECK(std::string(text).find("sm_") != std::string::npos);
  CHECK(softmax_destroy(automatic) == SOFTMAX_SUCCESS);
}

TEST_CASE("a CPU handle works beside a CUDA handle", "[errors]") {
  softmax_handle_t cpu = nullptr;
  REQUIRE(softmax_create(&cpu, SOFTMAX_DEVICE_CPU) == SOFTMAX_SUCCESS);
  std::vector<float> host(100, 1.0f);
  CHECK(softmax_forward(cpu, SOFTMAX_ALGO_AUTO, host.data(), 4, 25, nullptr) == SOFTMAX_SUCCESS);
  CHECK(is_one_in_25(host[99]));
  const Stream stream;
  CHECK(softmax_forward(cpu, SOFTMAX_ALGO_AUTO, host.data(), 4, 25, stream) ==
        SOFTMAX_STATUS_WRONG_DEVICE);
  CHECK(softmax_destroy(cpu) == SOFTMAX_SUCCESS);
}

TEST_CASE("overlap and misalignment are refused before anything is enqueued", "[errors]") {
  DeviceFloats work(200);
  must(cudaMemset(work.data(), 0x5a, work.bytes()));
  std::vector<float> before(200), after(200);
  must(cudaMemcpy(before.data(), work.data(), work.bytes(), cudaMemcpyDeviceToHost));
  auto *bytes = reinterpret_cast<unsigned char *>(work.data());
  CHECK(forward(reinterpret_cast<float *>(bytes + 2)) == SOFTMAX_STATUS_INVALID_ARGUMENT);
  CHECK(softmax_forward_to(device().handle(), SOFTMAX_ALGO_AUTO, work.data(), SOFTMAX_DTYPE_F32,
                           work.data() + 99, SOFTMAX_DTYPE_F32, 4, 25,
                           nullptr) == SOFTMAX_STATUS_OVERLAP);
  must(cudaDeviceSynchronize());
  must(cudaMemcpy(after.data(), work.data(), work.bytes(), cudaMemcpyDeviceToHost));
  CHECK(std::equal(before.begin(), before.end(), after.begin()));
}

TEST_CASE("memory of another GPU is refused, and the current device is restored", "[errors]") {
  int count = 0;
  must(cudaGetDeviceCount(&count));
  if (count < 2) SOFTMAX_SKIP("needs two GPUs");
  softmax_handle_t second = nullptr;
  REQUIRE(softmax_create(&second, 1) == SOFTMAX_SUCCESS);
  int current = -1;
  must(cudaGetDevice(&current));
  CHECK(current == 0);
  DeviceFloats on_first(100);
  CHECK(softmax_forward(second, SOFTMAX_ALGO_AUTO, on_first.data(), 4, 25, nullptr) ==
        SOFTMAX_STATUS_WRONG_DEVICE);
  must(cudaGetDevice(&current));
  CHECK(current == 0);

  must(cudaSetDevice(1));
  {
    DeviceFloats on_second(100);
    must(cudaMemset(on_second.data(), 0, on_second.bytes()));
    must(cudaDeviceSynchronize());
    must(cudaSetDevice(0));
    CHECK(softmax_forward(second, SOFTMAX_ALGO_AUTO, on_second.data(), 4, 25, nullptr) ==
          SOFTMAX_SUCCESS);
    must(cudaGetDevice(&current));
    CHECK(current == 0);
    must(cudaSetDevice(1));
    must(cudaDeviceSynchronize());
    float last = 0;
    must(cudaMemcpy(&last, on_second.data() + 99, 4, cudaMemcpyDeviceToHost));
    CHECK(is_one_in_25(last));
  }
  must(cudaSetDevice(0));
  CHECK(softmax_destroy(second) == SOFTMAX_SUCCESS);
}

TEST_CASE("the current device is unchanged by every call", "[errors]") {
  int before = -1, after = -1;
  must(cudaGetDevice(&before));
  DeviceFloats work(100);
  softmax_handle_t fresh = nullptr;
  CHECK(softmax_create(&fresh, 0) == SOFTMAX_SUCCESS);
  CHECK(forward(work.data()) == SOFTMAX_SUCCESS);
  std::vector<float> host(100);
  CHECK(forward(host.data()) == SOFTMAX_STATUS_WRONG_DEVICE);
  CHECK(softmax_destroy(fresh) == SOFTMAX_SUCCESS);
  must(cudaGetDevice(&after));
  CHECK(after == before);
  must(cudaDeviceSynchronize());
}

}  // namespace softmax_test
