// What the executables must do besides reading entries: parts of tests that need a process of
// their own.
#pragma once

#include <string>

namespace reports {

// Runs this executable again with these arguments; its exit status, or -1 where it did not exit.
int run_self(const std::string &arguments);

// The other side of run_self: true where the arguments are one of its parts, with the exit status
// to end with.
bool run_as_part(int argc, char **argv, int *exit_status);

}  // namespace reports
