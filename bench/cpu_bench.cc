// The CPU backend beside memcpy: how many bytes softmax moves in the time in which memcpy, on as
// many threads and in the same round, moves as many.
//
//     softmax_cpu_bench [--dtype f32|f16|bf16|f64|f16_f32|bf16_f32] [--algo NAME] [--log]
//                       [--elements-log2 26] [--rounds 11] [N ...]
//
// A round copies the input over the output (that is the memcpy which is timed, and it renews the
// input of the call in place), then calls softmax in place, then out of place. What is reported
// is the median over rounds of the ratio within a round, so that other processes disturb both.
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "softmax.h"

namespace {

struct Types {
  const char *name;
  softmax_dtype_t x;
  softmax_dtype_t y;
};

constexpr Types kTypes[] = {
    {"f32", SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F32},
    {"f16", SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_F16},
    {"bf16", SOFTMAX_DTYPE_BF16, SOFTMAX_DTYPE_BF16},
    {"f64", SOFTMAX_DTYPE_F64, SOFTMAX_DTYPE_F64},
    {"f16_f32", SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_F32},
    {"bf16_f32", SOFTMAX_DTYPE_BF16, SOFTMAX_DTYPE_F32},
};

int bytes_of(softmax_dtype_t dtype) {
  return dtype == SOFTMAX_DTYPE_F64 ? 8 : dtype == SOFTMAX_DTYPE_F32 ? 4 : 2;
}

struct Options {
  Types types = kTypes[0];
  softmax_algo_t algo = SOFTMAX_ALGO_AUTO;
  bool is_log = false;
  int elements_log2 = 26;
  int rounds = 11;
  std::vector<std::int64_t> cols;
};

[[noreturn]] void usage(const char *what) {
  std::fprintf(stderr, "softmax_cpu_bench: %s\n", what);
  std::exit(2);
}

std::int64_t number(const char *text, std::int64_t low, std::int64_t high) {
  char *end = nullptr;
  const long long value = std::strtoll(text, &end, 10);
  if (end == text || *end != '\0' || value < low || value > high) {
    usage((std::string("not a number in range: ") + text).c_str());
  }
  return value;
}

Options parse(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto value = [&]() -> const char * {
      if (++i == argc) usage((arg + " needs a value").c_str());
      return argv[i];
    };
    if (arg == "--log") {
      options.is_log = true;
    } else if (arg == "--dtype") {
      const std::string name = value();
      const auto *found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                       [&](const Types &t) { return name == t.name; });
      if (found == std::end(kTypes)) usage(("no such dtype: " + name).c_str());
      options.types = *found;
    } else if (arg == "--algo") {
      const char *name = value();
      if (softmax_algo_from_name(name, &options.algo) != SOFTMAX_SUCCESS) {
        usage((std::string("no such algorithm: ") + name).c_str());
      }
    } else if (arg == "--elements-log2") {
      options.elements_log2 = static_cast<int>(number(value(), 4, 32));
    } else if (arg == "--rounds") {
      options.rounds = static_cast<int>(number(value(), 1, 1000));
    } else if (!arg.empty() && arg[0] == '-') {
      usage(("no such option: " + arg).c_str());
    } else {
      options.cols.push_back(number(argv[i], 1, std::int64_t{1} << 32));
    }
  }
  if (options.cols.empty()) {
    options.cols = {8,    16,   32,    64,    100,   128,   256,    512,    1000,    1024,
                    4096, 8192, 16384, 32768, 50257, 65536, 128256, 262144, 1 << 20, 1 << 24};
  }
  return options;
}

