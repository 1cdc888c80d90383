// Times the ladder, algorithms 1 to 6 and AUTO, beside a copy of the same bytes.
//
//   ladder                    the whole run, about a minute and a half on an H200
//   ladder --json FILE        also writes every cell as a line of JSON
//   ladder --profile          one launch a cell between cudaProfilerStart and -Stop, for ncu
//
// Protocol: outputs are first poisoned, computed, and held against float64; a wrong cell is not
// timed. Then several calls go into one CUDA graph, and the median of its replays counts. "cold"
// rotates pairs of buffers (x_i -> y_i) that together exceed three L2s; "hot" uses one pair. The
// copy is the better of cudaMemcpyAsync and a kernel of 16-byte streaming loads and stores, in the
// same cell. A ratio is copy time over softmax time; GB/s count one read and one write.
#include <cuda_profiler_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "output.h"
#include "runner.h"

namespace bench {
namespace {

struct Options {
  bool quick = false;
  bool profile = false;
  bool info = false;
  bool help = false;
  int device = 0;
  std::string json;
};

constexpr char kUsage[] =
    "usage: ladder [--quick] [--json FILE] [--device K] [--profile] [--info]\n"
    "  --quick      fewer shapes and shorter timing\n"
    "  --json FILE  write one line of JSON a cell, after one that says what was measured\n"
    "  --device K   CUDA ordinal, 0 unless given\n"
    "  --profile    launch each cell of the profiling plan once, for Nsight Compute\n"
    "  --info       print the library's build line and end\n";

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Options parse(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto value = [&] {
      if (i + 1 == argc) throw UsageError(argument + " needs a value");
      return std::string(argv[++i]);
    };
    if (argument == "--quick") {
      options.quick = true;
    } else if (argument == "--profile") {
      options.profile = true;
    } else if (argument == "--info") {
      options.info = true;
    } else if (argument == "--help" || argument == "-h") {
      options.help = true;
    } else if (argument == "--json") {
      options.json = value();
    } else if (argument == "--device") {
      const std::string text = value();
      char *end = nullptr;
      const long device = std::strtol(text.c_str(), &end, 10);
      if (end == text.c_str() || *end != '\0' || device < 0 || device > 1023) {
        throw UsageError("--device takes a CUDA ordinal, not " + text);
      }
      options.device = static_cast<int>(device);
    } else {
      throw UsageError("unknown option " + argument);
    }
  }
  return options;
}

constexpr std::int64_t kSweepElements = std::int64_t{1} << 27;
constexpr std::int64_t kPoolBytes = kSweepElements * 4;

const std::vector<softmax_algo_t> kAlgos = {
    SOFTMAX_ALGO_AUTO,   SOFTMAX_ALGO_NAIVE,  SOFTMAX_ALGO_SHARED,     SOFTMAX_ALGO_SHUFFLE,
    SOFTMAX_ALGO_VECTOR, SOFTMAX_ALGO_ONLINE, SOFTMAX_ALGO_WARP_ONLINE};

// A cell that is expected to take longer than this is left out: one thread a row has nothing to
// hide its latency with when rows are few and long.
constexpr double kTooSlowUs = 400e3;

class Ladder {
 public:
  Ladder(Runner &runner, JsonFile &json, const TimingBox &box)
      : runner_(runner), json_(json), box_(box) {}

  // Shapes of one section, in rising order of N for each M and type.
  void section(const char *name, const char *title, const std::vector<Shape> &shapes, bool ratios) {
    print_header(title, kAlgos, ratios);
    last_us_.clear();
    for (const Shape &shape : shapes) {
      runner_.prepare(shape);
      const CopyTiming copy = runner_.time_copy(box_);
      print_shape(shape, copy, ratios);
      for (const softmax_algo_t algo : kAlgos) cell(name, shape, algo, copy, ratios);
      end_line();
    }
  }

  int wrong_cells() const { return wrong_cells_; }

 private:
  struct Last {
    std::int64_t cols;
    double us;
  };

  void cell(const char *section, const Shape &shape, softmax_algo_t algo, const CopyTiming &copy,
            bool ratios) {
    // In the same section at the same type: the time grows at most as N does.
    const auto last = last_us_.find({shape.dtype, algo});
    if (last != last_us_.end()) {
      const double predicted_us = last->second.us * static_cast<double>(shape.cols) /
                                  static_cast<double>(last->second.cols);
      if (predicted_us > kTooSlowUs) {
        char why[96];
        std::snprintf(why, sizeof why, "predicted to take %.0f ms a call", predicted_us / 1000.0);
        json_.write(skipped_line(section, shape, algo, why));
        print_skipped();
        return;
      }
    }
    const AlgoTiming result = runner_.run(algo, box_);
    json_.write(cell_line(section, shape, algo, copy, result));
    print_cell(copy, result, ratios);
    if (result.wrong) {
      ++wrong_cells_;
      std::fprintf(stderr, "\nladder: %s %s at %lld x %lld is wrong: %.3g ulp, %llu NaN\n",
                   softmax_algo_name(algo), dtype_text(shape.dtype),
                   static_cast<long long>(shape.rows), static_cast<long long>(shape.cols),
                   result.max_ulp, static_cast<unsigned long long>(result.nan_count));
      return;
    }
    last_us_[{shape.dtype, algo}] = {shape.cols, result.timing.us};
  }

