// Running a part of a test in a process of its own: for what is read once a process (environment
// variables), and for what must be seen from outside (stdout, stderr, a crash).
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace softmax_test {

// Registers `body` under a name; `PROGRAM --child NAME` runs it and exits with what it returns.
class Child {
 public:
  Child(const char *name, int (*body)());
};

struct ChildResult {
  int exit_code = -1;  // -1: it could not be started, or a signal ended it
  std::string out;
  std::string err;
};

// Starts this very program as a child with the environment variables added.
ChildResult run_child(const std::string &name,
                      const std::vector<std::pair<std::string, std::string>> &environment = {});

// For main: the exit code of a registered child, or -1 where there is none of that name.
int child_main(const std::string &name);

}  // namespace softmax_test
