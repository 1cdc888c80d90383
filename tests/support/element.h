// The element types as the tests see them: formats, exact decoding, and rounding of their own, so
// that the library's conversions are not what they are checked with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "softmax.h"

namespace softmax_test {

// A binary floating-point format: normal values are m * 2^e, 1 <= m < 2, with `precision` bits in m
// and min_exponent <= e <= max_exponent.
struct Format {
  const char *name;
  int size_bytes;
  int precision;
  int min_exponent;
  int max_exponent;
};

const Format &format_of(softmax_dtype_t dtype);

// Element `index` of an array, exactly.
double decode(softmax_dtype_t dtype, const void *elements, std::int64_t index);

// Stores `value` rounded to nearest even; what exceeds the format becomes infinity, or in the 8-bit
// formats the largest number.
void encode(softmax_dtype_t dtype, double value, void *elements, std::int64_t index);

// An array of elements of one type in host memory.
struct Elements {
  softmax_dtype_t dtype = SOFTMAX_DTYPE_F32;
  std::vector<unsigned char> bytes;

  Elements() = default;
  Elements(softmax_dtype_t type, std::int64_t count)
      : dtype(type), bytes(static_cast<std::size_t>(count) * format_of(type).size_bytes) {}
  std::int64_t count() const {
    return static_cast<std::int64_t>(bytes.size()) / format_of(dtype).size_bytes;
  }
  double operator[](std::int64_t index) const { return decode(dtype, bytes.data(), index); }
  void set(std::int64_t index, double value) { encode(dtype, value, bytes.data(), index); }
};

// A pair of types that every algorithm takes.
struct TypePair {
  softmax_dtype_t x;
  softmax_dtype_t y;
  const char *name;
};
constexpr TypePair kTypePairs[] = {
    {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F32, "f32"},
    {SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_F16, "f16"},
    {SOFTMAX_DTYPE_BF16, SOFTMAX_DTYPE_BF16, "bf16"},
    {SOFTMAX_DTYPE_F64, SOFTMAX_DTYPE_F64, "f64"},
    {SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_F32, "f16 -> f32"},
    {SOFTMAX_DTYPE_BF16, SOFTMAX_DTYPE_F32, "bf16 -> f32"},
};

}  // namespace softmax_test
