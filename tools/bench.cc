// softmax bench: every algorithm over a list of shapes, beside a copy of the same bytes.
#include <memory>
#include <vector>

#include "check.h"
#include "commands.h"
#include "error.h"
#include "files.h"
#include "stopwatch.h"
#include "table.h"
#include "text.h"

namespace tool {
namespace {

constexpr char kCpuShapes[] = "65536x128,8192x1000,2048x4096,512x32768,64x131072";
constexpr char kCudaShapes[] = "1048576x128,65536x1000,16384x4096,8192x8192,2048x32768,512x131072";

struct BenchOptions {
  std::string dtype = "f32", device = "auto", json;
  std::vector<std::string> shapes, algos;
  bool is_log = false;
  double min_seconds = 0.2;
};

struct Shape {
  std::int64_t rows, cols;
};

struct Measurement {
  Shape shape;
  std::string algo;
  double seconds, copy_seconds;
  std::int64_t bytes;  // one read and one write of the matrix
  std::string copy_method;
  CheckResult check;

  double gb_per_second() const { return static_cast<double>(bytes) * 1e-9 / seconds; }
  double copy_gb_per_second() const { return static_cast<double>(bytes) * 1e-9 / copy_seconds; }
  double share_of_copy() const { return copy_seconds / seconds; }
};

Shape shape_from_text(const std::string &text, const Dtype &dtype) {
  const std::size_t x = text.find('x');
  const auto extent = [&](const std::string &digits) -> std::int64_t {
    const bool is_number = !digits.empty() && digits.size() <= 15 &&
                           digits.find_first_not_of("0123456789") == std::string::npos;
    const std::int64_t value = is_number ? std::stoll(digits) : 0;
    if (value == 0) fail_input("'{}' is no shape: write rows x columns as 4096x1000", text);
    return value;
  };
  const Shape shape{extent(text.substr(0, x)),
                    extent(x == std::string::npos ? "" : text.substr(x + 1))};
  std::int64_t bytes;
  if (__builtin_mul_overflow(shape.rows, shape.cols, &bytes) ||
      __builtin_mul_overflow(bytes, 2 * dtype.bytes, &bytes)) {
    fail_input("shape {} does not fit 64 bits", text);
  }
  return shape;
}

std::vector<std::string> split(const std::string &text) { return CLI::detail::split(text, ','); }

// The algorithms by name, or all that the device takes for the type.
std::vector<softmax_algo_t> algos_to_run(const BenchOptions &options, const Device &device,
                                         const Dtype &dtype) {
  std::vector<softmax_algo_t> algos;
  for (const std::string &name : options.algos) algos.push_back(algo_from_name(name));
  if (!algos.empty()) return algos;
  softmax_desc_t desc;
  check(softmax_desc_init(&desc, sizeof desc, SOFTMAX_OP_SOFTMAX, dtype.id, 1, 1));
  for (softmax_algo_t algo = SOFTMAX_ALGO_AUTO; algo <= SOFTMAX_ALGO_REFERENCE; ++algo) {
    if (softmax_algo_name(algo) == nullptr) continue;
    softmax_choice_t choice{};
    choice.struct_size = sizeof choice;
    const softmax_status_t status = softmax_select(device.handle(), algo, &desc, &choice);
    if (status == SOFTMAX_SUCCESS) algos.push_back(algo);
    if (status != SOFTMAX_STATUS_NOT_SUPPORTED_ALGO) check(status);
  }
  return algos;
}

std::vector<Measurement> measure_shape(const BenchOptions &options, const Device &device,
                                       const Dtype &dtype, const Shape &shape,
                                       const std::vector<softmax_algo_t> &algos) {
  const auto watch = make_stopwatch(device, dtype, shape.rows, shape.cols, options.min_seconds);
  const double copy_seconds = watch->time_copy();
  std::vector<Measurement> measurements;
  for (const softmax_algo_t algo : algos) {
    const Operation operation{algo, options.is_log, &dtype, &dtype};
    const char *name = softmax_algo_name(algo);
    watch->run_once(operation);
    Measurement m;
    m.check = check_rows(watch->host_x(), watch->host_y(), dtype, shape.rows, shape.cols,
                         options.is_log, name);
    m.shape = shape;
    m.algo = name;
    m.seconds = watch->time_softmax(operation);
    m.copy_seconds = copy_seconds;
    m.bytes = 2 * shape.rows * shape.cols * dtype.bytes;
    m.copy_method = watch->copy_method();
    measurements.push_back(m);
  }
  return measurements;
}

std::string json_text(const std::string &text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string as_json(const BenchOptions &options, const Device &device, const Dtype &dtype,
                    const std::vector<Measurement> &measurements) {
  std::string out = "{\n";
  out += fmt::format("  \"library\": {},\n", json_text(softmax_build_info()));
  out += fmt::format("  \"device\": {},\n", json_text(device.description()));
  out += fmt::format("  \"op\": \"{}\",\n", options.is_log ? "logsoftmax" : "softmax");
  out += fmt::format("  \"dtype\": \"{}\",\n", dtype.name);
  out += "  \"bytes_counted\": \"one read and one write of the matrix\",\n  \"results\": [";
  const char *separator = "\n";
  for (const Measurement &m : measurements) {
    out += fmt::format(
        "{}    {{\"M\": {}, \"N\": {}, \"algo\": \"{}\", \"seconds_median\": {:.6g}, "
        "\"gb_per_s\": {:.6g}, \"copy_gb_per_s\": {:.6g}, \"share_of_copy\": {:.4f}, "
        "\"copy_method\": {}, \"max_ulp\": {:.4g}, \"rows_checked\": {}}}",
        separator, m.shape.rows, m.shape.cols, m.algo, m.seconds, m.gb_per_second(),
        m.copy_gb_per_second(), m.share_of_copy(), json_text(m.copy_method), m.check.max_ulp,
        m.check.rows_checked);
    separator = ",\n";
  }
  return out + "\n  ]\n}\n";
}

std::string as_table(const BenchOptions &options, const Device &device, const Dtype &dtype,
                     const std::vector<Measurement> &measurements) {
  std::vector<std::vector<std::string>> lines{
      {"M", "N", "algorithm", "median us", "GB/s", "of copy", "copy GB/s", "max ULP", "copied by"}};
  for (const Measurement &m : measurements) {
    lines.push_back({fmt::format("{}", m.shape.rows), fmt::format("{}", m.shape.cols), m.algo,
                     fmt::format("{:.1f}", m.seconds * 1e6),
                     fmt::format("{:.2f}", m.gb_per_second()),
                     fmt::format("{:.1f}%", 100 * m.share_of_copy()),
                     fmt::format("{:.2f}", m.copy_gb_per_second()),
                     fmt::format("{:.3f}", m.check.max_ulp), m.copy_method});
  }
  return fmt::format("{}, {}, on {}\n", options.is_log ? "log-softmax" : "softmax", dtype.name,
                     device.description()) +
         lay_out(lines, {true, true, false, true, true, true, true, true, false});
}

void bench(const BenchOptions &options) {
  const Dtype &dtype = dtype_from_name(options.dtype);
  const std::int32_t device_number = device_from_name(options.device);
  const Device device(device_number);
  const std::vector<std::string> shape_texts =
      options.shapes.empty() ? split(device.is_cuda() ? kCudaShapes : kCpuShapes) : options.shapes;
  std::vector<Shape> shapes;
  for (const std::string &text : shape_texts) shapes.push_back(shape_from_text(text, dtype));
  const std::vector<softmax_algo_t> algos = algos_to_run(options, device, dtype);
  for (const softmax_algo_t algo : algos) {  // all of them, before the first is timed
    enqueue_softmax(device, {algo, options.is_log, &dtype, &dtype}, nullptr, nullptr, 0, 1,
                    nullptr);
  }
  std::unique_ptr<OutputFile> file;
  if (!options.json.empty() && options.json != "-") {
    file = std::make_unique<OutputFile>(options.json, 0);
  }
  std::vector<Measurement> measurements;
  for (const Shape &shape : shapes) {
    for (Measurement &m : measure_shape(options, device, dtype, shape, algos)) {
      measurements.push_back(std::move(m));
    }
  }
  const std::string json = as_json(options, device, dtype, measurements);
  if (file) {
    file->write(json.data(), static_cast<std::int64_t>(json.size()), 0);
    file->commit();
  }
  print_out(options.json == "-" ? json : as_table(options, device, dtype, measurements));
}

constexpr char kFooter[] =
    R"(Every result is checked against a reference in extended precision before it is timed; max ULP is the
largest error found, in units in the last place. GB/s counts one read and one write of the matrix,
however often an algorithm reads it, so it says how fast the job is done. Copy is the same bytes,
copied in the same run: on the CPU by memcpy, plain or on all threads, whichever is faster; on a GPU
by cudaMemcpyAsync. Times are medians; on a GPU they come from events around a graph of launches that
go round over buffers larger than the L2 cache. auto comes first and is one of the others.

Examples:
  softmax bench
  softmax bench --shapes 4096x1000,64x131072 --dtype bf16 --algo vector,online
  softmax bench --device cpu --json results.json)";

}  // namespace

void add_bench(CLI::App &app) {
  CLI::App *command = app.add_subcommand(
      "bench", "How fast each algorithm is over a list of shapes, beside a copy of the same bytes");
  const auto options = std::make_shared<BenchOptions>();
  command->add_option("--shapes", options->shapes, "list of shapes, rows x columns: 4096x1000,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("MxN");
  command->add_option("--dtype", options->dtype, "f32, f16, bf16 or f64 (f32)")->type_name("TYPE");
  command->add_option("--device", options->device, "auto, cpu or cuda:K")->type_name("DEVICE");
  command->add_option("--algo", options->algos, "list of algorithms (all that the device takes)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME");
  command->add_flag("--log", options->is_log, "log-softmax instead of softmax");
  command
      ->add_option("--json", options->json, "write the results as JSON to this file; -: print it")
      ->type_name("FILE");
  command->add_option("--seconds", options->min_seconds, "how long each measurement takes (0.2)")
      ->type_name("S")
      ->check(CLI::Range(0.0, 60.0));
  command->footer(kFooter);
  command->callback([options] { bench(*options); });
}

}  // namespace tool
