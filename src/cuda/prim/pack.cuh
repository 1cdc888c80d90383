// Packs: the run of columns that one thread takes at a time, loaded and stored in 16-byte words
// where the row's address allows.
//
// Which columns a thread takes depends on the column number alone, never on the address: a row that
// is not 16-byte aligned is loaded element by element into the same packs, so that the order of
// additions, and with it every bit of the result, is the same at any alignment.
#pragma once

#include <cstdint>

#include "core/numerics.h"
#include "cuda/prim/element.cuh"

namespace softmax {

constexpr int kWordBytes = 16;

__device__ __forceinline__ bool is_word_aligned(const void *p) {
  return (reinterpret_cast<std::uintptr_t>(p) & (kWordBytes - 1)) == 0;
}

// Columns in a pack of X: 16 bytes of input.
template <typename X>
constexpr int kPackCols = kWordBytes / static_cast<int>(sizeof(X));

template <typename T>
struct alignas(kWordBytes) Word {
  T element[kWordBytes / sizeof(T)];
};

// One 16-byte transaction each way; the bytes are opaque to it.
template <typename T>
__device__ __forceinline__ Word<T> load_word(const T *p) {
  const uint4 raw = *reinterpret_cast<const uint4 *>(p);
  Word<T> word;
  memcpy(&word, &raw, kWordBytes);
  return word;
}

// kShared: to shared memory.
enum class StoreHint { kNone, kStreaming, kShared };

template <StoreHint hint, typename T>
__device__ __forceinline__ void store_word(T *p, const Word<T> &word) {
  uint4 raw;
  memcpy(&raw, &word, kWordBytes);
  if (hint == StoreHint::kStreaming) {
    __stcs(reinterpret_cast<uint4 *>(p), raw);
  } else {
    *reinterpret_cast<uint4 *>(p) = raw;
  }
}

// The pack that begins at column `col` (col < cols): as words where `whole` says that the address
// is aligned and no column is past the end. Columns at and past cols read as -inf, which adds
// nothing to a maximum or a sum.
template <typename X, int kCols>
__device__ __forceinline__ void load_pack(const X *row, std::int64_t col, std::int64_t cols,
                                          bool whole, AccOf<X> (&value)[kCols]) {
  static_assert(kCols == kPackCols<X>, "a pack is one word of input");
  if (whole) {
    const Word<X> word = load_word(row + col);
#pragma unroll
    for (int i = 0; i < kCols; ++i) value[i] = DeviceElement<X>::load(word.element[i]);
  } else {
#pragma unroll
    for (int i = 0; i < kCols; ++i) {
      value[i] = col + i < cols ? load_element(row + col + i) : -Limits<AccOf<X>>::infinity();
    }
  }
}

template <StoreHint hint, typename Y, typename Acc, int kCols>
__device__ __forceinline__ void store_pack(Y *row, std::int64_t col, std::int64_t cols, bool whole,
                                           const Acc (&value)[kCols]) {
  constexpr int kWordCols = kWordBytes / static_cast<int>(sizeof(Y));
  static_assert(kCols % kWordCols == 0, "a pack is whole words of output too");
  if (whole) {
#pragma unroll
    for (int first = 0; first < kCols; first += kWordCols) {
      Word<Y> word;
#pragma unroll
      for (int i = 0; i < kWordCols; ++i) {
        word.element[i] = DeviceElement<Y>::store(value[first + i]);
      }
      store_word<hint>(row + col + first, word);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCols; ++i) {
      if (col + i < cols) store_element(row + col + i, value[i]);
    }
  }
}

}  // namespace softmax
