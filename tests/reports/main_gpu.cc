// Drives the public reports on a CUDA device. Exits with 77 where there is none.
//
//   softmax_gpu_reports [--input FILE] [--summary FILE] [--only PART] [--verbose]
#include <cstdio>
#include <exception>

#include "cuda_device.h"
#include "cuda_specials.h"
#include "options.h"
#include "process.h"

int main(int argc, char **argv) {
  using namespace reports;
  int status = 0;
  try {
    if (run_as_part(argc, argv, &status) || run_as_cuda_part(argc, argv, &status)) return status;
    const Arguments arguments = parse_arguments(argc, argv);
    if (cuda_devices() == 0) return report_skipped(arguments.options, "no CUDA device");
    const std::unique_ptr<Device> device = make_cuda_device(0);
    Context context;
    context.device = device.get();
    return run_reports(arguments.options, context);
  } catch (const std::exception &error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
