// The general call, forward, by every algorithm that takes it: layouts, types, masks, values, sinks
// and statistics, each crossed with the others, against the reference.
#include <cmath>
#include <limits>

#include "support/catch.h"
#include "support/general_calls.h"
#include "support/inputs.h"

namespace softmax_test {

TEST_CASE("general: every layout of x and y, every axis, every operation", "[general]") {
  GeneralCalls calls(device());
  for (const GeneralShape &shape : general_shapes()) {
    for (const Lie x_lie : kLies) {
      for (const Lie y_lie : kLies) {
        GeneralCase c = case_of(shape);
        c.x_lie = x_lie;
        c.y_lie = y_lie;
        c.gap = x_lie == y_lie ? 0xff : 0xa5;
        for (const int op : {0, 1, 2}) {
          c.op = op;
          c.has_stats = op == SOFTMAX_OP_STATS;
          for (const softmax_dtype_t dtype :
               {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_F64}) {
            c.x_dtype = c.y_dtype = dtype;
            c.offset = (c.offset + 1) % 4;
            calls.check_in_both_places(c);
          }
        }
      }
    }
  }
  calls.require_served({SOFTMAX_ALGO_WARP, SOFTMAX_ALGO_BLOCK, SOFTMAX_ALGO_COLUMN});
}

TEST_CASE("general: every pair of types", "[general]") {
  GeneralCalls calls(device());
  for (const softmax_dtype_t x : kEveryType) {
    for (const softmax_dtype_t y : kEveryType) {
      for (const GeneralShape &shape : general_shapes()) {
        GeneralCase c = case_of(shape);
        c.x_dtype = x;
        c.y_dtype = y;
        c.seed = static_cast<std::uint64_t>(x * 10 + y);
        c.y_lie = kLies[(x + y) % 4];
        for (const int op : {0, 1}) {
          c.op = op;
          c.scale = op == 0 ? 1.0 : 0.8;
          calls.check(c);
          if (format_of(y).size_bytes == 1) {
            c.y_scale = op == 0 ? 448.0 : 2.5;
            calls.check(c);
            c.y_scale = 0;
          }
        }
      }
    }
  }
  calls.require_served({SOFTMAX_ALGO_WARP, SOFTMAX_ALGO_BLOCK, SOFTMAX_ALGO_COLUMN});
}

TEST_CASE("general: every mix of mask, scale, soft-cap, sink and operation", "[general]") {
  GeneralCalls calls(device());
  for (int variant = 0; variant < kVariants; ++variant) {
    for (int k = 0; k < 3; ++k) {
      GeneralCase c = mixed_case(variant, k);
      c.gap = variant % 2 == 0 ? 0xff : 0xa5;
      c.offset = variant % 3;
      calls.check_in_both_places(c);
    }
  }
  calls.require_served({SOFTMAX_ALGO_COLUMN});
}

TEST_CASE("general: every mix of mask, scale, soft-cap, sink and operation on dense rows",
          "[general]") {
  GeneralCalls calls(device());
  constexpr std::int64_t kCols[] = {1, 2, 31, 32, 33, 100, 257, 1000, 1024, 2049, 3001};
  constexpr softmax_dtype_t kDense[] = {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_BF16};
  for (int variant = 0; variant < kVariants; ++variant) {
    GeneralCase c;
    c.shape = {variant % 7 + 1, kCols[variant % 11]};
    c.x_dtype = c.y_dtype = kDense[variant % 3];
    c.x_lie = c.y_lie = variant % 4 == 3 ? Lie::kPadded : Lie::kContiguous;
    c.seed = static_cast<std::uint64_t>(variant);
    c.gap = 0xff;
    c.offset = variant % 5 == 0 ? 1 : 0;
    vary(&c, variant);
    c.has_stats = c.has_stats || variant % 2 == 0;
    calls.check_in_both_places(c);
  }
  calls.require_served({SOFTMAX_ALGO_WARP, SOFTMAX_ALGO_BLOCK});
}

TEST_CASE("general: given statistics: the last pass alone", "[general]") {
  GeneralCalls calls(device());
  for (int variant = 0; variant < kVariants; ++variant) {
    GeneralCase c = given_stats_case(variant);
    if (c.op == SOFTMAX_OP_STATS) continue;
    calls.check_in_both_places(c);
    c.shape = {1 + variant % 4, variant % 3 == 0 ? 5000 : 300};
    c.axis = -1;
    c.x_lie = Lie::kContiguous;
    c.x_dtype = c.y_dtype = kEveryType[variant % 3];
    calls.check(c);
  }
  calls.require_served({SOFTMAX_ALGO_COLUMN});
}

TEST_CASE("general: an element above the given maximum is what the formula says", "[general]") {
  GeneralCalls calls(device());
  for (const double above : {1e-7, 0.5, 30.0, 600.0}) {
    for (const int op : {0, 1}) {
      GeneralCase c;
      c.shape = {3, 40};
      c.op = op;
      c.given_stats = true;
      c.x_dtype = c.y_dtype = SOFTMAX_DTYPE_F64;
      GeneralValues values = make_values(c);
      for (std::size_t r = 0; r < 3; ++r) values.x[40 * r + 7] = values.row_max[r] + above;
      calls.check(c, values);
    }
  }
  calls.require_served({});
}

TEST_CASE("general: edge statistics that are given make the row what section 10 says",
          "[general]") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  GeneralCalls calls(device());
  for (const std::int64_t cols : {6, 700}) {
    for (const int op : {0, 1}) {
      for (const int empty : {0, 1}) {
        for (const bool limit : {false, true}) {
          GeneralCase c;
          c.shape = {6, cols};
          c.op = op;
          c.empty_row = empty;
          c.given_stats = true;
          c.has_stats = true;
          c.has_row_scale = limit;
          GeneralValues values = make_values(c);
          for (float &row_scale : values.row_scale) row_scale = limit ? 0.0f : 1.0f;
          values.row_max = {-kInf, NAN, kInf, values.row_max[3], values.row_max[4], 1e3f};
          values.row_sum = {0, 1, 1, values.row_sum[3], NAN, 3};
          values.x[static_cast<std::size_t>(3 * cols + 2)] = limit ? 1.0 : std::nan("");
          calls.check(c, values);
        }
      }
    }
  }
  calls.require_served({SOFTMAX_ALGO_WARP});
}

