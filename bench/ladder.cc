// Times AUTO and the algorithms beside a copy of the same bytes.
//
//   ladder                    the whole run, about a minute and a half on an H200
//   ladder --json FILE        also writes every cell as a line of JSON
//   ladder --cols LIST        row lengths of one's own choice, shortly: what scripts/tune asks
//   ladder --profile          one launch a cell between cudaProfilerStart and -Stop, for ncu
//
// Protocol: outputs are first poisoned, computed, and held against float64; a wrong cell is not
// timed. Then several calls go into one CUDA graph, and the median of its replays counts. "cold"
// rotates pairs of buffers (x_i -> y_i) that together exceed three L2s; "hot" uses one pair. The
// copy is the better of cudaMemcpyAsync and a kernel of 16-byte streaming loads and stores, in the
// same cell. A ratio is copy time over softmax time; GB/s count one read and one write.
#include <cuda_profiler_api.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "options.h"
#include "output.h"
#include "runner.h"

namespace bench {
namespace {

constexpr std::int64_t kSweepElements = std::int64_t{1} << 27;
constexpr std::int64_t kChosenElements = std::int64_t{1} << 26;
constexpr std::int64_t kPoolBytes = kSweepElements * 4;

const std::vector<softmax_algo_t> kAlgos = {
    SOFTMAX_ALGO_AUTO,   SOFTMAX_ALGO_NAIVE,  SOFTMAX_ALGO_SHARED,      SOFTMAX_ALGO_SHUFFLE,
    SOFTMAX_ALGO_VECTOR, SOFTMAX_ALGO_ONLINE, SOFTMAX_ALGO_WARP_ONLINE, SOFTMAX_ALGO_WARP,
    SOFTMAX_ALGO_BLOCK,  SOFTMAX_ALGO_TILE,   SOFTMAX_ALGO_CLUSTER,     SOFTMAX_ALGO_GRID};

// A cell that is expected to take longer than this is left out: one thread a row has nothing to
// hide its latency with when rows are few and long.
constexpr double kTooSlowUs = 400e3;

class Ladder {
 public:
  Ladder(Runner &runner, JsonFile &json, const TimingBox &box,
         const std::vector<softmax_algo_t> &algos)
      : runner_(runner), json_(json), box_(box), algos_(algos) {}

  // Shapes of one section, in rising order of N for each M and type.
  void section(const char *name, const char *title, const std::vector<Shape> &shapes, bool ratios) {
    print_header(title, algos_, ratios);
    last_us_.clear();
    for (const Shape &shape : shapes) {
      runner_.prepare(shape);
      const CopyTiming copy = runner_.time_copy(box_);
      print_shape(shape, copy, ratios);
      for (const softmax_algo_t algo : algos_) cell(name, shape, algo, copy, ratios);
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
    std::string why;
    if (!runner_.accepts(algo, &why)) {
      json_.write(left_out_line(section, shape, algo, "declined", why));
      print_left_out();
      return;
    }
    // In the same section at the same type: the time grows at most as N does.
    const auto last = last_us_.find({shape.dtype, algo});
    if (last != last_us_.end()) {
      const double predicted_us = last->second.us * static_cast<double>(shape.cols) /
                                  static_cast<double>(last->second.cols);
      if (predicted_us > kTooSlowUs) {
        why = "predicted to take " + std::to_string(static_cast<int>(predicted_us / 1000.0)) +
              " ms a call";
        json_.write(left_out_line(section, shape, algo, "skipped", why));
        print_left_out();
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
  std::vector<softmax_algo_t> algos_;
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

// The caller's row lengths, which rise for each type as Ladder::section wants it.
std::vector<Shape> chosen_shapes(const Options &options, softmax_dtype_t dtype, std::int64_t rows) {
  std::vector<std::int64_t> all_cols = options.cols;
  std::sort(all_cols.begin(), all_cols.end());
  std::vector<Shape> shapes;
  for (const std::int64_t cols : all_cols) {
    Shape shape = {dtype, rows, cols, Mode::kHot};
    if (rows == 0)
      shape = {dtype, std::max<std::int64_t>(1, kChosenElements / cols), cols, Mode::kCold};
    if (shape.bytes() <= (rows == 0 ? kPoolBytes : 2 * kPoolBytes)) shapes.push_back(shape);
  }
  return shapes;
}

int finish(const Ladder &ladder, JsonFile &json) {
  json.finish();
  if (ladder.wrong_cells() == 0) return 0;
  std::fprintf(stderr, "ladder: %d cells are wrong\n", ladder.wrong_cells());
  return 1;
}

int run_chosen(const Options &options) {
  Runner runner(options.device, kPoolBytes);
  JsonFile json(options.json);
  json.write(run_line(runner.properties(), "run"));
  TimingBox box;
  box.cell_ms = 12.0;
  box.graph_us = 300.0;
  box.max_replays = 8;
  Ladder ladder(runner, json, box, options.algos.empty() ? kAlgos : options.algos);
  for (const softmax_dtype_t dtype : options.dtypes) {
    if (options.rows.empty()) {
      ladder.section("chosen", "2^26 elements, cold (share of copy)",
                     chosen_shapes(options, dtype, 0), true);
    }
    for (const std::int64_t rows : options.rows) {
      ladder.section("chosen", "hot (microseconds)", chosen_shapes(options, dtype, rows), false);
    }
  }
  return finish(ladder, json);
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
  Ladder ladder(runner, json, box, kAlgos);
  ladder.section("published", "The published figure's shape, and twice its rows (share of copy)",
                 published_shapes(), true);
  ladder.section("sweep", "2^27 elements, cold (share of copy)", sweep_shapes(options.quick), true);
  for (const std::int64_t rows : {1, 16, 256}) {
    if (options.quick && rows == 256) continue;
    ladder.section("hot", ("M = " + std::to_string(rows) + ", hot (microseconds)").c_str(),
                   hot_shapes(rows, options.quick), false);
  }
  return finish(ladder, json);
}

// The plan for the profiler: the published shape with algorithms 1 to 6, then rows of growing
// length at a constant number of elements, so that the rows in flight outgrow L2 on the way.
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
      // AUTO would be one of the others; the read-once algorithms need no counter to say how often
      // they read, and may launch more than one kernel.
      if (algo == SOFTMAX_ALGO_AUTO || algo > SOFTMAX_ALGO_WARP_ONLINE) continue;
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
    if (!options.cols.empty()) return bench::run_chosen(options);
    return options.profile ? bench::run_profile(options) : bench::run_benchmark(options);
  } catch (const bench::UsageError &error) {
    std::fprintf(stderr, "ladder: %s\n%s", error.what(), bench::kUsage);
    return 2;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "ladder: %s\n", error.what());
    return 1;
  }
}
