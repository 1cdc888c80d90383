// Bits of the general call: a row's do not depend on M, its position, alignment or pitch, in or out
// of place, on a graph that replays it, nor on whether statistics are asked for; and what is masked
// never shows.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "gpu/general_bits.h"
#include "support/catch.h"
#include "support/general_calls.h"

namespace softmax_test {
namespace {

// Cases that between them take every way through the kernels.
std::vector<GeneralCase> every_way() {
  std::vector<GeneralCase> cases;
  int turn = 0;
  for (const std::vector<std::int64_t> &shape : {std::vector<std::int64_t>{90, 5},
                                                 {700, 40},
                                                 {33, 1000},
                                                 {7, 3001},
                                                 {2, 9000},
                                                 {3, 50257},
                                                 {1, 140000}}) {
    for (const softmax_dtype_t dtype : {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_BF16, SOFTMAX_DTYPE_F64}) {
      for (const int kind : {0, 1, 2, 3, 4}) {
        for (const bool values : {false, true}) {
          // Of the longest rows some: what they take is time.
          if (shape[1] > 20000 && (turn + kind) % 3 != 0) {
            ++turn;
            continue;
          }
          GeneralCase c;
          c.shape = shape;
          c.x_dtype = c.y_dtype = dtype;
          c.mask_kind = kind;
          c.causal_offset = 3;
          c.op = ++turn % 2;
          if (values) c.scale = 0.3, c.has_row_scale = true, c.has_sink = true;
          if (!values && kind == 0) c.scale = turn % 4 == 0 ? 0.3 : 1.0;
          cases.push_back(c);
        }
      }
    }
  }
  return cases;
}

std::int64_t least_served(softmax_algo_t algo) {
  const bool is_there = algo != SOFTMAX_ALGO_CLUSTER || device().has_bulk_copies();
  return is_there && algo != SOFTMAX_ALGO_COLUMN ? 1 : 0;
}

}  // namespace

TEST_CASE("general: bits do not depend on M, position, address, pitch, place or a graph",
          "[general][bits]") {
  std::vector<Bits> every;
  for (const softmax_algo_t algo : GeneralCalls(device()).algos()) every.emplace_back(algo);
  for (const GeneralCase &c : every_way()) {
    const GeneralValues values = make_values(c);
    for (Bits &bits : every) check_bits(&bits, c, values);
  }
  for (const Bits &bits : every) {
    INFO(softmax_algo_name(bits.algo()));
    CHECK(bits.compared() >= least_served(bits.algo()));
  }
}

TEST_CASE("general: statistics change no bit of a result, and are the same alone and beside it",
          "[general][bits]") {
  for (const softmax_algo_t algo : GeneralCalls(device()).algos()) {
    Bits bits(algo);
    for (GeneralCase c : every_way()) {
      const GeneralValues values = make_values(c);
      GeneralResult plain, with, alone, other;
      const bool has_plain = !is_plain(c) && bits.run(c, values, &plain);
      c.has_stats = true;
      if (!bits.run(c, values, &with)) continue;
      INFO(c.text() << " by " << softmax_algo_name(algo));
      if (has_plain) CHECK(with.y.bytes == plain.y.bytes);
      c.in_place = true;
      if (bits.run(c, values, &other)) CHECK(same_stats(other, with));
      c.in_place = false;
      c.op = 1 - c.op;
      if (bits.run(c, values, &other)) CHECK(same_stats(other, with));
      c.op = SOFTMAX_OP_STATS;
      if (bits.run(c, values, &alone)) CHECK(same_stats(alone, with));
      c.offset = 1;
      c.x_lie = c.mask_lie = Lie::kPadded;
      if (bits.run(c, values, &other)) CHECK(same_stats(other, with));
      if (bits.run(c, values, &other, How::kOtherwise)) CHECK(same_stats(other, with));
      if (c.mask_kind == SOFTMAX_MASK_CAUSAL) continue;
      GeneralCase one = c;
      one.shape = {1, c.cols()};
      const std::int64_t r = c.rows() - 1;
      if (!bits.run(one, row_of(c, values, r), &other)) continue;
      CHECK(std::memcmp(&other.row_sum[0], &with.row_sum[static_cast<std::size_t>(r)], 4) == 0);
      CHECK(std::memcmp(&other.lse[0], &with.lse[static_cast<std::size_t>(r)], 4) == 0);
    }
    INFO(softmax_algo_name(algo));
    CHECK(bits.served() >= least_served(algo));
  }
}

TEST_CASE("general: a log-sum-exp alone is within its bound, and its row may lie anywhere",
          "[general][bits]") {
  for (const softmax_algo_t algo : GeneralCalls(device()).algos()) {
    Bits bits(algo);
    // Of 4000 and 60000 columns blocks have an even number of warps: 64 elements a thread, in 16
    // bits.
    for (const std::int64_t cols : {40, 4000, 5000, 50257, 60000, 131080}) {
      for (const softmax_dtype_t dtype :
           {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_BF16}) {
        for (const double scale : {1.0, -0.5, 0.3}) {
          GeneralCase c;
          c.shape = {2, 3, cols};
          c.x_dtype = c.y_dtype = dtype;
          c.op = SOFTMAX_OP_STATS;
          c.has_stats = c.lse_alone = true;
          c.scale = scale;
          c.spread = cols == 5000 ? 8 : 2;
          const GeneralValues values = make_values(c);
          GeneralResult first, other;
          if (!bits.run(c, values, &first)) continue;
          INFO(c.text() << " by " << softmax_algo_name(algo));
          const GeneralReference reference = make_general_reference(c, values);
          for (std::size_t r = 0; r < reference.lse.size(); ++r) {
            const auto exact = static_cast<double>(reference.lse[r]);
            const double ulp = std::fabs(std::nextafter(static_cast<float>(exact), 1e30f) -
                                         static_cast<float>(exact));
            CHECK(std::fabs(first.lse[r] - exact) <= 0x1p-21 + ulp);
          }
          GeneralCase moved = c;
          moved.offset = 1;
          moved.x_lie = Lie::kPadded;
          if (bits.run(moved, values, &other)) CHECK(same_bits(other.lse, first.lse));
          // Rows at no single pitch.
          moved.offset = 0;
          moved.shape = {cols, 2, 3};
          moved.axis = 0;
          moved.x_lie = Lie::kReversed;
          if (bits.run(moved, values, &other)) CHECK(same_bits(other.lse, first.lse));
          GeneralCase one = c;
          one.shape = {1, cols};
          if (!bits.run(one, row_of(c, values, 4), &other)) continue;
          CHECK(std::memcmp(&other.lse[0], &first.lse[4], 4) == 0);
        }
      }
    }
    INFO(softmax_algo_name(algo));
    CHECK(bits.served() >= least_served(algo));
  }
}

TEST_CASE("general: AUTO has the bits of the algorithm that it takes", "[general][bits]") {
  int compared = 0;
  for (GeneralCase c : every_way()) {
    // With nothing that softmax_select does not see.
    c.has_row_scale = c.has_sink = false;
    const GeneralValues values = make_values(c);
    const softmax_desc_t desc = desc_of(c);
    softmax_choice_t choice = {};
    choice.struct_size = sizeof choice;
    REQUIRE(softmax_select(device().handle(), SOFTMAX_ALGO_AUTO, &desc, &choice) ==
            SOFTMAX_SUCCESS);
    const GeneralResult by_auto = run_general(device(), c, values);
    c.algo = choice.algo;
    const GeneralResult by_name = run_general(device(), c, values);
    INFO(c.text());
    REQUIRE(by_auto.status == SOFTMAX_SUCCESS);
    REQUIRE(by_name.status == SOFTMAX_SUCCESS);
    CHECK(by_auto.y.bytes == by_name.y.bytes);
    ++compared;
  }
  CHECK(compared > 0);
}

TEST_CASE("general: bits of columns do not depend on what is beside them", "[general][bits]") {
  for (const softmax_algo_t algo : GeneralCalls(device()).algos()) {
    Bits bits(algo);
    int turn = 0;
    for (const std::vector<std::int64_t> &shape :
         {std::vector<std::int64_t>{21, 1000}, {1000, 33}, {700, 7}, {5000, 2}, {9, 3}}) {
      for (const int kind : {0, 1, 2, 4}) {
        for (const bool backward : {false, true}) {
          GeneralCase c;
          c.shape = shape;
          c.axis = 0;
          c.mask_kind = kind;
          c.op = ++turn % 2;
          c.direction = backward ? SOFTMAX_DIRECTION_BACKWARD : SOFTMAX_DIRECTION_FORWARD;
          c.given_stats = backward && turn % 3 == 0;
          c.x_dtype = c.y_dtype = kEveryType[turn / 2 % 3];
          c.scale = 0.9;
          const GeneralValues values = make_values(c);
          GeneralResult result;
          if (!bits.run(c, values, &result)) continue;
          bits.same(c, values, result.y, "in a graph", How::kOtherwise);
          GeneralCase other = c;
          other.offset = 1;
          bits.same(other, values, result.y, "at another address");
          other.offset = 0;
          other.in_place = true;
          bits.same(other, values, result.y, "in place");
          other.in_place = false;
          other.x_lie = other.y_lie = other.dy_lie = other.mask_lie = Lie::kPadded;
          bits.same(other, values, result.y, "padded");
          // The same columns twice over, one group behind the other.
          other = c;
          other.shape = {2, shape[0], shape[1]};
          other.axis = 1;
          GeneralValues twice = values;
          const auto again = [](auto &to) {
            const auto once = to;
            to.insert(to.end(), once.begin(), once.end());
          };
          again(twice.x), again(twice.dy), again(twice.y), again(twice.additive);
          again(twice.keep), again(twice.length), again(twice.row_max), again(twice.row_sum);
          Elements both = result.y;
          again(both.bytes);
          bits.same(other, twice, both, "in two groups");
        }
      }
    }
    if (algo == SOFTMAX_ALGO_COLUMN || !GeneralCalls(device()).may_refuse(algo)) {
      INFO(softmax_algo_name(algo));
      CHECK(bits.compared() > 0);
    }
  }
}

TEST_CASE("general: bits of columns do not depend on how many are side by side",
          "[general][bits][column]") {
  Bits bits(SOFTMAX_ALGO_COLUMN);
  int turn = 0;
  for (const std::int64_t cols : {5, 21, 32, 33, 100, 512, 1000, 3000}) {
    for (const softmax_dtype_t dtype :
         {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_BF16, SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_F8_E5M2}) {
      GeneralCase two;
      two.shape = {cols, 2};
      two.axis = 0;
      two.x_dtype = two.y_dtype = dtype;
      two.op = ++turn % 2;
      two.has_stats = turn % 3 == 0;
      two.scale = turn % 5 == 0 ? -0.9 : 1.0;
      const GeneralValues values = make_values(two);
      GeneralResult result;
      if (!bits.run(two, values, &result)) continue;
      const std::size_t row_bytes = result.y.bytes.size() / 2;
      for (const std::int64_t inner : {3, 4, 6, 33, 64, 640}) {
        if (inner > 64 && cols > 100) continue;
        GeneralCase more = two;
        more.shape = {cols, inner};
        GeneralValues again = values;
        Elements expected = result.y;
        again.x.resize(static_cast<std::size_t>(cols * inner));
        expected.bytes.resize(row_bytes * static_cast<std::size_t>(inner));
        for (std::size_t i = static_cast<std::size_t>(2 * cols); i < again.x.size(); ++i) {
          again.x[i] = again.x[i - static_cast<std::size_t>(2 * cols)];
        }
        for (std::size_t i = 2 * row_bytes; i < expected.bytes.size(); ++i) {
          expected.bytes[i] = expected.bytes[i - 2 * row_bytes];
        }
        bits.same(more, again, expected, "with others beside them");
      }
    }
  }
  CHECK(bits.compared() > 0);
}

TEST_CASE("general: bits of a gradient do not depend on M, position, address, pitch or place",
          "[general][backward][bits]") {
  for (const softmax_algo_t algo : GeneralCalls(device()).algos()) {
    Bits bits(algo);
    for (const std::vector<std::int64_t> &shape :
         {std::vector<std::int64_t>{90, 21}, {300, 129}, {7, 1000}, {3, 9000}, {2, 70000}}) {
      for (const int variant : {0, 6, 12, 18, 24, 48, 96, 252}) {
        GeneralCase c = backward_case(variant);
        c.shape = shape;
        c.axis = 1;
        c.x_dtype = c.y_dtype = kEveryType[variant / 6 % 4];
        c.dy_dtype = 0;
        c.x_lie = c.y_lie = c.dy_lie = c.mask_lie = Lie::kContiguous;
        check_bits(&bits, c, make_values(c));
      }
    }
    if (!GeneralCalls(device()).may_refuse(algo)) CHECK(bits.compared() > 0);
  }
}

TEST_CASE("general: what is masked, and what lies between rows, never shows", "[general][bits]") {
  for (const softmax_algo_t algo : GeneralCalls(device()).algos()) {
    Bits bits(algo);
    for (const std::int64_t cols : {7, 100, 1000, 5000, 40000}) {
      for (const int kind :
           {SOFTMAX_MASK_BOOL_KEEP, SOFTMAX_MASK_CAUSAL, SOFTMAX_MASK_ROW_LENGTH}) {
        for (const softmax_dtype_t dtype : {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F16}) {
          for (const int axis : {0, 1}) {
            if (axis == 0 && (kind == SOFTMAX_MASK_CAUSAL || cols > 5000)) continue;
            GeneralCase c;
            c.shape = {axis == 1 ? 6 : cols, axis == 1 ? cols : 6};
            c.axis = axis;
            c.x_dtype = c.y_dtype = dtype;
            c.mask_kind = kind;
            c.causal_offset = cols / 2;
            c.has_stats = true;
            c.op = static_cast<int>(cols % 2);
            const GeneralValues clean = make_values(c);
            GeneralValues dirty = clean;
            for (std::int64_t i = 0; i < 6 * cols; ++i) {
              const auto at = static_cast<std::size_t>(i);
              const std::int64_t r = i / cols, j = i % cols;
              const bool masked = kind == SOFTMAX_MASK_BOOL_KEEP ? clean.keep[at] == 0
                                  : kind == SOFTMAX_MASK_CAUSAL
                                      ? j > r + c.causal_offset
                                      : j >= clean.length[static_cast<std::size_t>(r)];
              if (masked) dirty.x[at] = i % 2 == 0 ? std::nan("") : HUGE_VAL;
            }
            for (const Lie lie : {Lie::kContiguous, Lie::kPadded}) {
              c.x_lie = c.y_lie = lie;
              GeneralResult expected, got;
              c.gap = 0xa5;
              if (!bits.run(c, clean, &expected)) continue;
              c.gap = 0xff;
              if (!bits.run(c, dirty, &got)) continue;
              INFO(c.text() << " by " << softmax_algo_name(algo));
              CHECK(got.y.bytes == expected.y.bytes);
              CHECK(same_stats(got, expected));
            }
          }
        }
      }
    }
    INFO(softmax_algo_name(algo));
    CHECK(bits.served() >= least_served(algo));
  }
}

}  // namespace softmax_test
