// Rounding and conversion of the element types. See element.h.
#include "element.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace reports {

Format format_of(std::int32_t dtype) {
  switch (dtype) {
    case SOFTMAX_DTYPE_F32: return {4, 24, -126, 127};
    case SOFTMAX_DTYPE_F16: return {2, 11, -14, 15};
    case SOFTMAX_DTYPE_BF16: return {2, 8, -126, 127};
    case SOFTMAX_DTYPE_F64: return {8, 53, -1022, 1023};
    case SOFTMAX_DTYPE_F8_E4M3: return {1, 4, -6, 8};
    case SOFTMAX_DTYPE_F8_E5M2: return {1, 3, -14, 15};
    default: throw std::invalid_argument("no such type: " + std::to_string(dtype));
  }
}

std::int32_t dtype_of(const std::string &name) {
  if (name == "float32") return SOFTMAX_DTYPE_F32;
  if (name == "float16") return SOFTMAX_DTYPE_F16;
  if (name == "bfloat16") return SOFTMAX_DTYPE_BF16;
  if (name == "float64") return SOFTMAX_DTYPE_F64;
  throw std::invalid_argument("no such type: " + name);
}

const char *dtype_label(std::int32_t dtype) {
  switch (dtype) {
    case SOFTMAX_DTYPE_F32: return "f32";
    case SOFTMAX_DTYPE_F16: return "f16";
    case SOFTMAX_DTYPE_BF16: return "bf16";
    case SOFTMAX_DTYPE_F64: return "f64";
    case SOFTMAX_DTYPE_F8_E4M3: return "f8_e4m3";
    case SOFTMAX_DTYPE_F8_E5M2: return "f8_e5m2";
    default: return "?";
  }
}

long double ulp_at(std::int32_t dtype, long double value) {
  const Format format = format_of(dtype);
  int exponent = value == 0 ? format.minimum_exponent : std::ilogb(static_cast<double>(value));
  if (exponent < format.minimum_exponent) exponent = format.minimum_exponent;
  return std::ldexp(1.0L, exponent - format.precision + 1);
}

long double round_to(std::int32_t dtype, long double value) {
  if (dtype == SOFTMAX_DTYPE_F32) return static_cast<float>(value);
  if (dtype == SOFTMAX_DTYPE_F64) return static_cast<double>(value);
  if (!std::isfinite(value)) return value;
  const Format format = format_of(dtype);
  const long double step = ulp_at(dtype, value);
  const long double rounded = std::nearbyint(value / step) * step;
  const long double limit = std::ldexp(1.0L, format.maximum_exponent + 1);
  if (std::fabs(rounded) < limit) return rounded;
  return std::copysign(std::numeric_limits<long double>::infinity(), value);
}

namespace {

constexpr unsigned kE4m3Nan = 0x7f;  // its only one: the others of that exponent are numbers

// The biased exponent of infinities and NaN; of E4M3, which has none, one that does not occur.
unsigned exponent_of_ones(std::int32_t dtype) {
  if (dtype == SOFTMAX_DTYPE_F8_E4M3) return ~0u;
  return dtype == SOFTMAX_DTYPE_BF16 ? 255u : 31u;
}

}  // namespace

void encode(std::int32_t dtype, long double value, void *element) {
  if (dtype == SOFTMAX_DTYPE_F64) {
    const double v = static_cast<double>(value);
    std::memcpy(element, &v, sizeof v);
    return;
  }
  if (dtype == SOFTMAX_DTYPE_F32) {
    const float v = static_cast<float>(value);
    std::memcpy(element, &v, sizeof v);
    return;
  }
  const Format format = format_of(dtype);
  const int mantissa_bits = format.precision - 1;
  const unsigned all_ones = exponent_of_ones(dtype);
  unsigned bits;
  if (std::isnan(value)) {
    bits = dtype == SOFTMAX_DTYPE_F8_E4M3
               ? kE4m3Nan
               : (all_ones << mantissa_bits) | (1u << (mantissa_bits - 1));
  } else if (std::isinf(value)) {
    bits = all_ones << mantissa_bits;
  } else {
    const long double magnitude = std::fabs(value);
    const long double step = ulp_at(dtype, magnitude);
    const unsigned steps = static_cast<unsigned>(magnitude / step);  // exact: value is the type's
    int exponent = magnitude == 0 ? format.minimum_exponent : std::ilogb(magnitude);
    if (exponent < format.minimum_exponent) exponent = format.minimum_exponent;
    // A normal number's hidden bit adds the 1 that its biased exponent lacks here.
    const unsigned biased = static_cast<unsigned>(exponent - format.minimum_exponent);
    bits = (biased << mantissa_bits) + steps;
  }
  if (std::signbit(value)) bits |= 1u << (8 * format.bytes - 1);
  const std::uint16_t narrow = static_cast<std::uint16_t>(bits);
  const std::uint8_t narrower = static_cast<std::uint8_t>(bits);
  std::memcpy(element, format.bytes == 1 ? static_cast<const void *>(&narrower) : &narrow,
              static_cast<std::size_t>(format.bytes));
}

double decode(std::int32_t dtype, const void *element) {
  if (dtype == SOFTMAX_DTYPE_F64) {
    double v;
    std::memcpy(&v, element, sizeof v);
    return v;
  }
  if (dtype == SOFTMAX_DTYPE_F32) {
    float v;
    std::memcpy(&v, element, sizeof v);
    return v;
  }
  const Format format = format_of(dtype);
  unsigned bits = *static_cast<const unsigned char *>(element);
  if (format.bytes == 2) {
    std::uint16_t wider;
    std::memcpy(&wider, element, sizeof wider);
    bits = wider;
  }
  const int mantissa_bits = format.precision - 1;
  const unsigned all_ones = exponent_of_ones(dtype);
  const unsigned sign = 1u << (8 * format.bytes - 1);
  const unsigned biased = (bits & (sign - 1)) >> mantissa_bits;
  const unsigned mantissa = bits & ((1u << mantissa_bits) - 1u);
  double magnitude;
  if (dtype == SOFTMAX_DTYPE_F8_E4M3 && (bits & (sign - 1)) == kE4m3Nan) {
    magnitude = std::numeric_limits<double>::quiet_NaN();
  } else if (biased == all_ones) {
    magnitude = mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                              : std::numeric_limits<double>::infinity();
  } else if (biased == 0) {
    magnitude = std::ldexp(mantissa, format.minimum_exponent - mantissa_bits);
  } else {
    magnitude = std::ldexp(mantissa + (1u << mantissa_bits),
                           static_cast<int>(biased) - 1 + format.minimum_exponent - mantissa_bits);
  }
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

}  // namespace reports
