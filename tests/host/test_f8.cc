// core/f8.h: both 8-bit types, every pattern and every rounding boundary, against formats computed
// from their definition.
#include <cmath>
#include <cstring>

#include "core/f8.h"
#include "support/catch.h"
#include "support/element.h"
#include "support/inputs.h"

namespace softmax_test {
namespace {

int bits_of(softmax_dtype_t dtype, float value) {
  return dtype == SOFTMAX_DTYPE_F8_E4M3 ? softmax::to_f8_e4m3(value).bits
                                        : softmax::to_f8_e5m2(value).bits;
}
float value_of(softmax_dtype_t dtype, int bits) {
  const auto byte = static_cast<std::uint8_t>(bits);
  return dtype == SOFTMAX_DTYPE_F8_E4M3 ? softmax::to_float(softmax::f8_e4m3_t{byte})
                                        : softmax::to_float(softmax::f8_e5m2_t{byte});
}
int expected_bits(softmax_dtype_t dtype, double value) {
  unsigned char cell = 0;
  encode(dtype, value, &cell, 0);
  return cell;
}

}  // namespace

TEST_CASE("every 8-bit pattern has its value and comes back from it", "[f8]") {
  for (const softmax_dtype_t dtype : {SOFTMAX_DTYPE_F8_E4M3, SOFTMAX_DTYPE_F8_E5M2}) {
    int nans = 0;
    for (int bits = 0; bits < 256; ++bits) {
      const auto byte = static_cast<unsigned char>(bits);
      const double expected = decode(dtype, &byte, 0);
      const float value = value_of(dtype, bits);
      INFO(dtype << " " << bits);
      if (std::isnan(expected)) {
        ++nans;
        CHECK(std::isnan(value));
        CHECK(std::isnan(value_of(dtype, bits_of(dtype, value))));
        continue;
      }
      CHECK(value == expected);
      if (dtype == SOFTMAX_DTYPE_F8_E4M3 || std::isfinite(value)) {
        CHECK(bits_of(dtype, value) == bits);
      }
    }
    CHECK(nans == (dtype == SOFTMAX_DTYPE_F8_E4M3 ? 2 : 6));
  }
}

TEST_CASE("8-bit rounding is to nearest even on either side of every boundary", "[f8]") {
  for (const softmax_dtype_t dtype : {SOFTMAX_DTYPE_F8_E4M3, SOFTMAX_DTYPE_F8_E5M2}) {
    const int largest = dtype == SOFTMAX_DTYPE_F8_E4M3 ? 0x7e : 0x7b;
    for (int bits = 0; bits < largest; ++bits) {
      const float middle = (value_of(dtype, bits) + value_of(dtype, bits + 1)) / 2;
      for (const float sign : {1.0f, -1.0f}) {
        for (const float v : {std::nextafter(middle, 0.0f), middle, std::nextafter(middle, 1e9f)}) {
          INFO(dtype << " " << v * sign);
          CHECK(bits_of(dtype, v * sign) == expected_bits(dtype, v * sign));
        }
      }
    }
    for (std::uint64_t i = 0; i < 20000; ++i) {
      const auto v = static_cast<float>(std::ldexp(normal(3, i), static_cast<int>(i % 60) - 40));
      CHECK(bits_of(dtype, v) == expected_bits(dtype, v));
    }
  }
}

TEST_CASE("beyond the largest number 8-bit types saturate, and E5M2 keeps infinities", "[f8]") {
  CHECK(bits_of(SOFTMAX_DTYPE_F8_E4M3, 449.0f) == 0x7e);
  CHECK(bits_of(SOFTMAX_DTYPE_F8_E4M3, -1e30f) == 0xfe);
  CHECK(bits_of(SOFTMAX_DTYPE_F8_E4M3, -HUGE_VALF) == 0xfe);
  CHECK(bits_of(SOFTMAX_DTYPE_F8_E5M2, 1e30f) == 0x7b);
  CHECK(bits_of(SOFTMAX_DTYPE_F8_E5M2, 61440.0f) == 0x7b);
  CHECK(bits_of(SOFTMAX_DTYPE_F8_E5M2, -HUGE_VALF) == 0xfc);
  CHECK(std::isnan(value_of(SOFTMAX_DTYPE_F8_E4M3, bits_of(SOFTMAX_DTYPE_F8_E4M3, NAN))));
  CHECK(std::isnan(value_of(SOFTMAX_DTYPE_F8_E5M2, bits_of(SOFTMAX_DTYPE_F8_E5M2, NAN))));
}

}  // namespace softmax_test
