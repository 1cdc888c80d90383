// What the general call refuses on CUDA, and how it says so.
#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <vector>

#include "gpu/general_args.h"
#include "support/catch.h"
#include "support/general_calls.h"

namespace softmax_test {
namespace {

// A call with every buffer that it can have, of 4 rows of 10 columns.
struct Everything {
  explicit Everything(bool backward, bool given)
      : backward_(backward),
        given_(given),
        desc(matrix(4, 10)),
        x(40, 1.0f),
        y(40, backward && !given ? 0.1f : 7.0f),
        mask(40, 0.0f),
        dy(40, 1.0f),
        dx(40, 7.0f),
        row_scale(4, 1.0f),
        sink(4, 0.0f),
        row_max(4, 1.0f),
        row_sum(4, 10.0f),
        lse(4, 7.0f) {
    desc.mask_kind = SOFTMAX_MASK_ADDITIVE;
    if (backward) desc.direction = SOFTMAX_DIRECTION_BACKWARD;
    if (given) desc.flags |= SOFTMAX_FLAG_GIVEN_STATS;
  }
  softmax_args_t args() const {
    softmax_args_t a = no_args();
    if (!backward_ || given_) a.x = x.data();
    if (!backward_ || !given_) a.y = y.data();
    a.mask = mask.data();
    a.row_scale = row_scale.data();
    if (!backward_ && !given_) a.sink = sink.data();
    if (given_ || !backward_) {
      a.row_max = row_max.data();
      a.row_sum = row_sum.data();
    }
    if (!backward_) a.lse = lse.data();
    if (backward_) {
      a.dy = dy.data();
      a.dx = dx.data();
    }
    return a;
  }
  bool is_untouched() const {
    const auto all = [](const std::vector<float> &values, float value) {
      for (const float v : values) {
        if (v != value) return false;
      }
      return true;
    };
    return all(x.get(), 1) && all(y.get(), backward_ && !given_ ? 0.1f : 7.0f) &&
           all(mask.get(), 0) && all(dy.get(), 1) && all(dx.get(), 7) && all(row_max.get(), 1) &&
           all(row_sum.get(), 10) && all(lse.get(), 7);
  }

