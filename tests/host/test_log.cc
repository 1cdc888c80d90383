// The log: levels, the callback, the environment variable, and silence otherwise.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "host/api.h"
#include "support/catch.h"
#include "support/child.h"

namespace softmax_test {
namespace {

struct Line {
  int32_t level;
  std::string message;
};

void collect(int32_t level, const char *message, void *user) {
  static_cast<std::vector<Line> *>(user)->push_back({level, message});
}

// Turns the log off again, whatever the test does.
class LogScope {
 public:
  LogScope(softmax_log_fn fn, void *user, int32_t level) {
    REQUIRE(softmax_set_log(fn, user, level) == SOFTMAX_SUCCESS);
  }
  ~LogScope() { softmax_set_log(nullptr, nullptr, SOFTMAX_LOG_OFF); }
};

// One good call and one that is refused, by AUTO on the CPU.
int work() {
  softmax_handle_t handle = nullptr;
  if (softmax_create(&handle, SOFTMAX_DEVICE_CPU) != SOFTMAX_SUCCESS) return 1;
  float values[10] = {};
  if (softmax_forward(handle, SOFTMAX_ALGO_AUTO, values, 1, 10, nullptr) != SOFTMAX_SUCCESS) {
    return 2;
  }
  if (softmax_forward(handle, SOFTMAX_ALGO_TILE, values, 1, 10, nullptr) !=
      SOFTMAX_STATUS_NOT_SUPPORTED_ALGO) {
    return 3;
  }
  return softmax_destroy(handle) == SOFTMAX_SUCCESS ? 0 : 4;
}
const Child work_child("log_work", work);

std::vector<Line> lines_at(int32_t level) {
  std::vector<Line> lines;
  const LogScope scope(collect, &lines, level);
  CHECK(work() == 0);
  return lines;
}

int count(const std::vector<Line> &lines, int32_t level) {
  int found = 0;
  for (const Line &line : lines) found += line.level == level ? 1 : 0;
  return found;
}

}  // namespace

TEST_CASE("each log level has its lines and those of the levels below", "[log]") {
  CHECK(lines_at(SOFTMAX_LOG_OFF).empty());

  const std::vector<Line> errors = lines_at(SOFTMAX_LOG_ERROR);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].level == SOFTMAX_LOG_ERROR);
  CHECK(errors[0].message.find("SOFTMAX_STATUS_NOT_SUPPORTED_ALGO") != std::string::npos);
  CHECK(errors[0].message.find("tile") != std::string::npos);

  const std::vector<Line> infos = lines_at(SOFTMAX_LOG_INFO);
  CHECK(count(infos, SOFTMAX_LOG_ERROR) == 1);
  CHECK(count(infos, SOFTMAX_LOG_INFO) == 2);  // the handle, and what was chosen
  CHECK(count(infos, SOFTMAX_LOG_DEBUG) == 0);

  const std::vector<Line> all = lines_at(SOFTMAX_LOG_DEBUG);
  CHECK(count(all, SOFTMAX_LOG_INFO) == 2);
  CHECK(count(all, SOFTMAX_LOG_DEBUG) > 5);  // those that declined
  for (const Line &line : all) {
    CHECK(line.message.find('\n') == std::string::npos);
    if (line.level == SOFTMAX_LOG_DEBUG) {
      CHECK(line.message.find(" declined: ") != std::string::npos);
    }
  }
}

TEST_CASE("levels that do not exist are refused and change nothing", "[log]") {
  std::vector<Line> lines;
  const LogScope scope(collect, &lines, SOFTMAX_LOG_ERROR);
  for (const int32_t none : {-1, 4, INT32_MAX}) {
    lines.clear();
    CHECK(softmax_set_log(nullptr, nullptr, none) == SOFTMAX_STATUS_BAD_ENUM);
    CHECK(lines.size() == 1);  // it is logged by the callback that stayed
  }
}

TEST_CASE("NULL turns the log off", "[log]") {
  std::vector<Line> lines;
  const LogScope scope(collect, &lines, SOFTMAX_LOG_DEBUG);
  CHECK(softmax_set_log(nullptr, &lines, SOFTMAX_LOG_DEBUG) == SOFTMAX_SUCCESS);
  CHECK(work() == 0);
  CHECK(lines.empty());
}

TEST_CASE("the log may be set while other threads compute", "[log][threads]") {
  static std::atomic<int> calls;
  const softmax_log_fn counting = [](int32_t, const char *, void *) { ++calls; };
  std::atomic<bool> stop{false};
  std::vector<int> results(4, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      while (!stop) results[t] |= work();
    });
  }
  for (int i = 0; i < 200; ++i) {
    CHECK(softmax_set_log(i % 2 == 0 ? counting : nullptr, nullptr, SOFTMAX_LOG_DEBUG) ==
          SOFTMAX_SUCCESS);
    std::this_thread::yield();
  }
  stop = true;
  for (std::thread &thread : threads) thread.join();
  CHECK(softmax_set_log(nullptr, nullptr, SOFTMAX_LOG_OFF) == SOFTMAX_SUCCESS);
  for (const int result : results) CHECK(result == 0);
}

TEST_CASE("without a log nothing is written to stdout or stderr", "[log]") {
  const ChildResult result = run_child("log_work", {{"SOFTMAX_LOG", ""}});
  CHECK(result.exit_code == 0);
  CHECK(result.out == "");
  CHECK(result.err == "");
}

TEST_CASE("SOFTMAX_LOG turns the log on to stderr", "[log]") {
  const struct {
    const char *value;
    bool error, info, debug;
  } cases[] = {{"error", true, false, false},    {"1", true, false, false},
               {"info", true, true, false},      {"2", true, true, false},
               {"debug", true, true, true},      {"3", true, true, true},
               {"DEBUG", true, true, true},      {"0", false, false, false},
               {"nonsense", false, false, false}};
  for (const auto &c : cases) {
    const ChildResult result = run_child("log_work", {{"SOFTMAX_LOG", c.value}});
    INFO(c.value << ": " << result.err);
    CHECK(result.exit_code == 0);
    CHECK(result.out == "");
    CHECK((result.err.find("libsoftmax error: ") != std::string::npos) == c.error);
    CHECK((result.err.find("libsoftmax info: ") != std::string::npos) == c.info);
    CHECK((result.err.find("libsoftmax debug: ") != std::string::npos) == c.debug);
  }
}

namespace {
int replace_child() {
  std::vector<Line> lines;
  if (softmax_set_log(collect, &lines, SOFTMAX_LOG_ERROR) != SOFTMAX_SUCCESS) return 20;
  if (work() != 0) return 21;
  return lines.size() == 1 ? 0 : 22;
}
const Child replace("log_replace", replace_child);
}  // namespace

TEST_CASE("a callback replaces what SOFTMAX_LOG turned on", "[log]") {
  const ChildResult result = run_child("log_replace", {{"SOFTMAX_LOG", "debug"}});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
}

}  // namespace softmax_test
