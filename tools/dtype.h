// The element types: their names, sizes, .npy codes, and single elements to and from double.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "softmax.h"

namespace tool {

struct Dtype {
  softmax_dtype_t id;
  const char *name;       // "f32"
  const char *long_name;  // "float32"
  const char *npy_code;   // "<f4"
  int bytes;
  int precision_bits;  // of the significand, the hidden bit included
  int min_exponent;    // the smallest normal number is 2^min_exponent
};

const Dtype &dtype_of(softmax_dtype_t id);

// By either name; fails with the list of names.
const Dtype &dtype_from_name(const std::string &name);

// Element i of an array, exactly.
double load_element(const void *data, const Dtype &dtype, std::int64_t i);

// Stores the value rounded to nearest, ties to even, as element i.
void store_element(void *data, const Dtype &dtype, std::int64_t i, double value);

}  // namespace tool