  Runner &runner_;
  JsonFile &json_;
  TimingBox box_;
  std::map<std::pair<softmax_dtype_t, softmax_algo_t>, Last> last_us_;
  int wrong_cells_ = 0;
};

std::vector<Shape> published_shapes() {
  return {{SOFTMAX_DTYPE_F32, 8192, 8192, Mode::kCold},
          {SOFTMAX_DTYPE_F32, 16384, 8192, Mode::kCold}};
}

std::vector<Shape> sweep_shapes(bool quick) {
  std::vector<std::int64_t> all_cols = {8,    32,   64,    100,   128,   256,   512,    1000,  1024,
                                        4096, 8192, 16384, 32768, 50257, 65536, 128256, 262144};
  if (quick) all_cols = {32, 1000, 8192, 50257};
  std::vector<Shape> shapes;
  for (const softmax_dtype_t dtype : {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_BF16}) {
    for (const std::int64_t cols : all_cols) {
      shapes.push_back({dtype, kSweepElements / cols, cols, Mode::kCold});
    }
  }
  return shapes;
}

std::vector<Shape> hot_shapes(std::int64_t rows, bool quick) {
  std::vector<std::int64_t> all_cols = {128,   1024,   4096,   32000,
                                        50257, 128256, 262144, std::int64_t{1} << 20};
  if (quick) all_cols = {1024, 50257};
  std::vector<Shape> shapes;
  for (const softmax_dtype_t dtype : {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_BF16}) {
    for (const std::int64_t cols : all_cols) {
      if (rows * cols * element_bytes(dtype) <= 2 * kPoolBytes)
        shapes.push_back({dtype, rows, cols, Mode::kHot});
    }
  }
  return shapes;
}

int run_benchmark(const Options &options) {
  Runner runner(options.device, kPoolBytes);
  JsonFile json(options.json);
  json.write(run_line(runner.properties(), "run"));
  std::printf("%s\n%s, %d multiprocessors, %d MiB of L2\n", softmax_build_info(),
              runner.properties().name, runner.properties().multiProcessorCount,
              runner.properties().l2CacheSize >> 20);
  TimingBox box;
  if (options.quick) box.cell_ms = 15.0;
  Ladder ladder(runner, json, box);
  ladder.section("published", "The published figure's shape, and twice its rows (share of copy)",
                 published_shapes(), true);
  ladder.section("sweep", "2^27 elements, cold (share of copy)", sweep_shapes(options.quick), true);
  for (const std::int64_t rows : {1, 16, 256}) {
    if (options.quick && rows == 256) continue;
    ladder.section("hot", ("M = " + std::to_string(rows) + ", hot (microseconds)").c_str(),
                   hot_shapes(rows, options.quick), false);
  }
  json.finish();
  if (ladder.wrong_cells() > 0) {
    std::fprintf(stderr, "ladder: %d cells are wrong\n", ladder.wrong_cells());
    return 1;
  }
  return 0;
}

// The plan for the profiler: the published shape with every algorithm, then rows of growing length
// at a constant number of elements, so that the rows in flight outgrow L2 on the way.
struct ProfiledShape {
  std::int64_t rows;
  std::int64_t cols;
  bool with_naive;
};

std::vector<ProfiledShape> profiled_shapes(bool quick) {
  if (quick) return {{8192, 8192, true}};
  return {{8192, 8192, true},
          {kSweepElements / 1024, 1024, false},
          {kSweepElements / 8192, 8192, true},
          {kSweepElements / 16384, 16384, false},
          {kSweepElements / 32768, 32768, false},
          {kSweepElements / 131072, 131072, false},
          {kSweepElements >> 20, std::int64_t{1} << 20, false}};
}

int run_profile(const Options &options) {
  Runner runner(options.device, kPoolBytes / 2);  // pairs are not rotated: one is enough
  JsonFile json(options.json);
  json.write(run_line(runner.properties(), "profile"));
  for (const ProfiledShape &profiled : profiled_shapes(options.quick)) {
    const Shape shape = {SOFTMAX_DTYPE_F32, profiled.rows, profiled.cols, Mode::kHot};
    runner.prepare(shape);
    const auto planned = [&](const char *algo) {
      JsonLine line;
      line.field("record", "launch").field("dtype", "f32").field("M", shape.rows);
      line.field("N", shape.cols).field("algo", algo);
      return line;
    };
    cudaProfilerStart();
    json.write(planned("copy"));
    runner.copy_once();
    for (const softmax_algo_t algo : kAlgos) {
      if (algo == SOFTMAX_ALGO_AUTO) continue;  // it would be one of the others
      if (algo == SOFTMAX_ALGO_NAIVE && !profiled.with_naive) continue;
      const softmax_choice_t choice = runner.choose(algo);
      json.write(planned(softmax_algo_name(algo))
                     .field("threads", static_cast<std::int64_t>(choice.threads))
                     .field("rows_per_block", static_cast<std::int64_t>(choice.rows_per_block)));
      runner.launch_once(algo);
    }
    cudaProfilerStop();
  }
  json.finish();
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char **argv) {
  try {
    const bench::Options options = bench::parse(argc, argv);
    if (options.help) {
      std::fputs(bench::kUsage, stdout);
      return 0;
    }
    if (options.info) {
      std::printf("%s\n", softmax_build_info());
      return 0;
    }
    return options.profile ? bench::run_profile(options) : bench::run_benchmark(options);
  } catch (const bench::UsageError &error) {
    std::fprintf(stderr, "ladder: %s\n%s", error.what(), bench::kUsage);
    return 2;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "ladder: %s\n", error.what());
    return 1;
  }
}
