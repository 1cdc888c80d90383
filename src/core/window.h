// Byte ranges and the 16-byte words around them, for bulk copies: which part of a range can be
// moved in bulk, and which bytes at its ends must go element by element. For host and device alike.
#pragma once

#include <cstdint>

#include "core/exp.h"

namespace softmax {

constexpr std::uint32_t kBulkBytes = 16;  // of address and size

// [begin, end), as addresses.
struct ByteRange {
  std::uint64_t begin;
  std::uint64_t end;
  SOFTMAX_HD std::uint32_t size() const { return static_cast<std::uint32_t>(end - begin); }
};

SOFTMAX_HD std::uint64_t bulk_floor(std::uint64_t address) {
  return address & ~std::uint64_t{kBulkBytes - 1};
}
SOFTMAX_HD std::uint64_t bulk_ceil(std::uint64_t address) {
  return bulk_floor(address + (kBulkBytes - 1));
}
// How far into its word an address lies.
SOFTMAX_HD std::uint32_t bulk_shift(std::uint64_t address) {
  return static_cast<std::uint32_t>(address & (kBulkBytes - 1));
}

// A line of memory, which a copy moves at its best where it is one of shared memory too: ranges lie
// in their slots as far into a line as in memory.
constexpr std::uint32_t kLineBytes = 128;

SOFTMAX_HD std::uint32_t line_shift(std::uint64_t address) {
  return static_cast<std::uint32_t>(address & (kLineBytes - 1));
}

// A range in three parts. Those that are empty have begin == end.
struct Window {
  ByteRange head;
  ByteRange bulk;
  ByteRange tail;
};

SOFTMAX_HD Window window_between(ByteRange range, std::uint64_t bulk_begin,
                                 std::uint64_t bulk_end) {
  if (bulk_begin >= bulk_end) {  // shorter than a word
    return {range, {range.end, range.end}, {range.end, range.end}};
  }
  const std::uint64_t head_end = bulk_begin > range.begin ? bulk_begin : range.begin;
  const std::uint64_t tail_begin = bulk_end < range.end ? bulk_end : range.end;
  return {{range.begin, head_end}, {bulk_begin, bulk_end}, {tail_begin, range.end}};
}

// To read: the words that enclose the range. What they hold besides is never looked at; but a word
// that reaches past the tensor is not read at all, so that the ranges at its ends may have a head
// or a tail.
SOFTMAX_HD Window load_window(ByteRange range, ByteRange tensor) {
  const std::uint64_t floor = bulk_floor(range.begin);
  const std::uint64_t ceil = bulk_ceil(range.end);
  return window_between(range, floor >= tensor.begin ? floor : floor + kBulkBytes,
                        ceil <= tensor.end ? ceil : ceil - kBulkBytes);
}

// To write: the words inside the range, since a neighbour may own the rest of a shared word.
SOFTMAX_HD Window store_window(ByteRange range) {
  return window_between(range, bulk_ceil(range.begin), bulk_floor(range.end));
}

}  // namespace softmax
