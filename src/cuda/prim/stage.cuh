// A warp's own stretch of shared memory, through which a run of elements at any address is loaded
// and stored in 16-byte words.
//
// The run keeps the alignment that it has in global memory: its aligned words move as words, and
// the elements before the first and after the last of them, which may share a word with a
// neighbour's run, one by one. No byte outside the run is touched. Packs of columns then begin
// anywhere in shared memory: a lane reads its 16 bytes in pieces, as large as the alignment allows,
// each eight lanes beginning with another piece, so that the lanes of a warp meet in no bank.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/prim/raw_pack.cuh"
#include "cuda/prim/reduce.cuh"

namespace softmax {

template <typename T>
__device__ __forceinline__ int bytes_past_word(const T *p) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(p) & (kWordBytes - 1));
}

// How a run of elements falls into whole words.
template <typename T>
struct RunSplit {
  int shift;  // bytes of the first element past a word's beginning
  int head;   // elements before the first whole word
  int words;
  int tail;  // elements after the last

  __device__ __forceinline__ RunSplit(const T *run, int count) : shift(bytes_past_word(run)) {
    constexpr int kWordElements = kWordBytes / static_cast<int>(sizeof(T));
    const int to_word = shift == 0 ? 0 : kWordElements - shift / static_cast<int>(sizeof(T));
    head = to_word < count ? to_word : count;
    words = (count - head) / kWordElements;
    tail = count - head - words * kWordElements;
  }
  __device__ __forceinline__ int tail_first() const {
    return head + words * (kWordBytes / static_cast<int>(sizeof(T)));
  }
};

// Brings run[0 .. count) to `stage`, element i to byte shift + i * sizeof(T). At most kMaxWords
// whole words a lane, all of them loaded before the first is used. The caller synchronises.
template <int kMaxWords, typename T>
__device__ __forceinline__ void stage_in(unsigned char *stage, const T *run, int count, int lane) {
  const RunSplit<T> split(run, count);
  T *elements = reinterpret_cast<T *>(stage + split.shift);
  const T *words_from = run + split.head;
  unsigned char *words_to = stage + split.shift + split.head * static_cast<int>(sizeof(T));
  RawPack word[kMaxWords];
#pragma unroll
  for (int i = 0; i < kMaxWords; ++i) {
    const int k = i * kWarpThreads + lane;
    // Not left undefined: that would be kept from one row to the next.
    word[i] = k < split.words ? load_raw(words_from + k * kPackCols<T>) : RawPack{};
  }
  const int tail = split.tail_first() + lane;
  const T head_element = lane < split.head ? run[lane] : T{};
  const T tail_element = lane < split.tail ? run[tail] : T{};
#pragma unroll
  for (int i = 0; i < kMaxWords; ++i) {
    const int k = i * kWarpThreads + lane;
    if (k < split.words) store_raw<StoreHint::kNone>(words_to + k * kWordBytes, word[i]);
  }
  if (lane < split.head) elements[lane] = head_element;
  if (lane < split.tail) elements[tail] = tail_element;
}

// The way back.
template <int kMaxWords, StoreHint hint, typename T>
__device__ __forceinline__ void stage_out(const unsigned char *stage, T *run, int count, int lane) {
  const RunSplit<T> split(run, count);
  const T *elements = reinterpret_cast<const T *>(stage + split.shift);
  T *words_to = run + split.head;
  const T *words_from = elements + split.head;
#pragma unroll
  for (int i = 0; i < kMaxWords; ++i) {
    const int k = i * kWarpThreads + lane;
    if (k < split.words) {
      store_raw<hint>(words_to + k * kPackCols<T>, load_raw(words_from + k * kPackCols<T>));
    }
  }
  const int tail = split.tail_first() + lane;
  if (lane < split.head) run[lane] = elements[lane];
  if (lane < split.tail) run[tail] = elements[tail];
}

// ---- 16 bytes at any element's address in shared memory ----

// Which of the four parts of a pack at `at` this lane takes first. Where lanes are packs apart,
// each eight of them cover all banks but for the part, so each eight get another.
__device__ __forceinline__ int first_part(const unsigned char *at, int lane) {
  return (lane / 8 - static_cast<int>(reinterpret_cast<std::uintptr_t>(at) >> 2)) & 3;
}

// result[(i + turn) % 4] = part[i], or with the opposite turn the other way round. A switch of
// registers: no array that is indexed at run time.
__device__ __forceinline__ void turn_parts(std::uint32_t (&part)[4], int turn) {
#pragma unroll
  for (int step = 1; step <= 2; step *= 2) {
    const bool turned = (turn & step) != 0;
    const std::uint32_t before[4] = {part[0], part[1], part[2], part[3]};
#pragma unroll
    for (int i = 0; i < 4; ++i) part[i] = turned ? before[(i + 4 - step) % 4] : before[i];
  }
}

// Piece is what the address is a multiple of: 2, 4 or 8 bytes.
template <typename Piece>
__device__ __forceinline__ void read_parts(const unsigned char *at, int turn,
                                           std::uint32_t (&part)[4]) {
  if constexpr (sizeof(Piece) == 8) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint2 piece = reinterpret_cast<const uint2 *>(at)[i];
      part[2 * i] = piece.x;
      part[2 * i + 1] = piece.y;
    }
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const unsigned char *from = at + 4 * ((i + turn) & 3);
      if constexpr (sizeof(Piece) == 4) {
        part[i] = *reinterpret_cast<const std::uint32_t *>(from);
      } else {
        const std::uint32_t low = reinterpret_cast<const std::uint16_t *>(from)[0];
        const std::uint32_t high = reinterpret_cast<const std::uint16_t *>(from)[1];
        part[i] = __byte_perm(low, high, 0x5410);
      }
    }
    turn_parts(part, turn);
  }
}

// The first `bytes` of 16, a multiple of Piece's.
template <typename Piece>
__device__ __forceinline__ void write_parts(unsigned char *at, int turn, std::uint32_t (&part)[4],
                                            int bytes) {
  if constexpr (sizeof(Piece) == 8) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (8 * i < bytes) {
        reinterpret_cast<uint2 *>(at)[i] = make_uint2(part[2 * i], part[2 * i + 1]);
      }
    }
  } else {
    turn_parts(part, -turn);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int offset = 4 * ((i + turn) & 3);
      if constexpr (sizeof(Piece) == 4) {
        if (offset < bytes) *reinterpret_cast<std::uint32_t *>(at + offset) = part[i];
      } else {
        std::uint16_t *to = reinterpret_cast<std::uint16_t *>(at + offset);
        if (offset < bytes) to[0] = static_cast<std::uint16_t>(part[i]);
        if (offset + 2 < bytes) to[1] = static_cast<std::uint16_t>(part[i] >> 16);
      }
    }
  }
}

// Calls use(Piece()) with the largest piece for elements of T at addresses that are multiples of
// `alignment` (a power of two or a sum of such).
template <typename T, typename Use>
__device__ __forceinline__ void with_piece(unsigned alignment, Use use) {
  if constexpr (sizeof(T) == 8) {
    use(std::uint64_t{});
  } else if constexpr (sizeof(T) == 4) {
    use(std::uint32_t{});
  } else {
    if (alignment % 4 == 0) {
      use(std::uint32_t{});
    } else {
      use(std::uint16_t{});
    }
  }
}

}  // namespace softmax
