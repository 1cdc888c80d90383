// Drives the public reports on the CPU.
//
//   softmax_reports [--input FILE] [--ctest PROGRAM --build FOLDER] [--summary FILE] [--only PART]
//                   [--verbose]
//
// SOFTMAX_REPORTS_RAM_GB=18 (or 9) permits the entry that takes so much memory.
#include <cstdio>
#include <exception>

#include "options.h"
#include "process.h"

int main(int argc, char **argv) {
  using namespace reports;
  int status = 0;
  if (run_as_part(argc, argv, &status)) return status;
  try {
    const Arguments arguments = parse_arguments(argc, argv);
    const std::unique_ptr<Device> device = make_cpu_device();
    Context context;
    context.device = device.get();
    std::set<std::string> tests;
    if (!arguments.ctest.empty()) {
      tests = registered_tests(arguments.ctest, arguments.build_folder);
      context.tests = &tests;
    }
    return run_reports(arguments.options, context);
  } catch (const std::exception &error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
