// Entries about a whole process or the machine. See special.h and process.h.
#include "process.h"

#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "element.h"
#include "matrix.h"
#include "special.h"

namespace reports {
namespace {

// ---- a handle in a static object ----

constexpr const char *kStaticHandle = "--part-static-handle";

struct StaticHandle {
  softmax_handle_t handle = nullptr;
  ~StaticHandle() {
    // After main, and after what the runtime has registered since: it must neither crash nor print.
    if (softmax_destroy(handle) != SOFTMAX_SUCCESS) _exit(3);
  }
} static_handle;

// Computes with a handle that a static object destroys after main.
int static_handle_part(std::int32_t ordinal) {
  if (softmax_create(&static_handle.handle, ordinal) != SOFTMAX_SUCCESS) return 2;
  const std::unique_ptr<Device> device =
      ordinal == SOFTMAX_DEVICE_CPU ? make_cpu_device() : make_cuda_device(ordinal);
  Guarded x(device.get(), 4 * 64, 64, 0);
  x.write(std::vector<unsigned char>(4 * 64, 0));
  const auto ptr = static_cast<float *>(x.data());
  if (softmax_forward(static_handle.handle, 0, ptr, 1, 64, device->stream()) != SOFTMAX_SUCCESS) {
    return 2;
  }
  if (!device->finish().empty()) return 2;
  return decode(SOFTMAX_DTYPE_F32, x.read().data()) == 1.0 / 64 ? 0 : 2;
}

void run_static_handle(Device *device, const Entry &, Verdict *verdict) {
  const int status = run_self(kStaticHandle + (" " + std::to_string(device->ordinal())));
  verdict->expect(status == 0, "the process ends with " + std::to_string(status) + ", not 0");
}

// ---- speed of one CPU thread ----

// "Loosely": the best of several calls, since the machine may be busy.
void run_one_thread_speed(Device *device, const Entry &entry, Verdict *verdict) {
  const Input input =
      make_input(entry.gen, dtype_of(entry.dtype), entry.shape.at(0), entry.shape.at(1));
  const std::vector<unsigned char> bytes = encode_all(input);
  std::vector<unsigned char> output(bytes.size());
  const Call call{SOFTMAX_ALGO_AUTO, false,       bytes.data(), input.dtype,
                  output.data(),     input.dtype, input.rows,   input.columns};
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  double best = 0;
  for (int n = 0; n < 20; ++n) {
    const auto begin = std::chrono::steady_clock::now();
    verdict->expect_status(make_call(call, *device), SOFTMAX_SUCCESS, "the call");
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, 2.0 * static_cast<double>(bytes.size()) / seconds * 1e-9);
  }
  omp_set_num_threads(threads);
  verdict->expect(best >= number_of(entry.check.at("gbps_min")),
                  "one thread moves " + std::to_string(best) + " GB/s");
}

// ---- a matrix of 17 GB on the CPU ----

// SOFTMAX_REPORTS_RAM_GB says how much memory may be taken: 18 for the entry, 9 for its smaller
// variant. Without it nothing is run.
void run_large_on_cpu(Device *device, const Entry &entry, Verdict *verdict) {
  const char *allowed = std::getenv("SOFTMAX_REPORTS_RAM_GB");
  const double gigabytes = allowed != nullptr ? std::atof(allowed) : 0;
  if (gigabytes < 9) {
    throw Unavailable(
        "takes 8.6 GB at least: set SOFTMAX_REPORTS_RAM_GB to 18, or to 9 for the "
        "smaller variant");
  }
  const bool whole = gigabytes >= entry.need_of("ram_gb");
  const std::int64_t rows = whole ? entry.shape.at(0) : (std::int64_t{1} << 29) + 1;
  const std::int64_t columns = whole ? entry.shape.at(1) : 4;
  if (!whole) verdict->note("the smaller variant, M = 2^29 + 1, N = 4");

  // x = (k%11)*0.1, so eleven rows hold all there are.
  const Input period = make_input(entry.gen, SOFTMAX_DTYPE_F32, 11, columns);
  const std::vector<unsigned char> pattern = encode_all(period);
  const std::size_t count = static_cast<std::size_t>(rows * columns);
  const std::size_t canary = 1024;
  std::vector<float> x(count + canary, -7.0f);
  for (std::size_t k = 0; k < count; ++k) std::memcpy(&x[k], &pattern[k % 11 * 4], 4);
  const Call call{SOFTMAX_ALGO_AUTO, false, x.data(), SOFTMAX_DTYPE_F32, x.data(),
                  SOFTMAX_DTYPE_F32, rows,  columns};
  verdict->expect_status(make_call(call, *device), SOFTMAX_SUCCESS, "the call");
  for (std::size_t n = 0; n < canary; ++n) {
    verdict->expect(x[count + n] == -7.0f, "the canary after the end is unchanged");
  }
  std::vector<float> period_rows(static_cast<std::size_t>(11 * columns));
  Call small = call;
  std::memcpy(period_rows.data(), pattern.data(), pattern.size());
  small.x = small.y = period_rows.data();
  small.rows = 11;
  verdict->expect_status(make_call(small, *device), SOFTMAX_SUCCESS, "the call on eleven rows");
  Case c = case_of(entry, SOFTMAX_DTYPE_F32, 11, columns);
  const Expected expected = expected_of(c, false);
  check_output(c, false, expected, reinterpret_cast<unsigned char *>(period_rows.data()), verdict);
  // Bits depend on the row's values alone, so every row has its equal among the eleven.
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    wrong += std::memcmp(&x[static_cast<std::size_t>(i * columns)],
                         &period_rows[static_cast<std::size_t>(i % 11 * columns)],
                         static_cast<std::size_t>(columns) * 4) != 0;
  }
  verdict->expect(wrong == 0, std::to_string(wrong) + " rows are wrong");
}

// ---- one library with both backends ----

void run_both_backends(Device *device, const Entry &, Verdict *verdict) {
  const std::unique_ptr<Device> cpu = make_cpu_device();
  const Input input = formula_input("u(k)*8-4", SOFTMAX_DTYPE_F32, 7, 300);
  Case c;
  c.label = "beside each other";
  c.input = input;
  c.y_dtype = SOFTMAX_DTYPE_F32;
  c.op = "softmax";
  run_case(device, c, verdict);
  run_case(cpu.get(), c, verdict);
  run_case(device, c, verdict);
}

}  // namespace

int run_self(const std::string &arguments) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const int status = std::system(("'" + self + "' " + arguments).c_str());
  return status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool run_as_part(int argc, char **argv, int *exit_status) {
  if (argc != 3 || std::strcmp(argv[1], kStaticHandle) != 0) return false;
  *exit_status = static_handle_part(std::atoi(argv[2]));
  return true;
}

const std::vector<Special> kProcessSpecials = {
    {"opencv/opencv#7816", run_static_handle, Where::kBoth, false, {"exit"}},
    {"pytorch/pytorch#34728", run_one_thread_speed, Where::kCpu, true, {"gbps_min"}},
    {"apache/mxnet#17634",
     run_large_on_cpu,
     Where::kCpu,
     false,
     {"check_rows", "canary_after_end"}},
    {"gpufit/Gpufit#36", run_both_backends, Where::kCuda, false, {"clash"}},
};

}  // namespace reports
