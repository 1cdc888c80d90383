// BACKWARD: the gradient of softmax and log-softmax, from y and from statistics, against the
// reference and against differences of the forward call.
#include <omp.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "host/api.h"
#include "support/catch.h"
#include "support/general.h"
#include "support/general_calls.h"
#include "support/inputs.h"

namespace softmax_test {
namespace {

void check(softmax_handle_t handle, GeneralCase c) {
  for (const softmax_algo_t algo : kBoth) {
    c.algo = algo;
    const std::string wrong = check_general(handle, c);
    CHECK(wrong == "");
  }
}

}  // namespace

TEST_CASE("gradients of every mix of layout, types, mask, scale and source",
          "[general][backward]") {
  const CpuHandle handle;
  for (int variant = 0; variant < kBackwardVariants; ++variant) {
    GeneralCase c = backward_case(variant);
    check(handle, c);
    c.dy_dtype = 0;
    c.dy_lie = c.x_lie;
    c.in_place = true;
    check(handle, c);
  }
}

TEST_CASE("gradients of long rows, in parts", "[general][backward]") {
  const CpuHandle handle;
  for (const std::int64_t cols : {std::int64_t{5000}, std::int64_t{33000}, std::int64_t{50000}}) {
    for (const int variant : {0, 6, 12, 18, 25, 37, 49, 61, 79, 97, 115, 260}) {
      GeneralCase c = backward_case(variant);
      c.shape = {3, cols};
      c.axis = 1;
      c.x_dtype = variant % 2 == 0 ? SOFTMAX_DTYPE_F32 : SOFTMAX_DTYPE_F64;
      c.y_dtype = c.x_dtype;
      const std::string wrong = check_general(handle, c);
      CHECK(wrong == "");
    }
  }
}

TEST_CASE("the gradient is what the forward call's differences say", "[general][backward]") {
  const CpuHandle handle;
  for (const int op : {0, 1}) {
    for (const bool given : {false, true}) {
      for (const int kind : {0, 1, 2, 3, 4}) {
        GeneralCase c;
        c.shape = {3, 6};
        c.op = op;
        c.mask_kind = kind;
        c.causal_offset = 2;
        c.empty_row = SOFTMAX_EMPTY_ROW_ZERO;
        c.x_dtype = c.y_dtype = SOFTMAX_DTYPE_F64;
        c.scale = 1.3;
        c.softcap = given ? 2.5 : 0.0;
        c.has_row_scale = true;
        c.has_sink = true;
        GeneralCase back = c;
        back.direction = SOFTMAX_DIRECTION_BACKWARD;
        back.given_stats = given;
        const GeneralValues values = make_values(back);
        const GeneralResult dx = run_general(handle, back, values);
        REQUIRE(dx.status == SOFTMAX_SUCCESS);
        for (std::size_t at = 0; at < 18; ++at) {
          // d/dx_at of sum(dy * y) over the elements that are not masked.
          long double slope = 0;
          constexpr double kStep = 0x1p-17;
          for (const double step : {kStep, -kStep}) {
            GeneralValues moved = values;
            moved.x[at] += step;
            const GeneralResult y = run_general(handle, c, moved);
            for (std::int64_t i = 0; i < 18; ++i) {
              if (!std::isfinite(y.y[i])) continue;
              slope += (step > 0 ? 1 : -1) * y.y[i] * values.dy[static_cast<std::size_t>(i)];
            }
          }
          INFO(back.text() << " element " << at);
          const auto got = dx.y[static_cast<std::int64_t>(at)];
          const auto expected = static_cast<double>(slope / (2 * kStep));
          // float32 statistics are 2^-24 off.
          CHECK(std::fabs(got - expected) < (given ? 2e-6 : 1e-8));
        }
      }
    }
  }
}

TEST_CASE("a masked element has gradient 0, whatever dy and x hold there", "[general][backward]") {
  const CpuHandle handle;
  for (const int kind : {1, 2, 3, 4}) {
    for (const int op : {0, 1}) {
      for (const bool given : {false, true}) {
        for (const softmax_algo_t algo : kBoth) {
          GeneralCase c;
          c.algo = algo;
          c.shape = {5, 6};
          c.op = op;
          c.mask_kind = kind;
          c.causal_offset = -2;
          c.direction = SOFTMAX_DIRECTION_BACKWARD;
          c.given_stats = given;
          GeneralValues values = make_values(c);
          std::vector<bool> masked;
          for (std::int64_t i = 0; i < 30; ++i) {
            const auto at = static_cast<std::size_t>(i);
            masked.push_back(kind == 1   ? values.keep[at] == 0
                             : kind == 2 ? values.additive[at] == -HUGE_VAL
                             : kind == 3 ? i % 6 > i / 6 - 2
                                         : i % 6 >= values.length[at / 6]);
            if (masked[at]) values.dy[at] = std::nan("");
            if (masked[at] && kind != 2) values.x[at] = HUGE_VAL;
          }
          const GeneralResult dx = run_general(handle, c, values);
          REQUIRE(dx.status == SOFTMAX_SUCCESS);
          for (std::int64_t i = 0; i < 30; ++i) {
            INFO(c.text() << " element " << i);
            if (masked[static_cast<std::size_t>(i)]) {
              CHECK(dx.y[i] == 0);
            } else {
              CHECK(std::isfinite(dx.y[i]));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("bits of a gradient do not depend on strides, threads or place",
          "[general][backward][bits]") {
  const CpuHandle handle;
  const int threads_before = omp_get_max_threads();
  for (const std::vector<std::int64_t> &shape :
       {std::vector<std::int64_t>{90, 21}, {3, 9000}, {2, 40000}}) {
    for (const int variant : {0, 6, 12, 18, 24, 48, 96, 252}) {
      GeneralCase c = backward_case(variant);
      c.shape = shape;
      c.axis = 1;
      c.x_dtype = c.y_dtype = SOFTMAX_DTYPE_F32;
      c.dy_dtype = 0;
      c.x_lie = c.y_lie = c.dy_lie = c.mask_lie = Lie::kContiguous;
      const GeneralValues values = make_values(c);
      omp_set_num_threads(1);
      const Elements expected = run_general(handle, c, values).y;
      omp_set_num_threads(4);
      for (const Lie lie : {Lie::kPadded, Lie::kReversed, Lie::kSpread}) {
        c.x_lie = c.y_lie = c.dy_lie = c.mask_lie = lie;
        CHECK(run_general(handle, c, values).y.bytes == expected.bytes);
      }
      c.in_place = true;
      CHECK(run_general(handle, c, values).y.bytes == expected.bytes);
    }
  }
  omp_set_num_threads(threads_before);
}

TEST_CASE("BACKWARD refuses what it has no use for and what it lacks", "[general][backward]") {
  const CpuHandle handle;
  std::vector<float> x(40, 0.1f), y(40, 0.1f), dy(40, 1.0f), dx(40), rows(4, 1.0f), more(40);
  softmax_desc_t desc = make_desc(4, 10);
  desc.direction = SOFTMAX_DIRECTION_BACKWARD;
  const auto with = [&](const std::function<void(softmax_args_t *)> &change) {
    softmax_args_t args = make_args(nullptr, y.data());
    args.dy = dy.data();
    args.dx = dx.data();
    change(&args);
    return softmax_execute(handle, SOFTMAX_ALGO_AUTO, &desc, &args, nullptr);
  };
  using A = softmax_args_t;
  CHECK(with([&](A *) {}) == SOFTMAX_SUCCESS);
  CHECK(with([&](A *a) { a->x = x.data(); }) == SOFTMAX_SUCCESS);
  CHECK(with([&](A *a) { a->dx = a->y; }) == SOFTMAX_SUCCESS);
  CHECK(with([&](A *a) { a->dx = dy.data(); }) == SOFTMAX_SUCCESS);
  CHECK(with([&](A *a) { a->y = nullptr; }) == SOFTMAX_STATUS_NULL_POINTER);
  CHECK(with([&](A *a) { a->dy = nullptr; }) == SOFTMAX_STATUS_NULL_POINTER);
  CHECK(with([&](A *a) { a->dx = nullptr; }) == SOFTMAX_STATUS_NULL_POINTER);
  CHECK(with([&](A *a) { a->lse = rows.data(); }) == SOFTMAX_STATUS_INVALID_ARGUMENT);
  CHECK(with([&](A *a) { a->row_max = rows.data(); }) == SOFTMAX_STATUS_INVALID_ARGUMENT);
  CHECK(with([&](A *a) { a->dx = dy.data() + 1; }) == SOFTMAX_STATUS_OVERLAP);
  CHECK(with([&](A *a) { a->sink = rows.data(); }) == SOFTMAX_STATUS_INVALID_ARGUMENT);
  CHECK(last_error().find("sink") != std::string::npos);
  for (const softmax_algo_t algo : {SOFTMAX_ALGO_NAIVE, SOFTMAX_ALGO_ONLINE}) {
    softmax_args_t args = make_args(nullptr, y.data());
    args.dy = dy.data();
    args.dx = dx.data();
    CHECK(softmax_execute(handle, algo, &desc, &args, nullptr) ==
          SOFTMAX_STATUS_NOT_SUPPORTED_ALGO);
  }
  desc.flags = SOFTMAX_FLAG_GIVEN_STATS;
  CHECK(with([&](A *) {}) == SOFTMAX_STATUS_INVALID_ARGUMENT);  // y, and statistics
  const auto stats = [&](A *a) {
    a->x = x.data();
    a->y = nullptr;
    a->row_max = rows.data();
    a->row_sum = rows.data();
  };
  CHECK(with(stats) == SOFTMAX_SUCCESS);
  CHECK(with([&](A *a) { stats(a), a->x = nullptr; }) == SOFTMAX_STATUS_NULL_POINTER);
  CHECK(with([&](A *a) { stats(a), a->row_sum = nullptr; }) == SOFTMAX_STATUS_NULL_POINTER);
  CHECK(with([&](A *a) { stats(a), a->dx = x.data(); }) == SOFTMAX_SUCCESS);
  CHECK(with([&](A *a) { stats(a), a->sink = rows.data(); }) == SOFTMAX_SUCCESS);  // not read
}

TEST_CASE("the type of dy matters to BACKWARD alone", "[general][backward]") {
  const CpuHandle handle;
  std::vector<float> x(40, 1.0f), y(40);
  softmax_desc_t desc = make_desc(4, 10);
  desc.dy_dtype = 77;
  softmax_args_t args = make_args(x.data(), y.data());
  for (const double scale : {1.0, 2.0}) {
    desc.scale = scale;
    CHECK(softmax_desc_check(&desc) == SOFTMAX_SUCCESS);
    CHECK(softmax_execute(handle, SOFTMAX_ALGO_AUTO, &desc, &args, nullptr) == SOFTMAX_SUCCESS);
    CHECK(std::fabs(y[39] - 0.1f) < 1e-7f);
    y[39] = 0;
  }
  desc.direction = SOFTMAX_DIRECTION_BACKWARD;
  CHECK(softmax_desc_check(&desc) == SOFTMAX_STATUS_BAD_ENUM);
}

}  // namespace softmax_test
