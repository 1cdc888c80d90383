// The general call, forward: layouts, types, values, masks, sinks and statistics, each crossed with
// the others, against the reference.
#include "host/api.h"
#include "support/catch.h"
#include "support/general.h"
#include "support/general_calls.h"
#include "support/inputs.h"

namespace softmax_test {
namespace {

std::int64_t count = 0;  // of calls that were checked

void check(softmax_handle_t handle, GeneralCase c, const GeneralValues &values) {
  for (const softmax_algo_t algo : kBoth) {
    c.algo = algo;
    const std::string wrong = check_general(handle, c, values);
    CHECK(wrong == "");
    ++count;
  }
}
void check(softmax_handle_t handle, const GeneralCase &c) { check(handle, c, make_values(c)); }

}  // namespace

TEST_CASE("every layout of x and y, every axis: softmax, log-softmax and statistics", "[general]") {
  const CpuHandle handle;
  for (const GeneralShape &shape : general_shapes()) {
    for (const Lie x_lie : kLies) {
      for (const Lie y_lie : kLies) {
        GeneralCase c = case_of(shape);
        c.x_lie = x_lie;
        c.y_lie = y_lie;
        for (const int op : {0, 1, 2}) {
          c.op = op;
          c.has_stats = op == SOFTMAX_OP_STATS;
          for (const softmax_dtype_t dtype :
               {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_F64}) {
            c.x_dtype = c.y_dtype = dtype;
            check(handle, c);
            c.in_place = true;
            if (op != SOFTMAX_OP_STATS && x_lie == y_lie) check(handle, c);
            c.in_place = false;
          }
        }
      }
    }
  }
}

TEST_CASE("every pair of types", "[general]") {
  const CpuHandle handle;
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
          check(handle, c);
          if (format_of(y).size_bytes == 1) {
            c.y_scale = op == 0 ? 448.0 : 2.5;
            check(handle, c);
            c.y_scale = 0;
          }
        }
      }
    }
  }
}

TEST_CASE("every mix of mask, scale, soft-cap, sink and operation", "[general]") {
  const CpuHandle handle;
  for (int variant = 0; variant < kVariants; ++variant) {
    for (int k = 0; k < 3; ++k) {
      GeneralCase c = mixed_case(variant, k);
      check(handle, c);
      c.in_place = c.op != SOFTMAX_OP_STATS && c.x_lie == c.y_lie && c.x_dtype == c.y_dtype;
      if (c.in_place) check(handle, c);
    }
  }
  CHECK(count > 4000);
}

TEST_CASE("long rows, in parts, in every layout", "[general]") {
  const CpuHandle handle;
  for (const std::vector<std::int64_t> &shape : {std::vector<std::int64_t>{2, 40000}, {3, 9000}}) {
    for (const Lie lie : kLies) {
      for (const int variant : {0, 1, 2, 3, 5, 34, 67, 93, 124, 480}) {
        GeneralCase c;
        c.shape = shape;
        c.axis = -1;
        c.x_lie = c.y_lie = c.mask_lie = lie;
        vary(&c, variant);
        c.x_dtype = c.y_dtype = kEveryType[variant % 4];
        const std::string wrong = check_general(handle, c);
        CHECK(wrong == "");
        c.in_place = c.op != SOFTMAX_OP_STATS;
        const std::string in_place = check_general(handle, c);
        CHECK(in_place == "");
      }
    }
  }
}

TEST_CASE("given statistics: the last pass alone", "[general]") {
  const CpuHandle handle;
  for (int variant = 0; variant < kVariants; variant += 1) {
    const GeneralCase c = given_stats_case(variant);
    if (c.op != SOFTMAX_OP_STATS) check(handle, c);
  }
}

TEST_CASE("an element above the given maximum is what the formula says", "[general]") {
  const CpuHandle handle;
  for (const double above : {1e-7, 0.5, 30.0, 600.0}) {
    for (const int op : {0, 1}) {
      GeneralCase c;
      c.shape = {3, 40};
      c.op = op;
      c.given_stats = true;
      c.x_dtype = c.y_dtype = SOFTMAX_DTYPE_F64;
      GeneralValues values = make_values(c);
      for (std::size_t r = 0; r < 3; ++r) values.x[40 * r + 7] = values.row_max[r] + above;
      check(handle, c, values);
    }
  }
}

TEST_CASE("a value that is special, in each place, does what section 2 says", "[general]") {
  const CpuHandle handle;
  for (const double special : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    for (const int kind : {0, 1, 2, 3, 4}) {
      for (const int op : {0, 1, 2}) {
        for (const bool sink : {false, true}) {
          GeneralCase c;
          c.shape = {4, 6};
          c.mask_kind = kind;
          c.op = op;
          c.has_stats = true;
          c.has_sink = sink;
          c.has_row_scale = true;
          c.softcap = op == 1 ? 2.0 : 0.0;
          c.empty_row = SOFTMAX_EMPTY_ROW_ZERO;
          c.causal_offset = 1;
          for (std::size_t at = 0; at < 24; at += 5) {
            GeneralValues values = make_values(c);
            values.x[at] = special;
            for (const softmax_algo_t algo : kBoth) {
              c.algo = algo;
              CHECK(check_general(handle, c, values) == "");
            }
          }
          GeneralValues values = make_values(c);
          values.row_scale[1] = static_cast<float>(special);
          values.sink[2] = static_cast<float>(special);
          values.additive[0] = special;
          for (const softmax_algo_t algo : kBoth) {
            c.algo = algo;
            CHECK(check_general(handle, c, values) == "");
          }
        }
      }
    }
  }
}

TEST_CASE("spreads up to those that break others keep the bounds", "[general]") {
  const CpuHandle handle;
  for (const double spread : {0.0, 0.01, 10.0, 60.0, 3000.0}) {
    for (const double scale : {0.37, 1.0, -3.3, 0.0}) {
      for (const softmax_dtype_t dtype :
           {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_BF16, SOFTMAX_DTYPE_F64}) {
        GeneralCase c;
        c.shape = {6, 700};
        c.spread = spread;
        c.scale = scale;
        c.x_dtype = c.y_dtype = dtype;
        c.has_stats = true;
        for (const int op : {0, 1, 2}) {
          c.op = op;
          check(handle, c);
        }
      }
    }
  }
}

}  // namespace softmax_test
