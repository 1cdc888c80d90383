// Names and sentences: complete, constant, and found again.
#include <cstring>
#include <set>
#include <string>

#include "core/algo.h"
#include "host/api.h"
#include "support/catch.h"

namespace softmax_test {
namespace {

constexpr struct {
  softmax_status_t status;
  const char *name;
} kStatuses[] = {
#define SOFTMAX_TEST_STATUS(name) \
  { name, #name }
    SOFTMAX_TEST_STATUS(SOFTMAX_SUCCESS),
    SOFTMAX_TEST_STATUS(SOFTMAX_STATUS_INVALID_ARGUMENT),
    SOFTMAX_TEST_STATUS(SOFTMAX_STATUS_NULL_POINTER),
    SOFTMAX_TEST_STATUS(SOFTMAX_STATUS_BAD_HANDLE),
    SOFTMAX_TEST_STATUS(SOFTMAX_STATUS_BAD_SHAPE),
    SOFTMAX_TEST_STATUS(SOFTMAX_STATUS_BAD_STRIDE),
    SOFTMAX_TEST_STATUS(SOFTMAX_STATUS_BAD_ENUM),
    SOFTMAX_TEST_STATUS(SOFTMAX_STATUS_STRUCT_SIZE),
    SOFTMAX_TEST_STATUS(SOFTMAX_STATUS_OVERLAP),
    SOFTMAX_TEST_STATUS(SOFTMAX_STATUS_WORKSPACE_TOO_SMALL),
    SOFTMAX_TEST_STATUS(SOFTMAX_STATUS_WRONG_DEVICE),
    SOFTMAX_TEST_STATUS(SOFTMAX_STATUS_NOT_SUPPORTED),
    SOFTMAX_TEST_STATUS(SOFTMAX_STATUS_NOT_SUPPORTED_ALGO),
    SOFTMAX_TEST_STATUS(SOFTMAX_STATUS_NOT_SUPPORTED_DTYPE),
    SOFTMAX_TEST_STATUS(SOFTMAX_STATUS_NOT_SUPPORTED_LAYOUT),
    SOFTMAX_TEST_STATUS(SOFTMAX_STATUS_NOT_SUPPORTED_ARCH),
    SOFTMAX_TEST_STATUS(SOFTMAX_STATUS_NOT_SUPPORTED_DRIVER),
    SOFTMAX_TEST_STATUS(SOFTMAX_STATUS_NEWER_FIELD),
    SOFTMAX_TEST_STATUS(SOFTMAX_STATUS_RESOURCE),
    SOFTMAX_TEST_STATUS(SOFTMAX_STATUS_HOST_MEMORY),
    SOFTMAX_TEST_STATUS(SOFTMAX_STATUS_DEVICE_MEMORY),
    SOFTMAX_TEST_STATUS(SOFTMAX_STATUS_CUDA),
    SOFTMAX_TEST_STATUS(SOFTMAX_STATUS_INTERNAL),
#undef SOFTMAX_TEST_STATUS
};

}  // namespace

TEST_CASE("every status has its constant's name and a sentence of its own", "[names]") {
  std::set<std::string> sentences;
  for (const auto &status : kStatuses) {
    CHECK(std::string(softmax_status_name(status.status)) == status.name);
    CHECK(sentences.insert(softmax_status_string(status.status)).second);
    CHECK(std::strlen(softmax_status_string(status.status)) >= 7);
  }
  // And no other number has one.
  int named = 0;
  for (int number = -10; number < 7000; ++number) {
    named += std::string(softmax_status_name(number)) != "SOFTMAX_STATUS_UNKNOWN" ? 1 : 0;
  }
  CHECK(named == static_cast<int>(sizeof kStatuses / sizeof kStatuses[0]));
  for (const int32_t unknown : {-1, 1010, 2007, 9999, INT32_MAX, INT32_MIN}) {
    CHECK(std::string(softmax_status_name(unknown)) == "SOFTMAX_STATUS_UNKNOWN");
    CHECK(std::strlen(softmax_status_string(unknown)) > 10);
  }
}

TEST_CASE("algorithm names and numbers lead to each other, in any case", "[names]") {
  std::set<std::string> names;
  for (const softmax_algo_t algo : kEveryAlgorithm) {
    const char *name = softmax_algo_name(algo);
    REQUIRE(name != nullptr);
    CHECK(names.insert(name).second);
    softmax_algo_t found = -1;
    CHECK(softmax_algo_from_name(name, &found) == SOFTMAX_SUCCESS);
    CHECK(found == algo);
    std::string upper = name;
    for (char &c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    found = -1;
    CHECK(softmax_algo_from_name(upper.c_str(), &found) == SOFTMAX_SUCCESS);
    CHECK(found == algo);
  }
  CHECK(names.size() == sizeof softmax::kAlgoNames / sizeof softmax::kAlgoNames[0]);
  for (int number = -10; number < 2000; ++number) {
    const char *name = softmax_algo_name(number);
    if (name != nullptr && names.count(name) == 0) {
      INFO(number);
      CHECK(false);
    }
  }
}

TEST_CASE("names that no algorithm has are refused and quoted", "[names]") {
  softmax_algo_t algo = 77;
  for (const char *name : {"", "fastest", "auto ", " auto", "warp-online", "SOFTMAX_ALGO_AUTO"}) {
    CHECK(softmax_algo_from_name(name, &algo) == SOFTMAX_STATUS_BAD_ENUM);
    CHECK(last_error().find(std::string("'") + name + "'") != std::string::npos);
  }
  const std::string endless(100000, 'a');
  CHECK(softmax_algo_from_name(endless.c_str(), &algo) == SOFTMAX_STATUS_BAD_ENUM);
  CHECK(algo == 77);
}

TEST_CASE("the version is the header's in every spelling", "[names]") {
  CHECK(softmax_version() ==
        SOFTMAX_VERSION_MAJOR * 10000 + SOFTMAX_VERSION_MINOR * 100 + SOFTMAX_VERSION_PATCH);
  const std::string version = std::to_string(SOFTMAX_VERSION_MAJOR) + "." +
                              std::to_string(SOFTMAX_VERSION_MINOR) + "." +
                              std::to_string(SOFTMAX_VERSION_PATCH);
  CHECK(softmax_version_string() == version);
  const std::string info = softmax_build_info();
  CHECK(info.find(version) != std::string::npos);
  CHECK(info.find("source ") != std::string::npos);
  CHECK(info.find("CUDA") != std::string::npos);
  CHECK(info.find('\n') == std::string::npos);
  CHECK(softmax_build_info() == softmax_build_info());  // one static string
}

}  // namespace softmax_test
