// See dtype.h. The 16-bit types are converted here bit by bit: the compilers that build this
// program do not all know them.
#include "dtype.h"

#include <cmath>
#include <cstring>

#include "error.h"

namespace tool {
namespace {

constexpr Dtype kDtypes[] = {
    {SOFTMAX_DTYPE_F32, "f32", "float32", "<f4", 4, 24, -126},
    {SOFTMAX_DTYPE_F16, "f16", "float16", "<f2", 2, 11, -14},
    {SOFTMAX_DTYPE_BF16, "bf16", "bfloat16", "<V2", 2, 8, -126},
    {SOFTMAX_DTYPE_F64, "f64", "float64", "<f8", 8, 53, -1022},
};

double load_f16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  double magnitude;
  if (exponent == 0x1f) {
    magnitude = fraction == 0 ? HUGE_VAL : std::nan("");
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, -24);
  } else {
    magnitude = std::ldexp(fraction + 0x400, exponent - 25);
  }
  return bits & 0x8000 ? -magnitude : magnitude;
}

double load_bf16(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

// The bits of `value` in a 16-bit format with this many fraction bits, rounded once.
std::uint16_t store_16(double value, int fraction_bits, int min_exponent) {
  const int max_code = (1 << (15 - fraction_bits)) - 1;  // the exponent code of inf and NaN
  const int infinity = max_code << fraction_bits;
  const int sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | infinity | 1);
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return static_cast<std::uint16_t>(sign | infinity);
  int exponent = magnitude == 0 ? min_exponent : std::ilogb(magnitude);
  if (exponent < min_exponent) exponent = min_exponent;
  // In units of the last place. A carry out of the fraction moves into the exponent by itself, up
  // to infinity.
  const int units =
      static_cast<int>(std::nearbyint(std::ldexp(magnitude, fraction_bits - exponent)));
  const long bits = units + (static_cast<long>(exponent - min_exponent) << fraction_bits);
  return static_cast<std::uint16_t>(sign | (bits > infinity ? infinity : bits));
}

}  // namespace

const Dtype &dtype_of(softmax_dtype_t id) {
  for (const Dtype &dtype : kDtypes) {
    if (dtype.id == id) return dtype;
  }
  fail_run("data type {} has no description", id);
}

const Dtype &dtype_from_name(const std::string &name) {
  for (const Dtype &dtype : kDtypes) {
    if (name == dtype.name || name == dtype.long_name) return dtype;
  }
  fail_input("'{}' is no data type: take f32, f16, bf16 or f64", name);
}

double load_element(const void *data, const Dtype &dtype, std::int64_t i) {
  const char *at = static_cast<const char *>(data) + i * dtype.bytes;
  std::uint16_t bits;
  float single;
  double result;
  switch (dtype.id) {
    case SOFTMAX_DTYPE_F32: std::memcpy(&single, at, sizeof single); return single;
    case SOFTMAX_DTYPE_F64: std::memcpy(&result, at, sizeof result); return result;
    default: std::memcpy(&bits, at, sizeof bits);
  }
  return dtype.id == SOFTMAX_DTYPE_F16 ? load_f16(bits) : load_bf16(bits);
}

void store_element(void *data, const Dtype &dtype, std::int64_t i, double value) {
  char *at = static_cast<char *>(data) + i * dtype.bytes;
  if (dtype.id == SOFTMAX_DTYPE_F64) {
    std::memcpy(at, &value, sizeof value);
  } else if (dtype.id == SOFTMAX_DTYPE_F32) {
    const float single = static_cast<float>(value);
    std::memcpy(at, &single, sizeof single);
  } else {
    const std::uint16_t bits = store_16(value, dtype.precision_bits - 1, dtype.min_exponent);
    std::memcpy(at, &bits, sizeof bits);
  }
}

}  // namespace tool
