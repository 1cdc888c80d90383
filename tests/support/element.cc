// Element formats. See element.h.
#include "support/element.h"

#include <algorithm>
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
// Of OFP8. E4M3's largest exponent has no mantissa of all ones among its numbers.
constexpr Format kE4m3 = {"f8_e4m3", 1, 4, -6, 8};
constexpr Format kE5m2 = {"f8_e5m2", 1, 3, -14, 15};

bool is_f8(softmax_dtype_t dtype) {
  return dtype == SOFTMAX_DTYPE_F8_E4M3 || dtype == SOFTMAX_DTYPE_F8_E5M2;
}

// An 8-bit pattern's value, from the definition of the format.
double value_of_f8(softmax_dtype_t dtype, std::uint8_t bits) {
  const bool e4m3 = dtype == SOFTMAX_DTYPE_F8_E4M3;
  const Format &format = e4m3 ? kE4m3 : kE5m2;
  const int mantissa_bits = format.precision - 1;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int biased = (bits & 0x7f) >> mantissa_bits;
  double magnitude = std::ldexp(biased == 0 ? mantissa : mantissa + (1 << mantissa_bits),
                                std::max(biased, 1) - 1 + format.min_exponent - mantissa_bits);
  if (e4m3 && (bits & 0x7f) == 0x7f) magnitude = std::numeric_limits<double>::quiet_NaN();
  if (!e4m3 && biased == 31) {
    magnitude = mantissa == 0 ? HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
  }
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

// The non-negative patterns' values up to the largest number.
std::array<double, 127> numbers_of(softmax_dtype_t dtype) {
  std::array<double, 127> numbers{};
  for (int bits = 0; bits < 127; ++bits) {
    numbers[static_cast<std::size_t>(bits)] = value_of_f8(dtype, static_cast<std::uint8_t>(bits));
  }
  return numbers;
}

// The nearest of all numbers of the format, of two the even one; past the largest that one.
std::uint8_t f8_of_value(softmax_dtype_t dtype, double value) {
  static const std::array<double, 127> kE4m3Numbers = numbers_of(SOFTMAX_DTYPE_F8_E4M3);
  static const std::array<double, 127> kE5m2Numbers = numbers_of(SOFTMAX_DTYPE_F8_E5M2);
  const std::uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return sign | 0x7f;
  const bool e4m3 = dtype == SOFTMAX_DTYPE_F8_E4M3;
  if (std::isinf(value)) return sign | (e4m3 ? 0x7e : 0x7c);
  const auto &numbers = e4m3 ? kE4m3Numbers : kE5m2Numbers;
  const int largest = e4m3 ? 0x7e : 0x7b;
  const double size = std::fabs(value);
  const auto above = std::lower_bound(numbers.begin(), numbers.begin() + largest + 1, size);
  int best = static_cast<int>(above - numbers.begin());
  if (best > largest) return sign | static_cast<std::uint8_t>(largest);
  if (best > 0) {
    const double up = numbers[static_cast<std::size_t>(best)] - size;
    const double down = size - numbers[static_cast<std::size_t>(best - 1)];
    if (down < up || (down == up && best % 2 != 0)) --best;
  }
  return sign | static_cast<std::uint8_t>(best);
}

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
    case SOFTMAX_DTYPE_F8_E4M3: return kE4m3;
    case SOFTMAX_DTYPE_F8_E5M2: return kE5m2;
    default: std::abort();
  }
}

double decode(softmax_dtype_t dtype, const void *elements, std::int64_t index) {
  if (is_f8(dtype)) return value_of_f8(dtype, static_cast<const std::uint8_t *>(elements)[index]);
  switch (dtype) {
    case SOFTMAX_DTYPE_F32: return static_cast<const float *>(elements)[index];
    case SOFTMAX_DTYPE_F64: return static_cast<const double *>(elements)[index];
    default: return table_of(format_of(dtype))[static_cast<const std::uint16_t *>(elements)[index]];
  }
}

void encode(softmax_dtype_t dtype, double value, void *elements, std::int64_t index) {
  if (is_f8(dtype)) {
    static_cast<std::uint8_t *>(elements)[index] = f8_of_value(dtype, value);
    return;
  }
  switch (dtype) {
    case SOFTMAX_DTYPE_F32:
      static_cast<float *>(elements)[index] = static_cast<float>(value);
      break;
    case SOFTMAX_DTYPE_F64: static_cast<double *>(elements)[index] = value; break;
    default: static_cast<std::uint16_t *>(elements)[index] = bits_of_value(format_of(dtype), value);
  }
}

}  // namespace softmax_test