TEST_CASE("general: a value that is special, in each place, does what section 2 says",
          "[general]") {
  GeneralCalls calls(device());
  int turn = 0;
  for (const double special : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    for (const int kind : {0, 1, 2, 3, 4}) {
      for (const int op : {0, 1, 2}) {
        for (const bool sink : {false, true}) {
          for (const std::int64_t cols : {6, 130, 1500}) {
            for (const int axis : {0, 1}) {
              if (axis == 0 && (kind == SOFTMAX_MASK_CAUSAL || cols > 1000)) continue;
              GeneralCase c;
              c.shape = axis == 1 ? std::vector<std::int64_t>{4, cols}
                                  : std::vector<std::int64_t>{cols, 4};
              c.axis = axis;
              c.x_dtype = c.y_dtype = kEveryType[turn++ % 4];
              c.mask_kind = kind;
              c.op = op;
              c.has_stats = true;
              c.has_sink = sink;
              c.has_row_scale = true;
              c.softcap = op == 1 ? 2.0 : 0.0;
              c.empty_row = SOFTMAX_EMPTY_ROW_ZERO;
              c.causal_offset = cols / 4;
              const GeneralValues plain = make_values(c);
              for (std::int64_t at = 0; at < 4 * cols; at += cols * 5 / 6) {
                GeneralValues values = plain;
                values.x[static_cast<std::size_t>(at)] = special;
                values.x[static_cast<std::size_t>(4 * cols - 1)] = special;
                calls.check(c, values);
              }
              GeneralValues values = plain;
              values.row_scale[1] = static_cast<float>(special);
              values.sink[2] = static_cast<float>(special);
              values.additive[0] = special;
              calls.check(c, values);
            }
          }
        }
      }
    }
  }
  calls.require_served({SOFTMAX_ALGO_WARP, SOFTMAX_ALGO_BLOCK, SOFTMAX_ALGO_COLUMN});
}

TEST_CASE("general: spreads up to those that break others keep the bounds", "[general]") {
  GeneralCalls calls(device());
  for (const double spread : {0.0, 0.01, 10.0, 60.0, 3000.0}) {
    for (const double scale : {0.37, 1.0, -3.3, 0.0}) {
      for (const softmax_dtype_t dtype :
           {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_BF16, SOFTMAX_DTYPE_F64}) {
        for (const int axis : {0, 1}) {
          GeneralCase c;
          c.shape = {axis == 1 ? 6 : 700, axis == 1 ? 700 : 6};
          c.axis = axis;
          c.spread = spread;
          c.scale = scale;
          c.x_dtype = c.y_dtype = dtype;
          c.has_stats = true;
          for (const int op : {0, 1, 2}) {
            c.op = op;
            calls.check(c);
          }
        }
      }
    }
  }
  calls.require_served({SOFTMAX_ALGO_WARP, SOFTMAX_ALGO_BLOCK, SOFTMAX_ALGO_COLUMN});
}

TEST_CASE("general: values near 2^26 in magnitude that are near each other keep the bounds",
          "[general]") {
  GeneralCalls calls(device());
  constexpr double kSign[] = {1, -1};
  for (const double sign : kSign) {
    for (const int way : {0, 1, 2}) {
      for (const std::int64_t cols : {90, 5000}) {
        for (const int op : {0, 1, 2}) {
          GeneralCase c;
          c.shape = {5, cols};
          c.op = op;
          c.has_stats = true;
          GeneralValues values = make_values(c);
          for (std::size_t i = 0; i < values.x.size(); ++i) {
            const auto step = static_cast<double>(static_cast<int>(4 * uniform(5, i)));
            // v in steps of some units, from scale alone, from row_scale, and from the mask.
            values.x[i] = sign * (way == 2 ? 2 * normal(6, i) : 1 + step * 0x1p-23);
            values.additive[i] = static_cast<float>(sign * (6.7e7 + 4 * step));
          }
          values.x = rounded_to(c.x_dtype, values.x);
          if (way == 0) c.scale = 6.1e7;
          if (way == 1) {
            c.scale = 0.7, c.has_row_scale = true;
            for (float &row_scale : values.row_scale) row_scale = 7.1e7f;
          }
          if (way == 2) c.mask_kind = SOFTMAX_MASK_ADDITIVE;
          calls.check(c, values);
        }
      }
    }
  }
  calls.require_served({SOFTMAX_ALGO_WARP, SOFTMAX_ALGO_BLOCK});
}

