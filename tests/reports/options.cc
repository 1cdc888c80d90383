// Reads the command line. See options.h.
#include "options.h"

#include <filesystem>
#include <stdexcept>

namespace reports {
namespace {

// Beside the source, beside the executable, or from the root of a checkout: a binary that was
// carried to another machine finds its input too.
std::string find_input() {
  namespace fs = std::filesystem;
  const fs::path name = "public_reports.json";
  const fs::path self = fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path places[] = {fs::path("tests/inputs") / name, self / name,
                             fs::path(REPORTS_SOURCE) / "tests/inputs" / name};
  for (const fs::path &place : places) {
    if (fs::exists(place)) return place.string();
  }
  throw std::invalid_argument("public_reports.json was not found: give --input FILE");
}

}  // namespace

Arguments parse_arguments(int argc, char **argv) {
  Arguments arguments;
  for (int n = 1; n < argc; ++n) {
    const std::string word = argv[n];
    const auto value = [&]() -> std::string {
      if (n + 1 == argc) throw std::invalid_argument(word + " needs a value");
      return argv[++n];
    };
    if (word == "--input") {
      arguments.options.input = value();
    } else if (word == "--summary") {
      arguments.options.summary = value();
    } else if (word == "--only") {
      arguments.options.only = value();
    } else if (word == "--verbose") {
      arguments.options.verbose = true;
    } else if (word == "--ctest") {
      arguments.ctest = value();
    } else if (word == "--build") {
      arguments.build_folder = value();
    } else {
      throw std::invalid_argument("unknown argument " + word +
                                  "; known: --input FILE --summary FILE --only PART --verbose "
                                  "--ctest PROGRAM --build FOLDER");
    }
  }
  if (arguments.ctest.empty() != arguments.build_folder.empty()) {
    throw std::invalid_argument("--ctest and --build go together");
  }
  if (arguments.options.input.empty()) arguments.options.input = find_input();
  return arguments;
}

}  // namespace reports
