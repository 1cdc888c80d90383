// Packs at any address: core/shifted.h, and which way rows go (core/held_rows.h).
#include <cstring>
#include <vector>

#include "core/held_rows.h"
#include "core/shifted.h"
#include "support/catch.h"

namespace softmax_test {
namespace {

using softmax::kPartBytes;
using softmax::kParts;
using softmax::RowAccess;
using softmax::WordShift;

constexpr int kWord = 16;
constexpr int kPackCols = 8;  // of a 16-bit type

std::uint16_t element(int index) { return static_cast<std::uint16_t>(0x1000 + 7 * index); }

// Memory with a tensor in it that says when a byte outside the tensor is read.
struct Tensor {
  int base;  // of its first byte; a word begins at 0
  int bytes;
  bool left_it = false;

  std::uint16_t half(int at) {
    if (at < base || at + 2 > base + bytes) {
      left_it = true;
      return 0;
    }
    return element((at - base) / 2);
  }
  std::uint32_t part(int at) { return half(at) | std::uint32_t{half(at + 2)} << 16; }
};

// Pack `pack` of a row as the kernels read it.
std::vector<std::uint16_t> read_pack(Tensor &tensor, int rows, int cols, int row, int pack) {
  const int row_at = tensor.base + 2 * row * cols;
  const int past = row_at % kPartBytes;
  const int bytes_left = 2 * (cols - pack * kPackCols);
  const bool is_last = row == rows - 1;
  const bool is_first = row == 0 && pack == 0;
  std::uint32_t part[kParts + 1] = {};
  for (int i = 0; i <= kParts; ++i) {
    const int begin = i * kPartBytes - past;
    if (begin < softmax::part_limit(bytes_left, is_last) && (begin >= 0 || !is_first)) {
      part[i] = tensor.part(row_at + pack * kWord + begin);
    }
  }
  if (is_first && past != 0) part[0] = std::uint32_t{tensor.half(row_at)} << 16;
  const int half = softmax::half_part(past, bytes_left, is_last);
  if (half >= 0 && half <= kParts) part[half] = tensor.half(row_at + 2 * (cols - 1));
  std::vector<std::uint16_t> result;
  for (int i = 0; i < kParts; ++i) {
    const std::uint32_t both = softmax::shift_right(part[i], part[i + 1], 8 * past);
    result.push_back(static_cast<std::uint16_t>(both));
    result.push_back(static_cast<std::uint16_t>(both >> 16));
  }
  return result;
}

}  // namespace

TEST_CASE("a pack at any address is read right, and no byte outside the tensor is touched",
          "[shifted]") {
  int wrong = 0, outside = 0, packs = 0;
  for (int base = 64; base < 64 + kWord; base += 2) {
    for (int cols = 1; cols <= 70; ++cols) {
      for (int rows = 1; rows <= 4; ++rows) {
        Tensor tensor = {base, 2 * rows * cols};
        for (int row = 0; row < rows; ++row) {
          // One pack past the row's end too: lanes without a column run the same code.
          for (int pack = 0; pack <= (cols + kPackCols - 1) / kPackCols; ++pack) {
            const std::vector<std::uint16_t> got = read_pack(tensor, rows, cols, row, pack);
            for (int i = 0; i < kPackCols && pack * kPackCols + i < cols; ++i) {
              if (got[i] != element(row * cols + pack * kPackCols + i)) ++wrong;
            }
            ++packs;
          }
        }
        if (tensor.left_it) ++outside;
      }
    }
  }
  CHECK(packs > 10000);
  CHECK(wrong == 0);
  CHECK(outside == 0);
}

TEST_CASE("packs turned and merged by a shift are the row's bytes in aligned words", "[shifted]") {
  constexpr int kPacks = 5;
  for (int shift = 0; shift < kWord; shift += 2) {
    const WordShift by = {shift / kPartBytes, shift % kPartBytes};
    CHECK(by.total() == shift);
    CHECK(by.is_zero() == (shift == 0));
    unsigned char bytes[kPacks * kWord];
    for (int b = 0; b < kPacks * kWord; ++b) bytes[b] = static_cast<unsigned char>(b + 1);
    unsigned char expected[(kPacks + 1) * kWord] = {};
    std::memcpy(expected + shift, bytes, sizeof bytes);
    std::uint32_t before[kParts] = {};
    for (int word = 0; word <= kPacks; ++word) {
      std::uint32_t own[kParts] = {};
      if (word < kPacks) std::memcpy(own, bytes + word * kWord, kWord);
      softmax::turn_word(own, by);
      std::uint32_t merged[kParts];
      for (int i = 0; i < kParts; ++i) merged[i] = softmax::merged_part(i, before[i], own[i], by);
      CHECK(std::memcmp(merged, expected + word * kWord, kWord) == 0);
      std::memcpy(before, own, kWord);
    }
  }
}

TEST_CASE("the words of a row at any address have every byte of it once and no other",
          "[shifted]") {
  for (int shift = 0; shift < kWord; shift += 2) {
    for (int length = 2; length <= 5 * kWord; length += 2) {
      const int end = shift + length;
      std::vector<int> seen(8 * kWord, 0);
      for (int at = 0; at < 7 * kWord; at += kWord) {
        const softmax::WordBytes bytes = softmax::bytes_of_row(at, at == 0 ? shift : 0, end);
        if (bytes.all()) CHECK((bytes.any() && at >= shift && at + kWord <= end));
        if (!bytes.any()) continue;
        for (int b = bytes.from; b < bytes.to; ++b) ++seen[at + b];
      }
      int wrong = 0;
      for (int b = 0; b < 8 * kWord; ++b) wrong += seen[b] != (b >= shift && b < end);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("whether rows go element by element depends on their length alone", "[shifted]") {
  for (const int size : {2, 4, 8}) {
    for (int cols = 1; cols <= 64; ++cols) {
      const bool is_whole = cols * size % kWord == 0;
      for (int x = 0; x < kWord; x += size) {
        for (int y = 0; y < kWord; y += size) {
          const RowAccess access = softmax::row_access(cols, size, 4096 + x, 8192 + y);
          CHECK((access == RowAccess::kUnits) == (!is_whole && size > 2));
          CHECK((access == RowAccess::kWords) == (is_whole && x == 0 && y == 0));
        }
      }
    }
  }
}

}  // namespace softmax_test
