// Where results go. See output.h.
#include "output.h"

#include <cmath>
#include <cstring>
#include <ctime>
#include <stdexcept>

namespace bench {
namespace {

double gigabytes_per_second(const Shape &shape, double us) {
  return 2.0 * static_cast<double>(shape.bytes()) / (1000.0 * us);
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// The kernel module's version, which is the driver's; empty where the system does not show it.
std::string driver_version() {
  char text[64] = {};
  if (std::FILE *file = std::fopen("/sys/module/nvidia/version", "r")) {
    if (std::fgets(text, sizeof text, file) == nullptr) text[0] = '\0';
    std::fclose(file);
  }
  text[std::strcspn(text, "\n")] = '\0';
  return text;
}

std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

JsonLine shape_line(const char *section, const Shape &shape, softmax_algo_t algo) {
  JsonLine line;
  line.field("record", "cell")
      .field("section", section)
      .field("dtype", dtype_text(shape.dtype))
      .field("M", shape.rows)
      .field("N", shape.cols)
      .field("mode", shape.mode == Mode::kCold ? "cold" : "hot")
      .field("algo", softmax_algo_name(algo));
  return line;
}

}  // namespace

const char *dtype_text(softmax_dtype_t dtype) {
  switch (dtype) {
    case SOFTMAX_DTYPE_F32: return "f32";
    case SOFTMAX_DTYPE_F64: return "f64";
    default: return "bf16";
  }
}

std::string library_source_id() {
  const std::string info = softmax_build_info();
  const std::string label = "source ";
  const std::size_t begin = info.find(label);
  if (begin == std::string::npos) return "unknown";
  const std::size_t first = begin + label.size();
  return info.substr(first, info.find(',', first) - first);
}

void JsonLine::name(const char *name) {
  if (!body_.empty()) body_ += ", ";
  body_ += std::string("\"") + name + "\": ";
}

JsonLine &JsonLine::field(const char *name, const std::string &value) {
  this->name(name);
  body_ += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') body_ += '\\';
    // No text that is written here has control characters; one that did must not break the line.
    body_ += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  body_ += '"';
  return *this;
}

JsonLine &JsonLine::field(const char *name, double value) {
  if (!std::isfinite(value)) return missing(name);  // JSON has no infinity
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  this->name(name);
  body_ += text;
  return *this;
}

JsonLine &JsonLine::field(const char *name, std::int64_t value) {
  this->name(name);
  body_ += std::to_string(value);
  return *this;
}

JsonLine &JsonLine::missing(const char *name) {
  this->name(name);
  body_ += "null";
  return *this;
}

JsonFile::JsonFile(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  file_ = std::fopen((path_ + ".part").c_str(), "w");
  if (file_ == nullptr) throw std::runtime_error("cannot write " + path_ + ".part");
}

JsonFile::~JsonFile() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  std::remove((path_ + ".part").c_str());
}

void JsonFile::write(const JsonLine &line) {
  if (file_ != nullptr) std::fprintf(file_, "%s\n", line.text().c_str());
}

void JsonFile::finish() {
  if (file_ == nullptr) return;
  const bool failed = std::ferror(file_) != 0;
  const bool unclosed = std::fclose(file_) != 0;
  file_ = nullptr;
  const std::string part = path_ + ".part";
  if (failed || unclosed || std::rename(part.c_str(), path_.c_str()) != 0) {
    std::remove(part.c_str());
    throw std::runtime_error("writing " + path_ + " failed");
  }
}

JsonLine run_line(const cudaDeviceProp &properties, const char *kind) {
  int cuda_driver = 0;
  int cuda_runtime = 0;
  cudaDriverGetVersion(&cuda_driver);
  cudaRuntimeGetVersion(&cuda_runtime);
  JsonLine line;
  line.field("record", kind)
      .field("card", properties.name)
      .field("compute_capability",
             std::to_string(properties.major) + "." + std::to_string(properties.minor))
      .field("multiprocessors", static_cast<std::int64_t>(properties.multiProcessorCount))
      .field("threads_per_multiprocessor",
             static_cast<std::int64_t>(properties.maxThreadsPerMultiProcessor))
      .field("registers_per_multiprocessor",
             static_cast<std::int64_t>(properties.regsPerMultiprocessor))
      .field("l2_bytes", static_cast<std::int64_t>(properties.l2CacheSize))
      .field("driver", driver_version())
      .field("cuda_driver", cuda_version_text(cuda_driver))
      .field("cuda_runtime", cuda_version_text(cuda_runtime))
      .field("date", utc_now())
      .field("source_id", library_source_id())
      .field("build_info", softmax_build_info());
  return line;
}

JsonLine cell_line(const char *section, const Shape &shape, softmax_algo_t algo,
                   const CopyTiming &copy, const AlgoTiming &result) {
  const softmax_choice_t &choice = result.choice;
  JsonLine line = shape_line(section, shape, algo);
  line.field("status", result.wrong ? "wrong" : "ok").field("kernel", choice.kernel);
  line.field("threads", static_cast<std::int64_t>(choice.threads))
      .field("rows_per_block", static_cast<std::int64_t>(choice.rows_per_block))
      .field("vec_bytes", static_cast<std::int64_t>(choice.vec_bytes));
  if (choice.rows_per_block > 0) {
    line.field("blocks", (shape.rows + choice.rows_per_block - 1) / choice.rows_per_block);
  }
  line.field("max_ulp", result.max_ulp);
  if (result.wrong) {
    line.field("nan_count", static_cast<std::int64_t>(result.nan_count));
    return line;
  }
  line.field("us", result.timing.us)
      .field("min_us", result.timing.min_us)
      .field("memcpy_us", copy.memcpy.us)
      .field("copy_kernel_us", copy.kernel.us)
      .field("copy_us", copy.us())
      .field("ratio", copy.us() / result.timing.us)
      .field("GBps", gigabytes_per_second(shape, result.timing.us))
      .field("calls", static_cast<std::int64_t>(result.timing.calls))
      .field("replays", static_cast<std::int64_t>(result.timing.replays));
  return line;
}

JsonLine left_out_line(const char *section, const Shape &shape, softmax_algo_t algo,
                       const char *status, const std::string &why) {
  JsonLine line = shape_line(section, shape, algo);
  line.field("status", status).field("why", why);
  return line;
}

void print_header(const char *title, const std::vector<softmax_algo_t> &algos, bool ratios) {
  std::printf("\n%s\n%5s %9s %9s %12s", title, "type", "M", "N", ratios ? "copy GB/s" : "copy us");
  for (const softmax_algo_t algo : algos) std::printf(" %11s", softmax_algo_name(algo));
  std::printf("\n");
}

void print_shape(const Shape &shape, const CopyTiming &copy, bool ratios) {
  std::printf("%5s %9lld %9lld %12.*f", dtype_text(shape.dtype), static_cast<long long>(shape.rows),
              static_cast<long long>(shape.cols), ratios ? 0 : 2,
              ratios ? gigabytes_per_second(shape, copy.us()) : copy.us());
}

void print_cell(const CopyTiming &copy, const AlgoTiming &result, bool ratios) {
  if (result.wrong) {
    std::printf(" %11s", "WRONG");
  } else if (ratios) {
    std::printf(" %11.3f", copy.us() / result.timing.us);
  } else {
    std::printf(" %11.2f", result.timing.us);
  }
}

void print_left_out() { std::printf(" %11s", "-"); }

void end_line() {
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace bench
