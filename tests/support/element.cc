// Element formats. See element.h.
#include "support/element.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace softmax_test {
namespace {

constexpr Format kF32 = {"f32", 4, 24, -126, 127};
constexpr Format kF16 = {"f16", 2, 11, -14, 15};
constexpr Format kBf16 = {"bf16", 2, 8, -126, 127};
constexpr Format kF64 = {"f64", 8, 53, -1022, 1023};

// A 16-bit pattern's value, from the definition of the format.
double value_of_bits(const Format &format, std::uint16_t bits) {
  const int mantissa_bits = format.precision - 1;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int biased = (bits & 0x7fff) >> mantissa_bits;
  const int all_ones = format.max_exponent - format.min_exponent + 2;
  double magnitude;
  if (biased == all_ones) {
    magnitude = mantissa == 0 ? HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
  } else if (biased == 0) {
    magnitude = std::ldexp(mantissa, format.min_exponent - mantissa_bits);
  } else {
    magnitude = std::ldexp(mantissa + (1 << mantissa_bits),
                           biased - 1 + format.min_exponent - mantissa_bits);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

using Table = std::array<double, 65536>;

const Table &table_of(const Format &format) {
  const auto build = [](const Format &f) {
    auto *table = new Table;
    for (int bits = 0; bits < 65536; ++bits) {
      (*table)[bits] = value_of_bits(f, static_cast<std::uint16_t>(bits));
    }
    return table;
  };
  static const Table &f16 = *build(kF16);
  static const Table &bf16 = *build(kBf16);
  return &format == &kF16 ? f16 : bf16;
}

std::uint16_t bits_of_value(const Format &format, double value) {
  const int mantissa_bits = format.precision - 1;
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const auto infinity =
      static_cast<std::uint16_t>((format.max_exponent - format.min_exponent + 2) << mantissa_bits);
  const auto quiet = static_cast<std::uint16_t>(1 << (mantissa_bits - 1));
  if (std::isnan(value)) return sign | infinity | quiet;
  if (std::isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  const double magnitude = std::fabs(value);
  int exponent = std::ilogb(magnitude);
  if (exponent < format.min_exponent) exponent = format.min_exponent;
  if (exponent > format.max_exponent) return sign | infinity;
  // An integer number of units in the last place. The exponent and the leading bit add up to the
  // biased exponent, for subnormals too, and a carry out of the mantissa goes where it belongs.
  const double units = std::nearbyint(std::ldexp(magnitude, mantissa_bits - exponent));
  const int bits = ((exponent - format.min_exponent) << mantissa_bits) + static_cast<int>(units);
  return sign | static_cast<std::uint16_t>(bits < infinity ? bits : infinity);
}

}  // namespace

const Format &format_of(softmax_dtype_t dtype) {
  switch (dtype) {
    case SOFTMAX_DTYPE_F32: return kF32;
    case SOFTMAX_DTYPE_F16: return kF16;
    case SOFTMAX_DTYPE_BF16: return kBf16;
    case SOFTMAX_DTYPE_F64: return kF64;
    default: std::abort();
  }
}

double decode(softmax_dtype_t dtype, const void *elements, std::int64_t index) {
  switch (dtype) {
    case SOFTMAX_DTYPE_F32: return static_cast<const float *>(elements)[index];
    case SOFTMAX_DTYPE_F64: return static_cast<const double *>(elements)[index];
    default: return table_of(format_of(dtype))[static_cast<const std::uint16_t *>(elements)[index]];
  }
}

void encode(softmax_dtype_t dtype, double value, void *elements, std::int64_t index) {
  switch (dtype) {
    case SOFTMAX_DTYPE_F32:
      static_cast<float *>(elements)[index] = static_cast<float>(value);
      break;
    case SOFTMAX_DTYPE_F64: static_cast<double *>(elements)[index] = value; break;
    default: static_cast<std::uint16_t *>(elements)[index] = bits_of_value(format_of(dtype), value);
  }
}

}  // namespace softmax_test
