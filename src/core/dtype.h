// The element types: sizes, names, and the 16-bit formats' conversions in portable host code.
#pragma once

#include <cstdint>
#include <cstring>

#include "softmax.h"

namespace softmax {

// A 16-bit element as host code sees it. The two are distinct types so that no conversion from
// one can be applied to the other.
struct f16_t {
  std::uint16_t bits;
};
struct bf16_t {
  std::uint16_t bits;
};

// Bytes of one element, 0 for a number that names no type.
constexpr int dtype_size(std::int32_t dtype) {
  switch (dtype) {
    case SOFTMAX_DTYPE_F32: return 4;
    case SOFTMAX_DTYPE_F16: return 2;
    case SOFTMAX_DTYPE_BF16: return 2;
    case SOFTMAX_DTYPE_F64: return 8;
    case SOFTMAX_DTYPE_F8_E4M3: return 1;
    case SOFTMAX_DTYPE_F8_E5M2: return 1;
    default: return 0;
  }
}

// Bytes of the type that a row of these is computed in: float32, or float64 for float64.
constexpr int accumulator_size(std::int32_t dtype) { return dtype == SOFTMAX_DTYPE_F64 ? 8 : 4; }

constexpr const char *dtype_name(std::int32_t dtype) {
  switch (dtype) {
    case SOFTMAX_DTYPE_F32: return "f32";
    case SOFTMAX_DTYPE_F16: return "f16";
    case SOFTMAX_DTYPE_BF16: return "bf16";
    case SOFTMAX_DTYPE_F64: return "f64";
    case SOFTMAX_DTYPE_F8_E4M3: return "f8_e4m3";
    case SOFTMAX_DTYPE_F8_E5M2: return "f8_e5m2";
    default: return "unknown";
  }
}

// The pairs that every algorithm has kernels for; the general call knows more.
constexpr bool dtype_pair_supported(std::int32_t x, std::int32_t y) {
  const bool plain = x == SOFTMAX_DTYPE_F32 || x == SOFTMAX_DTYPE_F16 || x == SOFTMAX_DTYPE_BF16 ||
                     x == SOFTMAX_DTYPE_F64;
  const bool widening =
      (x == SOFTMAX_DTYPE_F16 || x == SOFTMAX_DTYPE_BF16) && y == SOFTMAX_DTYPE_F32;
  return (plain && x == y) || widening;
}

inline std::uint32_t float_bits(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float float_from_bits(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline float to_float(bf16_t h) { return float_from_bits(std::uint32_t{h.bits} << 16); }

// Round to nearest even; a NaN stays a (quiet) NaN even when only its low bits were set.
inline bf16_t to_bf16(float value) {
  const std::uint32_t bits = float_bits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return {static_cast<std::uint16_t>((bits >> 16) | 0x0040u)};
  }
  return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

inline float to_float(f16_t h) {
  const std::uint32_t sign = std::uint32_t{h.bits & 0x8000u} << 16;
  const std::uint32_t magnitude = h.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // inf, NaN
    return float_from_bits(sign | 0x7f800000u | ((magnitude & 0x03ffu) << 13));
  }
  if (magnitude >= 0x0400u) {  // normal
    return float_from_bits(sign | ((magnitude + (112u << 10)) << 13));
  }
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;  // exact
  return float_from_bits(sign | float_bits(subnormal));
}

// Round to nearest even, to subnormals too; above 65519.99 becomes infinity.
inline f16_t to_f16(float value) {
  const std::uint32_t bits = float_bits(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t result;
  if (magnitude > 0x7f800000u) {
    result = 0x7e00u;
  } else if (magnitude >= 0x477ff000u) {  // rounds to 2^16 or more
    result = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // normal in f16
    const std::uint32_t rebased = magnitude - (112u << 23);
    result = (rebased + 0x0fffu + ((rebased >> 13) & 1u)) >> 13;
  } else {
    // Adding 0.5 aligns the value so that the hardware's own rounding falls on the subnormal step.
    const float shifted = float_from_bits(magnitude) + 0.5f;
    result = float_bits(shifted) - float_bits(0.5f);
  }
  return {static_cast<std::uint16_t>(sign | result)};
}

// One spelling for every element type, so that host kernels can be templates over it.
template <typename T>
struct Element;

template <>
struct Element<float> {
  using Acc = float;
  static float load(float v) { return v; }
  static float store(float v) { return v; }
};
template <>
struct Element<double> {
  using Acc = double;
  static double load(double v) { return v; }
  static double store(double v) { return v; }
};
template <>
struct Element<f16_t> {
  using Acc = float;
  static float load(f16_t v) { return to_float(v); }
  static f16_t store(float v) { return to_f16(v); }
};
template <>
struct Element<bf16_t> {
  using Acc = float;
  static float load(bf16_t v) { return to_float(v); }
  static bf16_t store(float v) { return to_bf16(v); }
};

}  // namespace softmax
