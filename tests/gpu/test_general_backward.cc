// BACKWARD by every algorithm that takes it: the gradient of softmax and log-softmax, from y and
// from statistics, against the reference.
#include <algorithm>
#include <cmath>

#include "support/catch.h"
#include "support/general_calls.h"

namespace softmax_test {

TEST_CASE("general: gradients of every mix of layout, types, mask, scale and source",
          "[general][backward]") {
  GeneralCalls calls(device());
  for (int variant = 0; variant < kBackwardVariants; ++variant) {
    GeneralCase c = backward_case(variant);
    c.gap = 0xff;
    c.offset = variant % 3;
    calls.check(c);
    c.dy_dtype = 0;
    c.dy_lie = c.x_lie;
    c.in_place = true;
    calls.check(c);
  }
  calls.require_served({SOFTMAX_ALGO_WARP, SOFTMAX_ALGO_BLOCK});
}

TEST_CASE("general: gradients of dense rows", "[general][backward]") {
  GeneralCalls calls(device());
  constexpr std::int64_t kCols[] = {1, 3, 32, 33, 100, 257, 1000, 1024, 2049, 3001, 4097};
  constexpr softmax_dtype_t kDense[] = {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_BF16};
  for (int variant = 0; variant < kBackwardVariants; variant += 2) {
    GeneralCase c = backward_case(variant);
    c.shape = {variant % 7 + 1, kCols[variant % 11]};
    c.axis = 1;
    c.x_dtype = c.y_dtype = kDense[variant / 2 % 3];
    c.dy_dtype = 0;
    c.x_lie = c.y_lie = c.dy_lie = c.mask_lie = Lie::kContiguous;
    c.offset = variant % 5 == 0 ? 1 : 0;
    calls.check_in_both_places(c);
  }
  calls.require_served({SOFTMAX_ALGO_WARP, SOFTMAX_ALGO_BLOCK});
}

TEST_CASE("general: gradients of long rows, of many, and of an axis with much inside of it",
          "[general][backward][shapes]") {
  struct Shape {
    std::vector<std::int64_t> shape;
    int axis;
    std::int64_t every;
  };
  GeneralCalls calls(device());
  int turn = 0;
  for (const Shape &shape : {Shape{{60, 5000}, 1, 1},
                             {{5, 33000}, 1, 1},
                             {{3, 128256}, 1, 1},
                             {{2, 262144}, 1, 1},
                             {{30011, 33}, 1, 41},
                             {{1500, 1024}, 1, 31},
                             {{64, 1000, 49}, 1, 101},
                             {{8192, 24}, 0, 1},
                             {{3, 21, 1000}, 1, 11},
                             {{2, 5000, 2}, 1, 1},
                             {{700, 33}, 0, 1}}) {
    for (const int variant : {0, 6, 12, 18, 25, 37, 61, 79, 97, 115, 260}) {
      GeneralCase c = backward_case(variant);
      c.shape = shape.shape;
      c.axis = shape.axis;
      const bool is_large = c.rows() * c.cols() > 2000000;
      if (is_large && variant != 6 && variant != 12 && variant != 97) continue;
      c.every = shape.every;
      if (c.axis == 0 && c.mask_kind == SOFTMAX_MASK_CAUSAL) c.mask_kind = SOFTMAX_MASK_NONE;
      c.x_dtype = kEveryType[++turn % 4];
      c.y_dtype = c.x_dtype;
      c.dy_dtype = 0;
      if (turn % 3 != 0) c.x_lie = c.y_lie = c.dy_lie = c.mask_lie = Lie::kContiguous;
      c.in_place = c.dy_lie == c.x_lie && turn % 4 == 1;
      calls.check(c);
    }
  }
  calls.require_served({SOFTMAX_ALGO_WARP, SOFTMAX_ALGO_BLOCK});
}

TEST_CASE("general: a masked element has gradient 0, whatever dy and x hold there",
          "[general][backward]") {
  GeneralCalls calls(device());
  for (const int kind : {1, 2, 3, 4}) {
    for (const int op : {0, 1}) {
      for (const bool given : {false, true}) {
        for (const std::int64_t cols : {6, 140, 3000}) {
          for (const int axis : {0, 1}) {
            if (axis == 0 && kind == SOFTMAX_MASK_CAUSAL) continue;
            GeneralCase c;
            c.shape = {axis == 1 ? 5 : cols, axis == 1 ? cols : 5};
            c.axis = axis;
            c.op = op;
            c.mask_kind = kind;
            c.causal_offset = cols / 2 - 2;
            c.direction = SOFTMAX_DIRECTION_BACKWARD;
            c.given_stats = given;
            c.gap = 0xff;
            GeneralValues values = make_values(c);
            std::vector<bool> masked;
            for (std::int64_t i = 0; i < 5 * cols; ++i) {
              const auto at = static_cast<std::size_t>(i);
              const std::int64_t r = i / cols, j = i % cols;
              masked.push_back(kind == 1   ? values.keep[at] == 0
                               : kind == 2 ? values.additive[at] == -HUGE_VAL
                               : kind == 3 ? j > r + c.causal_offset
                                           : j >= values.length[static_cast<std::size_t>(r)]);
              if (masked[at]) values.dy[at] = std::nan("");
              if (masked[at] && kind != 2) values.x[at] = HUGE_VAL;
            }
            for (const softmax_algo_t algo : calls.algos()) {
              c.algo = algo;
              if (!calls.is_selected(c)) continue;
              const GeneralResult dx = run_general(device(), c, values);
              REQUIRE(dx.status == SOFTMAX_SUCCESS);
              std::int64_t wrong = 0;
              for (std::int64_t i = 0; i < 5 * cols; ++i) {
                const bool right =
                    masked[static_cast<std::size_t>(i)] ? dx.y[i] == 0 : std::isfinite(dx.y[i]);
                wrong += right ? 0 : 1;
              }
              INFO(c.text());
              CHECK(wrong == 0);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("general: gradients through special values", "[general][backward]") {
  GeneralCalls calls(device());
  int turn = 0;
  for (const double special : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    for (const int op : {0, 1}) {
      for (const bool given : {false, true}) {
        for (const std::int64_t cols : {1, 30, 1500}) {
          for (const bool empty_is_zero : {false, true}) {
            GeneralCase c;
            c.direction = SOFTMAX_DIRECTION_BACKWARD;
            c.shape = {4, cols};
            c.op = op;
            c.given_stats = given;
            c.empty_row = empty_is_zero;
            c.x_dtype = c.y_dtype = kEveryType[turn++ % 4];
            c.x_lie = turn % 3 == 0 ? Lie::kReversed : Lie::kContiguous;
            // x is special, and so are the statistics or y that come of it.
            GeneralValues values = make_values(c);
            GeneralCase forward = c;
            forward.direction = SOFTMAX_DIRECTION_FORWARD;
            forward.given_stats = false;
            values.x[static_cast<std::size_t>(cols - 1)] = special;
            for (std::int64_t j = 0; j < cols; ++j) {
              values.x[static_cast<std::size_t>(2 * cols + j)] = -HUGE_VAL;
            }
            const GeneralReference reference = make_general_reference(forward, values);
            for (std::size_t r = 0; given && r < 4; ++r) {
              values.row_max[r] = static_cast<float>(static_cast<double>(reference.row_max[r]));
              values.row_sum[r] =
                  static_cast<float>(reference.row_sum_against(r, values.row_max[r]));
            }
            if (!given) {
              std::vector<double> y(reference.y.begin(), reference.y.end());
              values.y = rounded_to(c.y_dtype, y);
            }
            calls.check(c, values);
            // Of an infinite dy the sums may be lost in what compensates them.
            values.dy[static_cast<std::size_t>(3 * cols)] = std::nan("");
            calls.check(c, values);
          }
        }
      }
    }
  }
  calls.require_served({});
}

}  // namespace softmax_test
