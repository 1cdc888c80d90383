// Rows in the registers of a warp: how they are loaded and stored, aligned or by way of shared
// memory. Which columns a lane holds depends on the column number alone, so both ways give the same
// bits.
//
// A row (for BLOCK: a warp's segment of one) is shared by `lanes` lanes, a power of two: lane g of
// them holds packs g, g + lanes, ... A warp has 32 / lanes rows at a time, kRows times.
#pragma once

#include "core/held_rows.h"
#include "cuda/prim/held.cuh"
#include "cuda/prim/stage.cuh"

namespace softmax {

// Blocks a multiprocessor for __launch_bounds__: as wished, where so many threads can be resident.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int kResidentThreads = 1024;
#else
constexpr int kResidentThreads = 1536;
#endif
template <int kWished, int kThreads>
constexpr int kResident =
    kWished *kThreads < kResidentThreads ? kWished : kResidentThreads / kThreads;

// How results are stored. kStreaming is the other to be tried: y is not read again here, but it may
// be by the caller's next kernel.
constexpr StoreHint kHeldStoreHint = StoreHint::kNone;

// A warp's part of the block's dynamic shared memory, which staged kernels alone have.
__device__ __forceinline__ unsigned char *warp_stage(int warp, int stage_bytes) {
  extern __shared__ uint4 stage_words[];
  return reinterpret_cast<unsigned char *>(stage_words) + warp * stage_bytes;
}

template <typename X, typename Y, int kPacks, int kRows>
struct WarpRows {
  static constexpr int kCols = kPackCols<X>;
  static constexpr int kYWords = kCols * static_cast<int>(sizeof(Y)) / kWordBytes;  // of a pack
  static constexpr int kWordCols = kCols / kYWords;  // of a word of y
  static constexpr int kRunWords = kPacks * kRows;   // a lane, of x
  static constexpr int kStageBytes = stage_bytes(kRunWords, sizeof(X), sizeof(Y));

  HeldPacks<X, Y, kPacks> held[kRows];

  // The rows lie one after another; `present` of them exist.
  int present;
  int cols;
  int lanes;
  int groups;  // rows at a time
  int group;   // this lane's
  int member;  // its number in the group
  int lane;

  __device__ __forceinline__ int row(int r) const { return r * groups + group; }
  __device__ __forceinline__ int col(int p) const { return (p * lanes + member) * kCols; }
  // Columns of a pack that exist, or less than 1.
  __device__ __forceinline__ int cols_left(int r, int p) const {
    return row(r) < present ? cols - col(p) : 0;
  }

  // Every address is aligned and every row is whole words.
  __device__ __forceinline__ void load(const X *x) {
    RawPack raw[kRows][kPacks];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        raw[r][p] = cols_left(r, p) > 0 ? load_raw(x + row(r) * cols + col(p)) : empty_pack<X>();
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) held[r].set(p, raw[r][p]);
    }
  }

  template <StoreHint hint>
  __device__ __forceinline__ void store(Y *y, bool is_log) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        if (cols_left(r, p) > 0) {
          AccOf<X> value[kCols];
          held[r].output(p, is_log, value);
          Y *to = y + row(r) * cols + col(p);
#pragma unroll
          for (int first = 0; first < kCols; first += kWordCols) {
            store_raw<hint>(to + first, pack_of(value, first));
          }
        }
      }
    }
  }

  // The same at any address, through `stage`, which the warp has to itself.
  __device__ __forceinline__ void load_staged(unsigned char *stage, const X *x) {
    stage_in<kRunWords>(stage, x, present * cols, lane);
    __syncwarp();
    const unsigned char *first = stage + bytes_past_word(x);
    with_piece<X>(piece_alignment(x), [&](auto piece) {
      using Piece = decltype(piece);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const unsigned char *at = first + (row(r) * cols + col(0)) * static_cast<int>(sizeof(X));
        const int turn = first_part(at, lane);
#pragma unroll
        for (int p = 0; p < kPacks; ++p, at += lanes * kWordBytes) {
          RawPack raw = empty_pack<X>();
          const int left = cols_left(r, p);
          if (left > 0) {
            read_parts<Piece>(at, turn, raw.part);
            if (left < kCols) raw = first_cols<X>(raw, left);
          }
          held[r].set(p, raw);
        }
      }
    });
    __syncwarp();
  }

  template <StoreHint hint>
  __device__ __forceinline__ void store_staged(unsigned char *stage, Y *y, bool is_log) const {
    unsigned char *first = stage + bytes_past_word(y);
    with_piece<Y>(piece_alignment(y), [&](auto piece) {
      using Piece = decltype(piece);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        unsigned char *at = first + (row(r) * cols + col(0)) * static_cast<int>(sizeof(Y));
        const int turn = first_part(at, lane);
#pragma unroll
        for (int p = 0; p < kPacks; ++p, at += lanes * kYWords * kWordBytes) {
          const int bytes = cols_left(r, p) * static_cast<int>(sizeof(Y));
          if (bytes > 0) write_pack<Piece>(at, turn, r, p, bytes, is_log);
        }
      }
    });
    __syncwarp();
    stage_out<kRunWords * kYWords, hint>(stage, y, present * cols, lane);
    __syncwarp();
  }

 private:
  template <typename T>
  __device__ __forceinline__ unsigned piece_alignment(const T *p) const {
    return static_cast<unsigned>(bytes_past_word(p) | (cols * static_cast<int>(sizeof(T))));
  }

  static __device__ __forceinline__ RawPack pack_of(const AccOf<X> (&value)[kCols], int first) {
    return pack<Y>(value + first);
  }

  template <typename Piece>
  __device__ __forceinline__ void write_pack(unsigned char *at, int turn, int r, int p, int bytes,
                                             bool is_log) const {
    AccOf<X> value[kCols];
    held[r].output(p, is_log, value);
#pragma unroll
    for (int w = 0; w < kYWords; ++w) {
      RawPack raw = pack_of(value, w * kWordCols);
      write_parts<Piece>(at + w * kWordBytes, turn, raw.part, bytes - w * kWordBytes);
    }
  }
};

}  // namespace softmax
