// Times launch policies that the selector would not choose: what tuning starts from.
//
//   policies [--device D] < list
//
// A line of the list is a shape and a policy, fields left out being 0:
//   f32 16384 8192 cold cluster threads=256 slab=16384 stages=4 row_blocks=1 cluster=1 blocks=3
// Its result is the line with us, the share of copy speed and the error added. "auto" alone in
// place of a policy's stem runs what softmax_forward_to would.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "core/algo.h"
#include "core/dtype.h"
#include "core/slabs.h"
#include "cuda/backend.h"
#include "device.h"
#include "runner.h"
#include "select/policy.h"
#include "select/select.h"

namespace {

using bench::Mode;
using bench::Shape;

softmax_dtype_t dtype_from(const std::string &name) {
  for (softmax_dtype_t dtype = SOFTMAX_DTYPE_F32; dtype <= SOFTMAX_DTYPE_F64; ++dtype) {
    if (name == softmax::dtype_name(dtype)) return dtype;
  }
  throw std::runtime_error("no such type: " + name);
}

struct Case {
  Shape shape{};
  bool is_auto = false;
  bool defaults = false;  // the stem's own policy
  softmax::Policy policy;
};

Case parse(const std::string &line) {
  Case result;
  std::istringstream words(line);
  std::string dtype, mode, stem, field;
  if (!(words >> dtype >> result.shape.rows >> result.shape.cols >> mode >> stem)) {
    throw std::runtime_error("not a shape and a policy: " + line);
  }
  result.shape.dtype = dtype_from(dtype);
  result.shape.mode = mode == "hot" ? Mode::kHot : Mode::kCold;
  result.is_auto = stem == "auto";
  softmax_algo_t algo;
  bench::check_softmax(softmax_algo_from_name(stem.c_str(), &algo), "the stem");
  result.policy.algo = algo;
  result.policy.rows_per_block = 1;
  result.defaults = true;
  while (words >> field) {
    result.defaults = false;
    const std::size_t equals = field.find('=');
    const std::string name = field.substr(0, equals);
    const long long value = std::stoll(field.substr(equals + 1));
    const int small = static_cast<int>(value);
    softmax::Policy &p = result.policy;
    if (name == "threads")
      p.threads_per_row = small;
    else if (name == "rows")
      p.rows_per_block = small;
    else if (name == "packs")
      p.packs = small;
    else if (name == "cluster")
      p.cluster = small;
    else if (name == "row_blocks")
      p.row_blocks = small;
    else if (name == "stages")
      p.stages = small;
    else if (name == "blocks")
      p.blocks_per_sm = small;
    else if (name == "slab")
      p.slab_bytes = value;
    else
      throw std::runtime_error("no such field: " + name);
  }
  return result;
}

class Policies {
 public:
  explicit Policies(int device) : runner_(device, std::int64_t{1} << 30) {
    if (softmax::cuda_open(device, &caps_, &device_) != SOFTMAX_SUCCESS) {
      throw std::runtime_error("the device cannot be opened");
    }
  }

  void run(const std::string &line) {
    const Case test = parse(line);
    const Shape &shape = test.shape;
    if (shape.dtype != last_.dtype || shape.rows != last_.rows || shape.cols != last_.cols ||
        shape.mode != last_.mode) {
      last_ = shape;
      runner_.prepare(shape);
      copy_us_ = runner_.time_copy(box(shape)).us();
    }
    bench::AlgoTiming timing;
    if (test.is_auto) {
      timing = runner_.run(SOFTMAX_ALGO_AUTO, box(shape));
    } else {
      softmax::Problem problem;
      problem.x_dtype = problem.y_dtype = shape.dtype;
      problem.rows = shape.rows;
      problem.cols = shape.cols;
      softmax::Policy policy = test.policy;
      if (test.defaults) {
        softmax::Selection selection;
        if (softmax::select(caps_, policy.algo, problem, {nullptr, nullptr}, &selection) !=
            softmax::SelectOutcome::kChosen) {
          std::printf("%-90s declined\n", line.c_str());
          return;
        }
        policy = selection.policy;
      }
      timing = runner_.run_with(
          [&](const void *x, void *y, cudaStream_t stream) {
            return softmax::cuda_run(caps_, device_, policy, problem, {x, y, nullptr, 0}, stream);
          },
          box(shape));
    }
    if (timing.wrong) {
      std::printf("%-90s WRONG nan=%llu ulp=%.3g\n", line.c_str(),
                  static_cast<unsigned long long>(timing.nan_count), timing.max_ulp);
    } else {
      std::printf("%-90s us=%.2f copy=%.2f share=%.3f ulp=%.2f\n", line.c_str(), timing.timing.us,
                  copy_us_, copy_us_ / timing.timing.us, timing.max_ulp);
    }
    std::fflush(stdout);
  }

 private:
  static bench::TimingBox box(const Shape &shape) {
    bench::TimingBox box;
    box.cell_ms = shape.mode == Mode::kHot ? 12.0 : 16.0;
    box.graph_us = shape.mode == Mode::kHot ? 400.0 : 600.0;
    return box;
  }

  softmax::DeviceCaps caps_;
  softmax::CudaDevice device_;
  bench::Runner runner_;
  Shape last_{};
  double copy_us_ = 0.0;
};

}  // namespace

int main(int argc, char **argv) {
  try {
    int device = 0;
    if (argc == 3 && std::strcmp(argv[1], "--device") == 0) device = std::atoi(argv[2]);
    Policies policies(device);
    std::string line;
    int failures = 0;
    while (std::getline(std::cin, line)) {
      if (line.empty() || line[0] == '#') continue;
      try {
        policies.run(line);
      } catch (const std::exception &error) {
        std::printf("%-90s FAILED %s\n", line.c_str(), error.what());
        std::fflush(stdout);
        if (cudaDeviceSynchronize() != cudaSuccess) return 1;  // the context is lost
        ++failures;
      }
    }
    return failures == 0 ? 0 : 1;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "policies: %s\n", error.what());
    return 1;
  }
}
