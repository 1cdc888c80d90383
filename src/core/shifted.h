// Packs of a row that begin at any address: which of memory's aligned words may be read for one,
// and how 16 bytes of results fall into the aligned words that they are stored in.
//
// Memory is read in parts of 4 bytes, so that a pack of 16-bit elements is at most half a part out
// of place; it is stored in words of 16, which cost a sector once and not four times. Plain values
// throughout: the host tests all shifts and lengths.
#pragma once

#include "core/exp.h"

namespace softmax {

constexpr int kPartBytes = 4;
constexpr int kParts = 4;  // of a word

// The low 32 bits of high:low >> bits, bits < 32.
SOFTMAX_HD std::uint32_t shift_right(std::uint32_t low, std::uint32_t high, int bits) {
#if defined(__CUDA_ARCH__)
  return __funnelshift_r(low, high, bits);
#else
  return static_cast<std::uint32_t>(((std::uint64_t{high} << 32) | low) >> bits);
#endif
}
// The high 32 bits of high:low << bits.
SOFTMAX_HD std::uint32_t shift_left(std::uint32_t low, std::uint32_t high, int bits) {
#if defined(__CUDA_ARCH__)
  return __funnelshift_l(low, high, bits);
#else
  return static_cast<std::uint32_t>(((std::uint64_t{high} << 32 | low) << bits) >> 32);
#endif
}

// ---- reading ----

// Part i of a pack begins 4 * i - past bytes after the pack's first, where `past` is 0 or 2: the
// parts are aligned, the pack need not be. It may be read if that is below this limit (and for the
// first pack of a tensor not below 0). `bytes_left` are the row's from the pack's first byte on. A
// part that holds some of the next row too is read, unless there is none: no byte after a tensor's
// last may be touched.
SOFTMAX_HD int part_limit(int bytes_left, bool is_last_row) {
  return is_last_row ? bytes_left - 2 : bytes_left;
}

// The part whose first half alone is the tensor's, or one that no pack has. It holds the last
// element.
SOFTMAX_HD int half_part(int past, int bytes_left, bool is_last_row) {
  return is_last_row && bytes_left > 0 && ((past + bytes_left) & 2) != 0
             ? (past + bytes_left) / kPartBytes
             : -1;
}

// ---- writing ----

// How far results are past the aligned word that they begin in: whole parts, and 0 or 2 bytes.
struct WordShift {
  int parts;
  int bytes;

  SOFTMAX_HD bool is_zero() const { return parts == 0 && bytes == 0; }
  SOFTMAX_HD int total() const { return parts * kPartBytes + bytes; }
};

// Sixteen bytes turned by the shift: byte b is at (b + shift) % 16. What has come round the end is
// the next word's.
SOFTMAX_HD void turn_word(std::uint32_t (&part)[kParts], WordShift shift) {
  const std::uint32_t last = part[kParts - 1];
  SOFTMAX_UNROLL
  for (int i = kParts - 1; i > 0; --i) part[i] = shift_left(part[i - 1], part[i], 8 * shift.bytes);
  part[0] = shift_left(last, part[0], 8 * shift.bytes);
  SOFTMAX_UNROLL
  for (int step = 1; step < kParts; step *= 2) {
    const bool turned = (shift.parts & step) != 0;
    const std::uint32_t before[kParts] = {part[0], part[1], part[2], part[3]};
    SOFTMAX_UNROLL
    for (int i = 0; i < kParts; ++i) {
      part[i] = turned ? before[(i + kParts - step) % kParts] : before[i];
    }
  }
}

// Part i of a word: the bytes before the shift are the previous turned word's.
SOFTMAX_HD std::uint32_t merged_part(int i, std::uint32_t previous, std::uint32_t own,
                                     WordShift shift) {
  if (i > shift.parts) return own;
  if (i < shift.parts) return previous;
  // As a mask: 0 or the lower half.
  const std::uint32_t mask = (1u << (8 * shift.bytes)) - 1u;
  return (previous & mask) | (own & ~mask);
}

// Which bytes of a word are a row's: `from` is where the row begins in it (0 but in its first
// word), `at` and `end` where the word begins and the row ends, counted from anywhere.
struct WordBytes {
  int from;
  int to;

  SOFTMAX_HD bool all() const { return from == 0 && to == kParts * kPartBytes; }
  SOFTMAX_HD bool any() const { return from < to; }
};
SOFTMAX_HD WordBytes bytes_of_row(int at, int from, int end) {
  constexpr int kWord = kParts * kPartBytes;
  return {from, end - at < kWord ? end - at : kWord};
}

}  // namespace softmax
