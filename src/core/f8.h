// The 8-bit element types of the OCP OFP8 specification, for host and device alike.
//
// To them: nearest even, and beyond the largest finite number that number (the specification's
// saturating mode), but for an infinity, which stays one in E5M2 and saturates in E4M3.
#pragma once

#include <cstdint>

#include "core/exp.h"

namespace softmax {

struct f8_e4m3_t {
  std::uint8_t bits;
};
struct f8_e5m2_t {
  std::uint8_t bits;
};

// A format with a sign, `mantissa_bits` and an exponent of the remaining bits.
struct F8Format {
  int mantissa_bits;
  int min_exponent;    // of a normal number
  std::uint32_t most;  // bits of the largest finite number
  std::uint32_t nan;   // bits of a NaN
  bool has_infinity;   // at most + 1
  float most_value;
};
SOFTMAX_HD F8Format e4m3_format() { return {3, -6, 0x7e, 0x7f, false, 448.0f}; }
SOFTMAX_HD F8Format e5m2_format() { return {2, -14, 0x7b, 0x7e, true, 57344.0f}; }

SOFTMAX_HD std::uint8_t f8_bits(const F8Format &format, float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t sign = (bits >> 24) & 0x80u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint8_t>(sign | format.nan);
  const float size = float_of(magnitude);
  std::uint32_t result;
  if (size >= format.most_value) {
    const bool infinite = magnitude == 0x7f800000u && format.has_infinity;
    result = infinite ? format.most + 1 : format.most;
  } else if (size < float_of(static_cast<std::uint32_t>(127 + format.min_exponent) << 23)) {
    // Subnormal: adding 2^(23 - m) steps makes float32's own rounding fall on the step.
    const float one = float_of(
        static_cast<std::uint32_t>(127 + format.min_exponent - format.mantissa_bits + 23) << 23);
    result = bits_of(size + one) - bits_of(one);
  } else {
    const int drop = 23 - format.mantissa_bits;
    const std::uint32_t rebased =
        magnitude - (static_cast<std::uint32_t>(127 + format.min_exponent - 1) << 23);
    result = (rebased + (1u << (drop - 1)) - 1 + ((rebased >> drop) & 1u)) >> drop;
    if (result > format.most) result = format.most;
  }
  return static_cast<std::uint8_t>(sign | result);
}

SOFTMAX_HD float f8_value(const F8Format &format, std::uint8_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x80u} << 24;
  const std::uint32_t magnitude = bits & 0x7fu;
  if (magnitude > format.most) {
    const bool infinite = format.has_infinity && magnitude == format.most + 1;
    return float_of(sign | (infinite ? 0x7f800000u : 0x7fc00000u));
  }
  const std::uint32_t exponent = magnitude >> format.mantissa_bits;
  if (exponent == 0) {
    const float step = float_of(
        static_cast<std::uint32_t>(127 + format.min_exponent - format.mantissa_bits) << 23);
    return float_of(sign | bits_of(static_cast<float>(magnitude) * step));
  }
  const std::uint32_t rebased = magnitude << (23 - format.mantissa_bits);
  return float_of(sign |
                  (rebased + (static_cast<std::uint32_t>(127 + format.min_exponent - 1) << 23)));
}

SOFTMAX_HD float to_float(f8_e4m3_t v) { return f8_value(e4m3_format(), v.bits); }
SOFTMAX_HD float to_float(f8_e5m2_t v) { return f8_value(e5m2_format(), v.bits); }
SOFTMAX_HD f8_e4m3_t to_f8_e4m3(float v) { return {f8_bits(e4m3_format(), v)}; }
SOFTMAX_HD f8_e5m2_t to_f8_e5m2(float v) { return {f8_bits(e5m2_format(), v)}; }

}  // namespace softmax
