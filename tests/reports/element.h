// The element types as the reports see them: any double rounded once to the type, and back. Written
// apart from the library's own conversions, so that neither can hide the other's mistake.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "softmax.h"

namespace reports {

struct Format {
  int bytes;
  int precision;         // bits, the hidden one included
  int minimum_exponent;  // of the least normal number
  int maximum_exponent;  // of the largest finite number
};

Format format_of(std::int32_t dtype);

// SOFTMAX_DTYPE_* of the file's names ("float32"); throws std::invalid_argument for others.
std::int32_t dtype_of(const std::string &name);
const char *dtype_label(std::int32_t dtype);

// Round to nearest even, to subnormals too, to infinity beyond the range.
long double round_to(std::int32_t dtype, long double value);

// The spacing of the type's numbers at `value`.
long double ulp_at(std::int32_t dtype, long double value);

// `value` must be one of the type's.
void encode(std::int32_t dtype, long double value, void *element);
double decode(std::int32_t dtype, const void *element);

inline double decode_at(std::int32_t dtype, const void *first, std::int64_t index) {
  const std::int64_t bytes = format_of(dtype).bytes;
  return decode(dtype, static_cast<const unsigned char *>(first) + index * bytes);
}

}  // namespace reports
