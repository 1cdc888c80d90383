// The last error: a sentence with the values that were wrong, cut to size, of this thread alone.
#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "host/api.h"
#include "support/catch.h"

namespace softmax_test {

TEST_CASE("the last error is empty before the first failure and stays until the next", "[errors]") {
  std::string fresh = "not asked", failed, after_success;
  std::thread([&] {
    fresh = last_error();
    int32_t count = 0;
    softmax_device_count(nullptr);
    failed = last_error();
    softmax_device_count(&count);
    after_success = last_error();
  }).join();
  CHECK(fresh == "");
  CHECK(failed == "count is NULL");
  CHECK(after_success == failed);
}

TEST_CASE("the last error is cut to the buffer and its whole length returned", "[errors]") {
  const CpuHandle handle;
  float value = 1;
  CHECK(softmax_forward(handle, 77, &value, 1, 1, nullptr) == SOFTMAX_STATUS_BAD_ENUM);
  char whole[512];
  const std::size_t length = softmax_last_error(whole, sizeof whole);
  REQUIRE(length == std::strlen(whole));
  REQUIRE(length > 10);
  CHECK(softmax_last_error(nullptr, 0) == length);
  CHECK(softmax_last_error(nullptr, 100) == length);
  for (std::size_t cap = 0; cap <= length + 3; ++cap) {
    std::vector<char> buffer(length + 8, '#');
    CHECK(softmax_last_error(buffer.data(), cap) == length);
    const std::size_t copied = cap == 0 ? 0 : std::min(cap - 1, length);
    if (cap > 0) CHECK(buffer[copied] == '\0');
    CHECK(std::memcmp(buffer.data(), whole, copied) == 0);
    for (std::size_t i = cap == 0 ? 0 : copied + 1; i < buffer.size(); ++i) {
      if (buffer[i] != '#') {
        INFO("cap " << cap << ", byte " << i);
        CHECK(false);
      }
    }
  }
}

TEST_CASE("the last error belongs to the thread whose call failed", "[errors]") {
  constexpr int kThreads = 8;
  std::vector<int> wrong(kThreads, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t, &wrong] {
      softmax_algo_t algo;
      for (int i = 0; i < 500; ++i) {
        const std::string name = "thread" + std::to_string(t) + "call" + std::to_string(i);
        softmax_algo_from_name(name.c_str(), &algo);
        wrong[t] += last_error().find(name) == std::string::npos ? 1 : 0;
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  for (const int count : wrong) CHECK(count == 0);
}

TEST_CASE("sentences name the values that were wrong", "[errors]") {
  const CpuHandle handle;
  float values[4] = {};
  CHECK(softmax_forward(handle, 0, values, -3, 17, nullptr) == SOFTMAX_STATUS_BAD_SHAPE);
  CHECK(last_error().find("-3") != std::string::npos);
  CHECK(last_error().find("17") != std::string::npos);
  CHECK(softmax_forward_to(handle, 0, values, 42, values, 1, 2, 2, nullptr) ==
        SOFTMAX_STATUS_BAD_ENUM);
  CHECK(last_error().find("42") != std::string::npos);
  softmax_desc_t desc = make_desc();
  desc.y_scale = 0.5;
  CHECK(softmax_desc_check(&desc) == SOFTMAX_STATUS_NOT_SUPPORTED);
  CHECK(last_error().find("0.5") != std::string::npos);
  CHECK(last_error().find("f32") != std::string::npos);
  CHECK(last_error().find('\n') == std::string::npos);
}

TEST_CASE("a refusal in which CUDA has no part leaves no CUDA error", "[errors]") {
  CHECK(softmax_device_count(nullptr) == SOFTMAX_STATUS_NULL_POINTER);
  CHECK(softmax_last_cuda_error() == 0);
}

}  // namespace softmax_test
