// The .npy format, versions 1.0, 2.0 and 3.0: reading a header, making one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dtype.h"

namespace tool {

// An array of a .npy file, as rows over its last axis.
struct NpyArray {
  const Dtype *dtype = nullptr;
  std::vector<std::int64_t> shape;  // never empty
  std::int64_t rows = 0;            // the product of all extents but the last
  std::int64_t cols = 0;            // the last extent
  std::int64_t data_offset = 0;     // bytes before the first element

  std::int64_t row_bytes() const { return cols * dtype->bytes; }
  std::int64_t data_bytes() const { return rows * row_bytes(); }
};

constexpr std::int64_t kNpyPrefixBytes = 12;  // enough to know how long the header is

// The number of bytes before the data, from the first kNpyPrefixBytes of a file (or as many as it
// has). Fails with a sentence that starts with `name`, as all functions here do.
std::int64_t npy_header_bytes(const std::string &prefix, const std::string &name);

// Reads a whole header, prefix included, of a file of file_bytes. `as_dtype` says what 2-byte
// elements without a type of their own ('<V2', '<u2') are, and may be null; a type that the file
// does state must agree with it.
NpyArray read_npy_header(const std::string &header, std::int64_t file_bytes, const Dtype *as_dtype,
                         const std::string &name);

// A version 1.0 header, padded so that the data begins at a multiple of 64.
std::string make_npy_header(const Dtype &dtype, const std::vector<std::int64_t> &shape);

// "(3, 4)", as Python writes it.
std::string shape_text(const std::vector<std::int64_t> &shape);

}  // namespace tool