  const bool backward_, given_;
  softmax_desc_t desc;
  Array<float> x, y, mask, dy, dx, row_scale, sink, row_max, row_sum, lse;
};

struct Field {
  const char *name;
  std::function<void(softmax_args_t *, float *)> set;
  std::function<bool(const softmax_args_t &)> is_used;
};
const std::vector<Field> &fields() {
  using A = softmax_args_t;
  static const std::vector<Field> all = {
      {"x", [](A *a, float *p) { a->x = p; }, [](const A &a) { return a.x != nullptr; }},
      {"y", [](A *a, float *p) { a->y = p; }, [](const A &a) { return a.y != nullptr; }},
      {"mask", [](A *a, float *p) { a->mask = p; }, [](const A &a) { return a.mask != nullptr; }},
      {"row_scale", [](A *a, float *p) { a->row_scale = p; },
       [](const A &a) { return a.row_scale != nullptr; }},
      {"sink", [](A *a, float *p) { a->sink = p; }, [](const A &a) { return a.sink != nullptr; }},
      {"row_max", [](A *a, float *p) { a->row_max = p; },
       [](const A &a) { return a.row_max != nullptr; }},
      {"row_sum", [](A *a, float *p) { a->row_sum = p; },
       [](const A &a) { return a.row_sum != nullptr; }},
      {"lse", [](A *a, float *p) { a->lse = p; }, [](const A &a) { return a.lse != nullptr; }},
      {"dy", [](A *a, float *p) { a->dy = p; }, [](const A &a) { return a.dy != nullptr; }},
      {"dx", [](A *a, float *p) { a->dx = p; }, [](const A &a) { return a.dx != nullptr; }}};
  return all;
}

const std::vector<softmax_algo_t> kNeverGeneral = {
    SOFTMAX_ALGO_NAIVE,       SOFTMAX_ALGO_SHARED, SOFTMAX_ALGO_SHUFFLE, SOFTMAX_ALGO_VECTOR,
    SOFTMAX_ALGO_WARP_ONLINE, SOFTMAX_ALGO_TILE,   SOFTMAX_ALGO_GRID,    SOFTMAX_ALGO_REFERENCE};

}  // namespace

TEST_CASE("general: host memory is refused with 1009 and the buffer's name", "[general][errors]") {
  std::vector<float> host(40, 3.0f);
  int refused = 0;
  for (const bool backward : {false, true}) {
    for (const bool given : {false, true}) {
      const Everything everything(backward, given);
      for (const Field &field : fields()) {
        softmax_args_t args = everything.args();
        if (!field.is_used(args)) continue;
        field.set(&args, host.data());
        INFO(field.name << (backward ? " backward" : "") << (given ? " given" : ""));
        CHECK(execute(everything.desc, args) == SOFTMAX_STATUS_WRONG_DEVICE);
        CHECK((" " + last_error()).find(" " + std::string(field.name) + " ") != std::string::npos);
        CHECK(cudaPeekAtLastError() == cudaSuccess);
        ++refused;
      }
      CHECK(everything.is_untouched());
      const softmax_args_t args = everything.args();
      CHECK(execute(everything.desc, args) == SOFTMAX_SUCCESS);
      CHECK_FALSE(everything.is_untouched());
    }
  }
  CHECK(refused == 8 + 7 + 5 + 7);
  CHECK(host == std::vector<float>(40, 3.0f));
}

TEST_CASE("general: TRUST_POINTERS skips the check of where memory is", "[general][errors]") {
  // Captured and never run, so that nothing looks at the host's memory.
  std::vector<float> host(40, 3.0f);
  for (const Field &field : fields()) {
    Everything everything(false, false);
    everything.desc.flags |= SOFTMAX_FLAG_TRUST_POINTERS;
    softmax_args_t args = everything.args();
    if (!field.is_used(args)) continue;
    field.set(&args, host.data());
    Graph graph;
    INFO(field.name);
    CHECK(graph.capture(device().stream(), [&] { return execute(everything.desc, args); }) ==
          SOFTMAX_SUCCESS);
  }
  must(cudaDeviceSynchronize());
}

TEST_CASE("general: pinned memory is accepted in every buffer", "[general][errors]") {
  for (const Field &field : fields()) {
    const Everything everything(false, false);
    softmax_args_t args = everything.args();
    if (!field.is_used(args)) continue;
    void *pinned = nullptr;
    must(cudaMallocHost(&pinned, 160));
    auto *values = static_cast<float *>(pinned);
    for (int i = 0; i < 40; ++i) values[i] = 1;
    field.set(&args, values);
    INFO(field.name);
    CHECK(execute(everything.desc, args) == SOFTMAX_SUCCESS);
    must(cudaDeviceSynchronize());
    must(cudaFreeHost(pinned));
  }
}

TEST_CASE("general: an algorithm that takes no general problem says so and writes nothing",
          "[general][errors]") {
  const std::vector<std::function<void(softmax_desc_t *, softmax_args_t *)>> features = {
      [](softmax_desc_t *d, softmax_args_t *) { d->mask_kind = SOFTMAX_MASK_ADDITIVE; },
      [](softmax_desc_t *d, softmax_args_t *a) {
        d->mask_kind = SOFTMAX_MASK_NONE;
        a->mask = nullptr;
      }};
  for (const bool backward : {false, true}) {
    Everything everything(backward, false);
    for (const auto &feature : features) {
      softmax_args_t args = everything.args();
      feature(&everything.desc, &args);
      for (const softmax_algo_t algo : kNeverGeneral) {
        INFO(softmax_algo_name(algo));
        CHECK(execute(everything.desc, args, algo) == SOFTMAX_STATUS_NOT_SUPPORTED_ALGO);
        CHECK(last_error() != "");
      }
    }
    CHECK(everything.is_untouched());
  }
  // By the descriptor alone softmax_select knows.
  softmax_desc_t desc = matrix(4, 10);
  desc.scale = 2;
  softmax_choice_t choice = {};
  choice.struct_size = sizeof choice;
  for (const softmax_algo_t algo : kNeverGeneral) {
    CHECK(softmax_select(device().handle(), algo, &desc, &choice) ==
          SOFTMAX_STATUS_NOT_SUPPORTED_ALGO);
  }
  // The innermost axis is no column.
  CHECK(softmax_select(device().handle(), SOFTMAX_ALGO_COLUMN, &desc, &choice) ==
        SOFTMAX_STATUS_NOT_SUPPORTED_ALGO);
  desc.axis = 0;
  CHECK(softmax_select(device().handle(), SOFTMAX_ALGO_COLUMN, &desc, &choice) == SOFTMAX_SUCCESS);
  CHECK(choice.algo == SOFTMAX_ALGO_COLUMN);
  CHECK(std::string(choice.kernel) != "");
  for (const softmax_algo_t algo : {SOFTMAX_ALGO_WARP, SOFTMAX_ALGO_BLOCK, SOFTMAX_ALGO_CLUSTER}) {
    CHECK(softmax_select(device().handle(), algo, &desc, &choice) ==
          SOFTMAX_STATUS_NOT_SUPPORTED_ALGO);
  }
}

TEST_CASE("general: an error that was pending is neither blamed on the call nor cleared",
          "[general][errors]") {
  const Everything everything(false, false);
  const softmax_args_t args = everything.args();
  CHECK(cudaSetDevice(12345) == cudaErrorInvalidDevice);
  CHECK(execute(everything.desc, args) == SOFTMAX_SUCCESS);
  CHECK(softmax_merge_stats(device().handle(), 2, 2, everything.x.data(), everything.mask.data(),
                            everything.dx.data(), nullptr, nullptr,
                            device().stream()) == SOFTMAX_SUCCESS);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaSuccess);
  must(cudaDeviceSynchronize());
}

}  // namespace softmax_test
