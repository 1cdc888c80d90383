// Words of results at the ends of a row, which it shares with its neighbours: stored in pieces,
// none of which has a byte that is another row's.
#pragma once

#include "core/shifted.h"
#include "cuda/prim/raw_pack.cuh"

namespace softmax {

// Part i of a word, or its lower or its upper half alone.
template <typename Y>
__device__ __forceinline__ void store_part(unsigned char *to, const RawPack &word, int i, bool all,
                                           bool low, bool high) {
  if (all) reinterpret_cast<std::uint32_t *>(to)[i] = word.part[i];
  if constexpr (sizeof(Y) == 2) {
    std::uint16_t *half = reinterpret_cast<std::uint16_t *>(to) + 2 * i;
    if (low) half[0] = static_cast<std::uint16_t>(word.part[i]);
    if (high) half[1] = static_cast<std::uint16_t>(word.part[i] >> 16);
  }
}

// The bytes from `from` on of the 16 at row_at + at, as far as the row goes: in pieces where its
// neighbours have the others.
template <typename Y, StoreHint hint>
__device__ __forceinline__ void store_word_at(unsigned char *row_at, int at, const RawPack &word,
                                              int from, int end) {
  const WordBytes bytes = bytes_of_row(at, from, end);
  if (bytes.all()) {
    store_raw<hint>(row_at + at, word);
  } else if (bytes.any()) {
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      const int begin = i * kPartBytes;
      store_part<Y>(row_at + at, word, i, bytes.from <= begin && begin + kPartBytes <= bytes.to,
                    bytes.to == begin + 2, bytes.from == begin + 2);
    }
  }
}

// The same for what lies before the shift, and from it on.
template <typename Y>
__device__ __forceinline__ void store_before(unsigned char *to, const RawPack &word,
                                             WordShift shift) {
#pragma unroll
  for (int i = 0; i < kParts; ++i) {
    store_part<Y>(to, word, i, i < shift.parts, i == shift.parts && shift.bytes != 0, false);
  }
}
template <typename Y>
__device__ __forceinline__ void store_after(unsigned char *to, const RawPack &word,
                                            WordShift shift) {
#pragma unroll
  for (int i = 0; i < kParts; ++i) {
    const bool is_split = i == shift.parts && shift.bytes != 0;
    store_part<Y>(to, word, i, i >= shift.parts && !is_split, false, is_split);
  }
}

}  // namespace softmax