TEST_CASE("general: whole parts of a row far below the rest of it", "[general]") {
  GeneralCalls calls(device());
  for (const double below : {-1e9, -3.3e38}) {
    for (const std::int64_t cols : {700, 5000, 40000}) {
      for (const double scale : {1.0, -0.5}) {
        for (const softmax_dtype_t y_dtype : {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_BF16}) {
          for (const int op : {0, 1, 2}) {
            GeneralCase c;
            c.shape = {3, cols};
            c.op = op;
            c.y_dtype = y_dtype;
            c.scale = scale;
            c.has_stats = true;
            GeneralValues values = make_values(c);
            // What is left of a row are its beginning, its end, or a few in the middle of it.
            for (std::int64_t i = 0; i < 3 * cols; ++i) {
              const std::int64_t row = i / cols, col = i % cols;
              const bool is_left = row == 0   ? col < 40
                                   : row == 1 ? col >= cols - 3
                                              : std::abs(col - cols / 2) < 7;
              if (!is_left) values.x[static_cast<std::size_t>(i)] = scale > 0 ? below : -below;
            }
            values.x = rounded_to(c.x_dtype, values.x);
            calls.check(c, values);
          }
        }
      }
    }
  }
  calls.require_served({SOFTMAX_ALGO_BLOCK, SOFTMAX_ALGO_CLUSTER});
}

TEST_CASE("general: row_scale at its edges", "[general]") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  GeneralCalls calls(device());
  for (const int kind : {0, 1, 2, 3, 4}) {
    for (const std::int64_t cols : {1, 9, 800}) {
      for (const int op : {0, 1, 2}) {
        for (const int axis : {0, 1}) {
          if (axis == 0 && kind == SOFTMAX_MASK_CAUSAL) continue;
          GeneralCase c;
          c.shape = {axis == 1 ? 9 : cols, axis == 1 ? cols : 9};
          c.axis = axis;
          c.op = op;
          c.mask_kind = kind;
          c.causal_offset = -2;
          c.has_row_scale = c.has_stats = true;
          c.spread = 5;
          c.empty_row = op % 2;
          GeneralValues values = make_values(c);
          values.row_scale = {0.0f, -0.0f, NAN, kInf, -kInf, 1e-42f, -3e-39f, -2.5f, 3e38f};
          for (std::int64_t j = 0; j < cols; ++j) {
            // So that what the least factors leave is not nothing.
            for (const std::int64_t r : {5, 6}) {
              double &x = values.x[static_cast<std::size_t>(r * cols + j)];
              x = static_cast<float>(x * 5e36);
            }
            values.x[static_cast<std::size_t>(4 * cols + j)] = 1 + j % 3;  // all -inf
          }
          calls.check(c, values);
        }
      }
    }
  }
  calls.require_served({SOFTMAX_ALGO_WARP, SOFTMAX_ALGO_COLUMN});
}

TEST_CASE("general: causal offsets and row lengths beyond both ends", "[general]") {
  GeneralCalls calls(device());
  for (const std::int64_t cols : {1, 5, 300, 4500}) {
    for (const int op : {0, 1, 2}) {
      for (const bool sink : {false, true}) {
        GeneralCase c;
        c.shape = {2, 7, cols};
        c.op = op;
        c.has_sink = sink;
        c.has_stats = true;
        c.empty_row = op == 0;
        c.mask_kind = SOFTMAX_MASK_CAUSAL;
        for (const std::int64_t offset :
             {-(std::int64_t{1} << 62), std::int64_t{-8}, std::int64_t{-7}, std::int64_t{-6},
              std::int64_t{-1}, std::int64_t{0}, cols - 8, cols - 7, cols - 1, cols,
              std::int64_t{1} << 62}) {
          c.causal_offset = offset;
          calls.check(c);
        }
        c.mask_kind = SOFTMAX_MASK_ROW_LENGTH;
        GeneralValues values = make_values(c);
        const auto n = static_cast<std::int32_t>(cols);
        values.length = {INT32_MIN, -1,      0,         1, 2,     n - 1, n,
                         n + 1,     n + 100, INT32_MAX, 3, n / 2, n / 3, 0};
        calls.check(c, values);
        c.shape = {2, cols, 7};  // the same over an axis that is not the innermost
        c.axis = 1;
        calls.check(c, values);
        c.axis = -1;
      }
    }
  }
  calls.require_served({SOFTMAX_ALGO_WARP, SOFTMAX_ALGO_BLOCK, SOFTMAX_ALGO_COLUMN});
}

}  // namespace softmax_test
