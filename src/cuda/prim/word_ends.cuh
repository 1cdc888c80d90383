// Words at the ends of a row, which it shares with its neighbours, element by element: none that is
// another row's is written, and none that is no tensor's read.
#pragma once

#include "core/held_window.h"
#include "cuda/prim/raw_pack.cuh"

namespace softmax {

// An element, as bits.
template <typename X>
using BitsOf = std::conditional_t<sizeof(X) == 2, std::uint16_t,
                                  std::conditional_t<sizeof(X) == 4, std::uint32_t, std::uint64_t>>;

template <typename X>
__device__ __forceinline__ BitsOf<X> minus_inf_bits() {
  const RawPack empty = empty_pack<X>();
  BitsOf<X> bits;
  memcpy(&bits, &empty, sizeof bits);
  return bits;
}

// An element as X.
template <typename X, typename Source>
__device__ __forceinline__ BitsOf<X> load_bits(const Source *from) {
  if constexpr (std::is_same_v<X, Source>) {
    return *reinterpret_cast<const BitsOf<X> *>(from);
  } else {
    return __float_as_uint(load_element(from));
  }
}

// These elements of the pack at `from`, as X, and -inf.
template <typename X, typename Source>
__device__ __forceinline__ RawPack load_cols(const Source *from, WordCols cols) {
  constexpr int kSize = static_cast<int>(sizeof(X));
  RawPack raw = empty_pack<X>();
#pragma unroll
  for (int i = 0; i < kPackCols<X>; ++i) {
    if (i < cols.from || i >= cols.to) continue;
    const BitsOf<X> bits = load_bits<X>(from + i);
    if constexpr (kSize == 2) {
      raw.part[i / 2] = __byte_perm(raw.part[i / 2], bits, i % 2 == 0 ? 0x3254 : 0x5410);
    } else if constexpr (kSize == 4) {
      raw.part[i] = bits;
    } else {
      raw.part[2 * i] = static_cast<std::uint32_t>(bits);
      raw.part[2 * i + 1] = static_cast<std::uint32_t>(bits >> 32);
    }
  }
  return raw;
}

// These elements of a word of results: whole if that is all of them, and otherwise in pieces.
template <StoreHint hint, typename Y>
__device__ __forceinline__ void store_cols(Y *to, const RawPack &word, WordCols cols) {
  if (cols.all(kPackCols<Y>)) {
    store_raw<hint>(to, word);
  } else if (cols.any()) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (sizeof(Y) == 2) {
        std::uint16_t *half = reinterpret_cast<std::uint16_t *>(to) + 2 * i;
        if (cols.from <= 2 * i && 2 * i + 2 <= cols.to) {
          *reinterpret_cast<std::uint32_t *>(half) = word.part[i];
        }
        if (cols.to == 2 * i + 1) half[0] = static_cast<std::uint16_t>(word.part[i]);
        if (cols.from == 2 * i + 1) half[1] = static_cast<std::uint16_t>(word.part[i] >> 16);
      } else {
        const int element = i * 4 / static_cast<int>(sizeof(Y));
        if (cols.from <= element && element < cols.to) {
          reinterpret_cast<std::uint32_t *>(to)[i] = word.part[i];
        }
      }
    }
  }
}

}  // namespace softmax
