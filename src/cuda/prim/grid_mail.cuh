// Parts of rows that blocks send each other through global memory without a fence (compute
// capability 9.0 and above).
//
// A part travels in words of 64 bits, each written and read at once: 32 bits of it, and the number
// of the row, by which whoever reads knows that the word has come. Equal words of all parts lie
// side by side, so that a warp reads them as lines.
//
// Whoever sends a part of row r over one of row r - kMessageRows, which shares its words, knows
// that all blocks have read that: see grid_lagged.cuh. Where a block sends a row only when it has
// read the one before, two rows' words would be enough.
#pragma once

#include <cuda/atomic>

#include "core/grid_schedule.h"
#include "cuda/prim/part_merge.cuh"

namespace softmax {

template <typename T>
class GridMail {
 public:
  static constexpr int kWords = message_words(sizeof(T));
  using Word = unsigned long long;

  // Of one of the teams whose words lie there, all 0 before the launch.
  __device__ __forceinline__ GridMail(void *words, int team, int parts)
      : pitch_(message_pitch(parts)) {
    words_ = static_cast<Word *>(words) + std::int64_t{kMessageRows} * kWords * pitch_ * team;
  }

  // By a whole warp, every lane with the same part. Rows are counted from 0, the team's own.
  __device__ __forceinline__ void send(std::uint32_t row, int number,
                                       const RowPart<T> &part) const {
    const int lane = threadIdx.x % kWarpThreads;
    std::uint32_t half[kWords];
    memcpy(half, &part, sizeof part);
    std::uint32_t own = half[0];
#pragma unroll
    for (int i = 1; i < kWords; ++i) own = lane == i ? half[i] : own;
    if (lane < kWords) {
      at(row, lane, number).store(Word{row + 1} << 32 | own, cuda::memory_order_relaxed);
    }
  }

  // The same of `count` parts side by side, from the given one on: a word a lane at a time.
  __device__ __forceinline__ void send_all(std::uint32_t row, int first, int count,
                                           const RowPart<T> *parts) const {
    const auto *halves = reinterpret_cast<const unsigned char *>(parts);
    for (int i = threadIdx.x % kWarpThreads; i < count * kWords; i += kWarpThreads) {
      const int word = i / count;
      const int part = i - word * count;
      std::uint32_t half;
      memcpy(&half, halves + part * sizeof *parts + word * sizeof half, sizeof half);
      at(row, word, first + part).store(Word{row + 1} << 32 | half, cuda::memory_order_relaxed);
    }
  }

  // The parts first, first + stride, ... of `slabs`, to `parts` as they come. By a lane for itself.
  __device__ __forceinline__ void receive(std::uint32_t row, int first, int stride, int slabs,
                                          RowPart<T> *parts) const {
    for (; first < slabs; first += stride) {
      while (look<1>(row, first, stride, 1, parts) != 0) {
      }
    }
  }

  // The same of kTogether parts at most, those that `missing` has a bit for, the first's being the
  // lowest. Looks once, for all of them together. Returns what is still missing.
  template <int kTogether>
  __device__ __forceinline__ std::uint32_t look(std::uint32_t row, int first, int stride,
                                                std::uint32_t missing, RowPart<T> *parts) const {
    Word word[kTogether][kWords] = {};  // no row's
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      if ((missing >> i & 1) == 0) continue;
#pragma unroll
      for (int k = 0; k < kWords; ++k) {
        word[i][k] = at(row, k, first + i * stride).load(cuda::memory_order_relaxed);
      }
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      bool has_come = true;
      std::uint32_t half[kWords];
#pragma unroll
      for (int k = 0; k < kWords; ++k) {
        has_come = has_come && static_cast<std::uint32_t>(word[i][k] >> 32) == row + 1;
        half[k] = static_cast<std::uint32_t>(word[i][k]);
      }
      if (!has_come) continue;
      memcpy(&parts[first + i * stride], half, sizeof half);
      missing &= ~(1u << i);
    }
    return missing;
  }

 private:
  __device__ __forceinline__ cuda::atomic_ref<Word, cuda::thread_scope_device> at(std::uint32_t row,
                                                                                  int word,
                                                                                  int slab) const {
    return cuda::atomic_ref<Word, cuda::thread_scope_device>(
        words_[(row % kMessageRows * kWords + word) * pitch_ + slab]);
  }

  Word *words_;
  std::int64_t pitch_;
};

}  // namespace softmax
