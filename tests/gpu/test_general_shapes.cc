// The general call at shapes that GPUs meet: long rows, many rows, and axes with little, some and
// much inside of them. Of many rows, some are compared.
#include <algorithm>

#include "support/catch.h"
#include "support/general_calls.h"

namespace softmax_test {
namespace {

// What a row can need, from nothing but a scale to all of it.
void shape_variant(GeneralCase *c, int variant) {
  switch (variant) {
    case 0: c->scale = 0.125; break;
    case 1:
      c->mask_kind = SOFTMAX_MASK_BOOL_KEEP;
      c->op = SOFTMAX_OP_LOGSOFTMAX;
      c->has_stats = true;
      break;
    case 2:
      c->mask_kind = SOFTMAX_MASK_CAUSAL;
      if (c->axis_index() == 0) c->mask_kind = SOFTMAX_MASK_NONE;
      c->causal_offset = c->cols() / 2;
      c->has_sink = true;
      break;
    case 3:
      c->mask_kind = SOFTMAX_MASK_ROW_LENGTH;
      c->empty_row = SOFTMAX_EMPTY_ROW_ZERO;
      c->has_row_scale = true;
      break;
    case 4:
      c->mask_kind = SOFTMAX_MASK_ADDITIVE;
      c->scale = -0.7;
      c->softcap = 5;
      c->op = SOFTMAX_OP_LOGSOFTMAX;
      break;
    case 5:
      c->op = SOFTMAX_OP_STATS;
      c->has_stats = true;
      c->has_sink = true;
      break;
    case 6:
      c->given_stats = true;
      c->has_stats = true;
      c->has_row_scale = true;
      break;
    default: break;
  }
}
constexpr int kShapeVariants = 7;

// What registers hold: no mask and no given statistics.
void held_variant(GeneralCase *c, int variant) {
  c->op = variant % 2 == 0 ? SOFTMAX_OP_SOFTMAX : SOFTMAX_OP_LOGSOFTMAX;
  c->has_stats = variant % 3 == 1;
  c->has_row_scale = variant % 5 == 2;
  c->has_sink = variant % 4 == 3;
  c->scale = variant % 7 == 3 ? -0.7 : variant % 7 == 5 ? 0.125 : 1.0;
  c->empty_row = variant % 3 == 0 ? SOFTMAX_EMPTY_ROW_ZERO : SOFTMAX_EMPTY_ROW_NAN;
  if (variant % 11 == 10 && c->has_stats) c->op = SOFTMAX_OP_STATS;
}

constexpr softmax_dtype_t kFast[] = {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_BF16, SOFTMAX_DTYPE_F16};

}  // namespace

TEST_CASE("general: rows of every length, contiguous and apart, from aligned addresses and not",
          "[general][shapes]") {
  GeneralCalls calls(device());
  int turn = 0;
  for (const std::int64_t cols :
       {33, 100, 1000, 1024, 4096, 4097, 16384, 32768, 50257, 128256, 262144}) {
    for (int variant = 0; variant < kShapeVariants; ++variant) {
      GeneralCase c;
      c.shape = {std::clamp<std::int64_t>(150000 / cols, 3, 1500) + variant, cols};
      c.every = c.shape[0] > 100 ? 7 : 1;
      ++turn;
      c.x_dtype = c.y_dtype = kFast[turn % 3];
      c.offset = turn % 4 == 0 ? 1 : 0;
      c.x_lie = c.y_lie = c.mask_lie = turn % 5 == 4 ? Lie::kPadded : Lie::kContiguous;
      c.gap = 0xff;
      c.seed = static_cast<std::uint64_t>(turn);
      c.in_place = turn % 3 == 1 && variant != 5;
      shape_variant(&c, variant);
      calls.check(c);
    }
  }
  calls.require_served({SOFTMAX_ALGO_WARP, SOFTMAX_ALGO_BLOCK, SOFTMAX_ALGO_CLUSTER});
}

TEST_CASE("general: long rows of other types and of two", "[general][shapes]") {
  constexpr softmax_dtype_t kTypes[][2] = {
      {SOFTMAX_DTYPE_F64, SOFTMAX_DTYPE_F64},     {SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_F32},
      {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_BF16},    {SOFTMAX_DTYPE_F8_E4M3, SOFTMAX_DTYPE_F32},
      {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F8_E5M2}, {SOFTMAX_DTYPE_BF16, SOFTMAX_DTYPE_F64}};
  GeneralCalls calls(device());
  int turn = 0;
  for (const std::int64_t cols : {1000, 4097, 32768, 128256}) {
    for (const auto &types : kTypes) {
      for (const int variant : {turn % kShapeVariants, (turn + 3) % kShapeVariants}) {
        GeneralCase c;
        c.shape = {4, cols};
        c.x_dtype = types[0];
        c.y_dtype = types[1];
        c.y_scale = types[1] == SOFTMAX_DTYPE_F8_E5M2 ? 4096.0 : 0.0;
        c.seed = static_cast<std::uint64_t>(++turn);
        c.x_lie = kLies[turn % 4];
        shape_variant(&c, variant);
        calls.check(c);
      }
    }
  }
  calls.require_served({});
}

TEST_CASE("general: more rows than the device has blocks", "[general][shapes]") {
  GeneralCalls calls(device());
  int turn = 0;
  for (const std::int64_t cols : {1, 3, 33, 128}) {
    for (const int variant : {0, 1, 3, 5, 6}) {
      GeneralCase c;
      c.shape = {std::min<std::int64_t>(2000000 / cols, 100003), cols};
      c.every = 97;
      c.x_dtype = c.y_dtype = kFast[++turn % 3];
      c.seed = static_cast<std::uint64_t>(turn);
      shape_variant(&c, variant);
      calls.check(c);
    }
  }
  calls.require_served({SOFTMAX_ALGO_WARP});
}

TEST_CASE("general: an axis with much inside of it", "[general][shapes]") {
  struct Columns {
    std::vector<std::int64_t> shape;
    int axis;
    std::int64_t every;
  };
  GeneralCalls calls(device());
  int turn = 0;
  for (const Columns &columns : {Columns{{64, 1000, 49}, 1, 37},
                                 {{3, 21, 1000}, 1, 11},
                                 {{2, 5000, 2}, 1, 1},
                                 {{1024, 1024}, 0, 31},
                                 {{8192, 24}, 0, 1},
                                 {{40000, 3}, 0, 1},
                                 {{2, 70, 5, 784}, 1, 29}}) {
    for (int variant = 0; variant < kShapeVariants; ++variant) {
      GeneralCase c;
      c.shape = columns.shape;
      c.axis = columns.axis;
      c.every = columns.every;
      c.x_dtype = c.y_dtype = kEveryType[++turn % 6];
      c.seed = static_cast<std::uint64_t>(turn);
      c.in_place = turn % 4 == 1 && variant != 5;
      c.offset = turn % 5 == 0 ? 1 : 0;
      shape_variant(&c, variant);
      calls.check(c);
    }
  }
  calls.require_served({SOFTMAX_ALGO_COLUMN});
}

TEST_CASE("general: an axis with 1 to 784 elements inside of it, packed and padded",
          "[general][shapes]") {
  GeneralCalls calls(device());
  int turn = 0;
  for (const std::int64_t inner : {1, 2, 3, 7, 8, 33, 784}) {
    for (const std::int64_t cols : {1, 10, 50, 300}) {
      for (int variant = 0; variant < kShapeVariants; ++variant) {
        GeneralCase c;
        c.shape = {3, cols, inner};
        c.axis = 1;
        c.every = inner == 784 ? 61 : 1;
        c.x_dtype = c.y_dtype = kEveryType[++turn % 6];
        c.x_lie = c.y_lie = c.mask_lie = turn % 3 == 2 ? Lie::kPadded : Lie::kContiguous;
        c.gap = 0xff;
        c.seed = static_cast<std::uint64_t>(turn);
        shape_variant(&c, variant);
        c.in_place = turn % 2 == 1 && variant != 5;
        calls.check(c);
      }
    }
  }
  calls.require_served({SOFTMAX_ALGO_COLUMN});
}

TEST_CASE("general: an axis of every length across memory, of every type and place",
          "[general][shapes][column]") {
  constexpr softmax_dtype_t kTypes[][2] = {
      {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F32},      {SOFTMAX_DTYPE_BF16, SOFTMAX_DTYPE_BF16},
      {SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_F16},      {SOFTMAX_DTYPE_F8_E4M3, SOFTMAX_DTYPE_F8_E4M3},
      {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F16},      {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F8_E5M2},
      {SOFTMAX_DTYPE_BF16, SOFTMAX_DTYPE_F8_E4M3}, {SOFTMAX_DTYPE_F8_E5M2, SOFTMAX_DTYPE_BF16}};
  GeneralCalls calls(device());
  int turn = 0;
  std::vector<std::int64_t> lengths;
  for (std::int64_t cols = 1; cols <= 40; ++cols) lengths.push_back(cols);
  lengths.insert(lengths.end(), {64, 65, 127, 256, 257, 512, 513, 1000, 1025, 4097, 8192});
  for (const std::int64_t cols : lengths) {
    for (const std::int64_t inner : {2, 3, 4, 6, 33, 64}) {
      if (cols > 600 && inner > 8) continue;
      const auto &types = kTypes[++turn % 8];
      GeneralCase c;
      c.shape = {cols > 600 ? 2 : 3, cols, inner};
      c.axis = 1;
      c.every = cols > 40 ? 5 : 1;
      c.x_dtype = types[0];
      c.y_dtype = types[1];
      c.y_scale = types[1] == SOFTMAX_DTYPE_F8_E5M2 ? 64.0 : 0.0;
      c.seed = static_cast<std::uint64_t>(turn);
      c.offset = turn % 6 == 5 ? 1 : 0;
      c.x_lie = c.y_lie = turn % 5 == 3 ? Lie::kPadded : Lie::kContiguous;
      c.gap = 0xff;
      held_variant(&c, turn / 3);
      c.in_place = turn % 3 == 1 && types[0] == types[1] && c.op != SOFTMAX_OP_STATS;
      calls.check(c);
    }
  }
  calls.require_served({SOFTMAX_ALGO_COLUMN});
}

TEST_CASE("general: results wider than elements, by whole warps and others", "[general][shapes]") {
  // Neighbouring lanes store for each other where a warp's packs are all there.
  GeneralCalls calls(device());
  int turn = 0;
  for (const softmax_dtype_t x :
       {SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_BF16, SOFTMAX_DTYPE_F8_E4M3, SOFTMAX_DTYPE_F8_E5M2}) {
    for (const softmax_dtype_t y : {SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_BF16, SOFTMAX_DTYPE_F32}) {
      if (format_of(y).size_bytes <= format_of(x).size_bytes) continue;
      for (const std::int64_t cols : {40, 1040, 2048, 4101, 9008, 33008}) {
        GeneralCase c;
        c.shape = {3, cols};
        c.x_dtype = x;
        c.y_dtype = y;
        c.scale = 0.7;
        c.op = turn % 2;
        c.offset = turn % 5 == 0 ? 1 : 0;
        c.seed = static_cast<std::uint64_t>(turn++);
        calls.check(c, make_values(c));
      }
    }
  }
  calls.require_served({SOFTMAX_ALGO_WARP, SOFTMAX_ALGO_BLOCK, SOFTMAX_ALGO_CLUSTER});
}

TEST_CASE("general: transposed matrices", "[general][shapes]") {
  GeneralCalls calls(device());
  for (int variant = 0; variant < kShapeVariants; ++variant) {
    GeneralCase c;
    c.shape = {513, 700};
    c.every = 9;
    c.x_dtype = c.y_dtype = kFast[variant % 3];
    c.x_lie = c.mask_lie = Lie::kReversed;
    c.y_lie = variant % 2 == 0 ? Lie::kReversed : Lie::kContiguous;
    shape_variant(&c, variant);
    calls.check(c);
  }
  calls.require_served({SOFTMAX_ALGO_COLUMN});
}

}  // namespace softmax_test
