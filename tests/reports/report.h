// Runs every entry of the file and tells how each ended.
#pragma once

#include <string>
#include <vector>

#include "drive.h"

namespace reports {

struct Options {
  std::string input;    // public_reports.json
  std::string summary;  // a JSON file to write, or empty
  std::string only;     // a part of an id or of a kind; empty: everything
  bool verbose = false;
};

// Drives every entry and prints the summary line, and the table where something failed or it was
// asked for. The exit status: 0, or 1 where anything failed or an entry is missing.
int run_reports(const Options &options, const Context &context);

// Says that every entry is skipped, for want of a device, and why; the exit status 77.
int report_skipped(const Options &options, const std::string &why);

// The names of the tests that `ctest -N` lists for a build folder.
std::set<std::string> registered_tests(const std::string &ctest, const std::string &build_folder);

}  // namespace reports
