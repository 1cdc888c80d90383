// The main program of the test executables: Catch2's, and
//   --summary FILE   writes
//   {"passed":n,"failed":n,"skipped":n,"assertions":n,"skipped_names":[...],
//                    "failed_names":[...]} to FILE
//   --case-limit S   ends with a case that has not ended after S seconds, which has failed then
//   --child NAME     runs a part of a test in this process; see child.h
// Exits with 77 where every test case that ran was skipped. A test case without an assertion fails.
#define CATCH_CONFIG_RUNNER
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "softmax.h"
#include "support/catch.h"
#include "support/child.h"
#include "support/device.h"
#include "support/program.h"
#include "support/watchdog.h"

namespace softmax_test {
namespace {

constexpr int kSkippedExitCode = 77;

struct Tally {
  std::vector<std::string> passed, failed, skipped;
  unsigned long long assertions = 0;
  bool current_is_skipped = false;
};
Tally tally;

struct Options {
  std::string summary;    // a path, or ""
  double case_limit = 0;  // seconds, or 0
};
Options options;

void end_late(const std::string &name, const std::string &doing);

#if SOFTMAX_CATCH_VERSION == 3
using ListenerBase = Catch::EventListenerBase;
const std::string &name_of(const Catch::TestCaseStats &stats) { return stats.testInfo->name; }
#else
using ListenerBase = Catch::TestEventListenerBase;
const std::string &name_of(const Catch::TestCaseStats &stats) { return stats.testInfo.name; }
#endif

class Listener : public ListenerBase {
 public:
  using ListenerBase::ListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo &info) override {
    tally.current_is_skipped = false;
    if (options.case_limit > 0) watch(info.name, options.case_limit, end_late);
  }
  void testCaseEnded(const Catch::TestCaseStats &stats) override {
    unwatch();
    const auto &assertions = stats.totals.assertions;
    tally.assertions += assertions.passed + assertions.failed;
    auto &list = assertions.failed > 0 || stats.totals.testCases.failed > 0 ? tally.failed
                 : tally.current_is_skipped                                 ? tally.skipped
                                                                            : tally.passed;
    list.push_back(name_of(stats));
  }
};

CATCH_REGISTER_LISTENER(Listener)

std::string json_list(const std::vector<std::string> &names) {
  std::string text = "[";
  for (const std::string &name : names) {
    text += text.size() > 1 ? ", \"" : "\"";
    for (const char c : name) {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
    text += '"';
  }
  return text + "]";
}

// The id of the source that the library was built from, out of its build description.
std::string source_id() {
  const std::string info = softmax_build_info();
  const std::string before = "source ";
  const std::size_t start = info.find(before);
  if (start == std::string::npos) return "unknown";
  return info.substr(start + before.size(), info.find(',', start) - start - before.size());
}

bool write_summary() {
  if (options.summary.empty()) return true;
  std::FILE *file = std::fopen(options.summary.c_str(), "w");
  if (file == nullptr) return false;
  std::fprintf(file,
               "{\"source_id\": \"%s\", \"passed\": %zu, \"failed\": %zu, \"skipped\": %zu, "
               "\"assertions\": %llu,\n"
               " \"skipped_names\": %s,\n \"failed_names\": %s}\n",
               source_id().c_str(), tally.passed.size(), tally.failed.size(), tally.skipped.size(),
               tally.assertions, json_list(tally.skipped).c_str(), json_list(tally.failed).c_str());
  return std::fclose(file) == 0;
}

// The program ends here, at its case's limit.
void end_late(const std::string &name, const std::string &doing) {
  std::printf("FAILED: %s: has not ended after %g seconds\n%s\n", name.c_str(), options.case_limit,
              doing.c_str());
  std::fflush(stdout);
  tally.failed.push_back(name);
  write_summary();
}

// Takes "--name VALUE" out of the arguments; "" where it is not among them.
std::string take_option(const char *name, std::vector<char *> *arguments) {
  for (std::size_t i = 1; i + 1 < arguments->size(); ++i) {
    if (std::strcmp((*arguments)[i], name) != 0) continue;
    const std::string value = (*arguments)[i + 1];
    arguments->erase(arguments->begin() + static_cast<std::ptrdiff_t>(i),
                     arguments->begin() + static_cast<std::ptrdiff_t>(i) + 2);
    return value;
  }
  return "";
}

bool is_listing(const std::vector<char *> &arguments) {
  for (const char *argument : arguments) {
    if (std::strncmp(argument, "--list", 6) == 0 || std::strcmp(argument, "--help") == 0 ||
        std::strcmp(argument, "-l") == 0 || std::strcmp(argument, "-t") == 0 ||
        std::strcmp(argument, "-?") == 0 || std::strcmp(argument, "-h") == 0) {
      return true;
    }
  }
  return false;
}

int run(std::vector<char *> arguments) {
  const std::string child = take_option("--child", &arguments);
  if (!child.empty()) return child_main(child);
  options.summary = take_option("--summary", &arguments);
  const std::string case_limit = take_option("--case-limit", &arguments);
  if (!case_limit.empty()) {
    options.case_limit = std::atof(case_limit.c_str());
    if (options.case_limit <= 0) {
      std::fprintf(stderr, "--case-limit %s is no number of seconds\n", case_limit.c_str());
      return 2;
    }
  }

  Catch::Session session;
  session.configData().warnings = Catch::WarnAbout::NoAssertions;
  const int parsed = session.applyCommandLine(static_cast<int>(arguments.size()), arguments.data());
  if (parsed != 0) return parsed;
  if (!is_listing(arguments)) {
    const std::string missing = what_is_missing();
    if (!missing.empty()) {
      std::printf("skipped: %s\n", missing.c_str());
      return kSkippedExitCode;
    }
  }

  const int result = session.run();
  if (!write_summary()) {
    std::fprintf(stderr, "cannot write %s\n", options.summary.c_str());
    return 2;
  }
  if (!tally.skipped.empty()) {
    std::printf("%zu test cases were skipped\n", tally.skipped.size());
  }
  const long long left_out = tally.passed.empty() ? 0 : device().left_out();
  if (left_out > 0) {
    std::printf("%lld times an algorithm was left out: the selector declines the row for it\n",
                left_out);
  }
  if (result != 0) return result > 255 ? 255 : result;
  if (!tally.failed.empty()) return 1;
  return tally.passed.empty() && !tally.skipped.empty() ? kSkippedExitCode : 0;
}

}  // namespace

void mark_skipped(const char *reason) {
  tally.current_is_skipped = true;
  std::printf("skipped: %s\n", reason);
}

}  // namespace softmax_test

int main(int argc, char **argv) {
  return softmax_test::run(std::vector<char *>(argv, argv + argc));
}
