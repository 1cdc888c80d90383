// Rows of whole words, aligned and at one pitch, have kernels of their own, and the bits of other
// rows: those at another address, which check_bits tries, are for the kernels that take any.
#include <cmath>

#include "gpu/general_bits.h"
#include "support/catch.h"
#include "support/general_calls.h"

namespace softmax_test {
namespace {

// With a NaN, an infinity and a negative factor.
void check_words(Bits *bits, const GeneralCase &c) {
  GeneralValues values = make_values(c);
  values.x[static_cast<std::size_t>(c.cols() + 5)] = std::nan("");
  values.x[static_cast<std::size_t>(3 * c.cols() - 1)] = HUGE_VAL;
  if (c.has_row_scale) values.row_scale[0] = -0.8f;
  check_bits(bits, c, values);
}

}  // namespace

TEST_CASE("general: softmax of rows of whole words has the bits of other rows", "[general][bits]") {
  constexpr softmax_dtype_t kTypes[][2] = {{SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F32},
                                           {SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_F16},
                                           {SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_F32},
                                           {SOFTMAX_DTYPE_BF16, SOFTMAX_DTYPE_BF16},
                                           {SOFTMAX_DTYPE_BF16, SOFTMAX_DTYPE_F32}};
  // Few rows are a cluster's, for AUTO, where they are long.
  for (const softmax_algo_t algo : {SOFTMAX_ALGO_AUTO, SOFTMAX_ALGO_BLOCK}) {
    Bits bits(algo);
    for (const std::int64_t cols : {1032, 2048, 4104, 8192, 9000, 16384}) {
      for (const auto &types : kTypes) {
        for (const int kind : {SOFTMAX_MASK_NONE, SOFTMAX_MASK_BOOL_KEEP}) {
          GeneralCase c;
          c.shape = {6, cols};
          c.x_dtype = types[0];
          c.y_dtype = types[1];
          c.mask_kind = kind;
          c.scale = cols % 3 == 0 ? -0.7 : 0.7;
          c.has_row_scale = (cols / 8 + kind) % 2 != 0;
          c.empty_row = kind == SOFTMAX_MASK_NONE ? SOFTMAX_EMPTY_ROW_NAN : SOFTMAX_EMPTY_ROW_ZERO;
          c.spread = cols == 2048 ? 40 : 2;
          // Results of another length are never in place.
          if (c.x_dtype == c.y_dtype) {
            check_words(&bits, c);
            continue;
          }
          GeneralResult words;
          const GeneralValues values = make_values(c);
          if (!bits.run(c, values, &words)) continue;
          c.offset = 1;
          bits.same(c, values, words.y, "at another address");
        }
      }
    }
    CHECK(bits.compared() >= 6 * 5 * 2);
  }
}

TEST_CASE("general: gradients of rows of whole words have the bits of other rows",
          "[general][backward][bits]") {
  Bits gradients(SOFTMAX_ALGO_AUTO);
  for (const std::int64_t cols : {64, 136, 1000, 2048, 4104, 16384, 33000, 128256}) {
    for (const softmax_dtype_t dtype : {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_BF16}) {
      for (const bool is_empty_zero : {false, true}) {
        GeneralCase c;
        c.shape = {cols > 20000 ? 3 : 6, cols};
        c.x_dtype = c.y_dtype = dtype;
        c.direction = SOFTMAX_DIRECTION_BACKWARD;
        c.op = SOFTMAX_OP_LOGSOFTMAX;
        c.scale = is_empty_zero ? 1.0 : -0.7;
        c.has_row_scale = is_empty_zero;
        c.empty_row = is_empty_zero ? SOFTMAX_EMPTY_ROW_ZERO : SOFTMAX_EMPTY_ROW_NAN;
        check_words(&gradients, c);
      }
    }
  }
  CHECK(gradients.compared() >= 8 * 3 * 2);
}

}  // namespace softmax_test