double seconds_of(const std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Logits of a standard deviation of 3, as bits of the type.
void fill(std::vector<unsigned char> &bytes, softmax_dtype_t dtype) {
  constexpr std::size_t kPeriod = 1 << 16;  // elements; longer than any branch history
  std::mt19937 engine(1);
  std::normal_distribution<float> normal(0.0f, 3.0f);
  const std::size_t size = static_cast<std::size_t>(bytes_of(dtype));
  const std::size_t count = bytes.size() / size;
  for (std::size_t i = 0; i < std::min(kPeriod, count); ++i) {
    const float value = normal(engine);
    unsigned char *at = bytes.data() + i * size;
    std::uint32_t bits;
    std::memcpy(&bits, &value, 4);
    if (dtype == SOFTMAX_DTYPE_F32) {
      std::memcpy(at, &bits, 4);
    } else if (dtype == SOFTMAX_DTYPE_F64) {
      const double wide = value;
      std::memcpy(at, &wide, 8);
    } else {
      // Truncated: which logits exactly does not matter here.
      const std::uint16_t half =
          dtype == SOFTMAX_DTYPE_BF16
              ? static_cast<std::uint16_t>(bits >> 16)
              : static_cast<std::uint16_t>(((bits >> 16) & 0x8000u) |
                                           (std::fabs(value) < 0x1p-14f
                                                ? 0u
                                                : ((bits & 0x7fffffffu) - (112u << 23)) >> 13));
      std::memcpy(at, &half, 2);
    }
  }
  for (std::size_t done = kPeriod * size; done < bytes.size(); done += kPeriod * size) {
    std::memcpy(bytes.data() + done, bytes.data(), std::min(kPeriod * size, bytes.size() - done));
  }
}

double time_copy(void *to, const void *from, std::size_t bytes) {
  const auto start = std::chrono::steady_clock::now();
#pragma omp parallel
  {
    const std::size_t threads = static_cast<std::size_t>(omp_get_num_threads());
    const std::size_t self = static_cast<std::size_t>(omp_get_thread_num());
    const std::size_t begin = bytes / threads * self;
    const std::size_t end = self + 1 == threads ? bytes : bytes / threads * (self + 1);
    std::memcpy(static_cast<char *>(to) + begin, static_cast<const char *>(from) + begin,
                end - begin);
  }
  return seconds_of(start);
}

double time_call(softmax_handle_t handle, const Options &options, const void *x, void *y,
                 std::int64_t rows, std::int64_t cols) {
  const auto call = options.is_log ? logsoftmax_forward_to : softmax_forward_to;
  const auto start = std::chrono::steady_clock::now();
  const softmax_status_t status =
      call(handle, options.algo, x, options.types.x, y, options.types.y, rows, cols, nullptr);
  const double seconds = seconds_of(start);
  if (status != SOFTMAX_SUCCESS) {
    char why[256];
    softmax_last_error(why, sizeof why);
    std::fprintf(stderr, "softmax_cpu_bench: %s\n", why);
    std::exit(1);
  }
  return seconds;
}

}  // namespace

int main(int argc, char **argv) {
  const Options options = parse(argc, argv);
  const std::int64_t elements = std::int64_t{1} << options.elements_log2;
  const int x_bytes = bytes_of(options.types.x);
  const int y_bytes = bytes_of(options.types.y);
  const bool can_be_in_place = x_bytes == y_bytes;
  std::vector<unsigned char> x(static_cast<std::size_t>(elements * x_bytes));
  std::vector<unsigned char> y(static_cast<std::size_t>(elements * y_bytes));
  std::vector<unsigned char> copy(x.size());
  fill(x, options.types.x);

  softmax_handle_t handle;
  if (softmax_create(&handle, SOFTMAX_DEVICE_CPU) != SOFTMAX_SUCCESS) return 1;
  std::printf("%s, %ssoftmax %s, algorithm %s, M*N = 2^%d, %d threads, medians of %d rounds\n",
              softmax_build_info(), options.is_log ? "log-" : "", options.types.name,
              softmax_algo_name(options.algo), options.elements_log2, omp_get_max_threads(),
              options.rounds);
  std::printf("%10s %12s | %11s %9s | %11s %9s\n", "N", "memcpy GB/s", "in place", "of memcpy",
              "out", "of memcpy");
  for (const std::int64_t cols : options.cols) {
    const std::int64_t rows = elements / cols;
    if (rows == 0) continue;
    const double copy_bytes = 2.0 * static_cast<double>(x.size());
    const double used = static_cast<double>(rows * cols);
    std::vector<double> copy_rate, in_rate, in_ratio, out_rate, out_ratio;
    for (int round = -1; round < options.rounds; ++round) {  // round -1 warms up
      const double t_copy = time_copy(copy.data(), x.data(), x.size());
      const double t_in =
          can_be_in_place ? time_call(handle, options, copy.data(), copy.data(), rows, cols) : 1.0;
      const double t_out = time_call(handle, options, x.data(), y.data(), rows, cols);
      if (round < 0) continue;
      copy_rate.push_back(copy_bytes / t_copy / 1e9);
      in_rate.push_back(used * 2 * x_bytes / t_in / 1e9);
      in_ratio.push_back(in_rate.back() / copy_rate.back());
      out_rate.push_back(used * (x_bytes + y_bytes) / t_out / 1e9);
      out_ratio.push_back(out_rate.back() / copy_rate.back());
    }
    std::printf("%10lld %12.1f | ", static_cast<long long>(cols), median(copy_rate));
    if (can_be_in_place) {
      std::printf("%11.1f %9.2f | ", median(in_rate), median(in_ratio));
    } else {
      std::printf("%11s %9s | ", "-", "-");
    }
    std::printf("%11.1f %9.2f\n", median(out_rate), median(out_ratio));
    std::fflush(stdout);
  }
  softmax_destroy(handle);
  return 0;
}
