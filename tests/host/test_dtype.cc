// core/dtype.h: the 16-bit conversions, exhaustively, and the tables of types.
#include <cmath>
#include <cstring>
#include <limits>

#include "core/dtype.h"
#include "support/catch.h"
#include "support/element.h"
#include "support/inputs.h"

namespace softmax_test {
namespace {

using softmax::bf16_t;
using softmax::f16_t;
using softmax::to_bf16;
using softmax::to_f16;
using softmax::to_float;

std::uint16_t bits_of(f16_t value) { return value.bits; }
std::uint16_t bits_of(bf16_t value) { return value.bits; }

// Decodes every pattern and encodes it back; against the tests' own decoding.
template <typename Half, typename Encode>
void check_every_pattern(softmax_dtype_t dtype, Encode encode) {
  int wrong = 0;
  for (int bits = 0; bits < 65536; ++bits) {
    const Half half = {static_cast<std::uint16_t>(bits)};
    const float value = to_float(half);
    const double expected = decode(dtype, &half, 0);
    if (std::isnan(expected)) {
      // A NaN stays one, in both directions.
      wrong += std::isnan(value) && std::isnan(to_float(encode(value))) ? 0 : 1;
    } else {
      wrong += value == expected && std::signbit(value) == std::signbit(expected) ? 0 : 1;
      wrong += bits_of(encode(value)) == bits ? 0 : 1;
    }
  }
  CHECK(wrong == 0);
}

// Rounds values around every boundary between two neighbours, and random ones.
template <typename Encode>
void check_rounding(softmax_dtype_t dtype, Encode encode) {
  int wrong = 0;
  const auto check = [&](float value) {
    std::uint16_t expected;
    softmax_test::encode(dtype, value, &expected, 0);
    wrong += bits_of(encode(value)) == expected ? 0 : 1;
  };
  for (int bits = 0; bits < 65536; ++bits) {
    const auto low = static_cast<std::uint16_t>(bits), high = static_cast<std::uint16_t>(bits + 1);
    const double a = decode(dtype, &low, 0), b = decode(dtype, &high, 0);
    if (!std::isfinite(a) || !std::isfinite(b) || std::signbit(a) != std::signbit(b)) continue;
    const auto middle = static_cast<float>((a + b) / 2);  // exact
    check(middle);
    check(std::nextafter(middle, -HUGE_VALF));
    check(std::nextafter(middle, HUGE_VALF));
  }
  for (std::uint64_t k = 0; k < 2000000; ++k) {
    const auto pattern = static_cast<std::uint32_t>(uniform(14, k) * 4294967296.0);
    float value;
    std::memcpy(&value, &pattern, 4);
    if (!std::isnan(value)) check(value);
  }
  for (const float value : {0.0f, -0.0f, HUGE_VALF, -HUGE_VALF, 65519.996f, 65520.0f, 3.4e38f,
                            1e-45f, std::numeric_limits<float>::min()}) {
    check(value);
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("every f16 pattern converts to f32 and back", "[dtype]") {
  check_every_pattern<f16_t>(SOFTMAX_DTYPE_F16, [](float v) { return to_f16(v); });
}
TEST_CASE("every bf16 pattern converts to f32 and back", "[dtype]") {
  check_every_pattern<bf16_t>(SOFTMAX_DTYPE_BF16, [](float v) { return to_bf16(v); });
}
TEST_CASE("f32 rounds to the nearest f16, to even on a tie", "[dtype]") {
  check_rounding(SOFTMAX_DTYPE_F16, [](float v) { return to_f16(v); });
}
TEST_CASE("f32 rounds to the nearest bf16, to even on a tie", "[dtype]") {
  check_rounding(SOFTMAX_DTYPE_BF16, [](float v) { return to_bf16(v); });
}

#if defined(__FLT16_MAX__)
TEST_CASE("f16 conversions agree with the compiler's own type", "[dtype]") {
  int wrong = 0;
  for (int bits = 0; bits < 65536; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    _Float16 half;
    std::memcpy(&half, &pattern, 2);
    const auto expected = static_cast<float>(half);
    const float got = to_float(f16_t{pattern});
    wrong += got == expected || (std::isnan(got) && std::isnan(expected)) ? 0 : 1;
  }
  for (std::uint64_t k = 0; k < 1000000; ++k) {
    const auto value =
        static_cast<float>(normal(15, k) * std::ldexp(1, static_cast<int>(k % 48) - 30));
    const auto half = static_cast<_Float16>(value);
    std::uint16_t expected;
    std::memcpy(&expected, &half, 2);
    wrong += to_f16(value).bits == expected ? 0 : 1;
  }
  CHECK(wrong == 0);
}
#endif

TEST_CASE("a NaN with low bits alone stays a NaN in 16 bits", "[dtype]") {
  const float narrow = softmax::float_from_bits(0x7f800001u);
  CHECK(std::isnan(to_float(to_bf16(narrow))));
  CHECK(std::isnan(to_float(to_f16(narrow))));
}

TEST_CASE("sizes and names of types are those of the header", "[dtype]") {
  const struct {
    int dtype, size;
    const char *name;
  } types[] = {{SOFTMAX_DTYPE_F32, 4, "f32"},         {SOFTMAX_DTYPE_F16, 2, "f16"},
               {SOFTMAX_DTYPE_BF16, 2, "bf16"},       {SOFTMAX_DTYPE_F64, 8, "f64"},
               {SOFTMAX_DTYPE_F8_E4M3, 1, "f8_e4m3"}, {SOFTMAX_DTYPE_F8_E5M2, 1, "f8_e5m2"}};
  for (const auto &type : types) {
    CHECK(softmax::dtype_size(type.dtype) == type.size);
    CHECK(std::string(softmax::dtype_name(type.dtype)) == type.name);
  }
  for (const int none : {0, -1, 7, 1000}) CHECK(softmax::dtype_size(none) == 0);
}

TEST_CASE("exactly the documented pairs of types are supported", "[dtype]") {
  int supported = 0;
  for (int x = -1; x <= 7; ++x) {
    for (int y = -1; y <= 7; ++y) supported += softmax::dtype_pair_supported(x, y) ? 1 : 0;
  }
  CHECK(supported == 6);
  for (const TypePair &types : kTypePairs) CHECK(softmax::dtype_pair_supported(types.x, types.y));
}

}  // namespace softmax_test
