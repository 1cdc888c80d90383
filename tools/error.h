// How the program fails: one exception, which carries the exit code.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "softmax.h"

namespace tool {

constexpr int kExitOk = 0;
constexpr int kExitFailure = 1;   // out of memory, a CUDA error, a defect
constexpr int kExitBadInput = 2;  // a bad option or a bad file: the same call will fail again

class Error : public std::runtime_error {
 public:
  Error(int exit_code, const std::string &message)
      : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

template <typename... Args>
[[noreturn]] void fail_input(fmt::format_string<Args...> format, Args &&...args) {
  throw Error(kExitBadInput, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
[[noreturn]] void fail_run(fmt::format_string<Args...> format, Args &&...args) {
  throw Error(kExitFailure, fmt::format(format, std::forward<Args>(args)...));
}

// The sentence of the library's last failed call on this thread.
std::string last_library_error();

// Throws the library's sentence unless status is SOFTMAX_SUCCESS. What the library calls a wrong or
// an unsupported call (1xxx, 2xxx) is bad input of ours.
void check(softmax_status_t status);

}  // namespace tool
