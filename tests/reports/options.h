// The command line of both executables.
#pragma once

#include <string>

#include "report.h"

namespace reports {

struct Arguments {
  Options options;
  std::string ctest;         // the program; empty: names of tests are not looked up
  std::string build_folder;  // where it lists tests
};

// Throws std::invalid_argument with a sentence where it does not know an argument.
Arguments parse_arguments(int argc, char **argv);

}  // namespace reports
