// Rows in the registers of a warp: how they are loaded and stored. See RowAccess for which way
// serves which rows.
//
// A row (for BLOCK: a warp's run of one) is shared by `lanes` lanes, a power of two: lane g of them
// holds packs g, g + lanes, ... or, where rows go by elements, elements g, g + lanes, ... A warp
// has 32 / lanes rows at a time, kRows times. No byte outside the tensor is read, and none outside
// the rows written.
#pragma once

#include "core/held_rows.h"
#include "core/shifted.h"
#include "cuda/prim/held.cuh"
#include "cuda/prim/word_ends.cuh"

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

// kOneShift: the lanes of a warp have one row. kFullPacks: as many packs as are mostly full in all
// lanes, for which there is code without a check a column.
template <typename X, typename Y, int kPacks, int kRows, bool kOneShift, int kFullPacks>
struct WarpRows {
  static constexpr int kCols = kPackCols<X>;
  static constexpr int kYWords = kCols * static_cast<int>(sizeof(Y)) / kWordBytes;  // of a pack
  static constexpr int kWordCols = kCols / kYWords;  // of a word of y
  // Parts of memory that a pack touches: one more where it can begin in the middle of one.
  static constexpr int kPackParts = sizeof(X) == 2 ? kParts + 1 : kParts;

  // Whether there is code for every shift: where it is one throughout the warp, and for the types
  // whose rows often are at any address.
  static constexpr bool kSwitch = kOneShift && sizeof(Y) == 2;

  HeldPacks<X, Y, kPacks> held[kRows];

  // The rows lie one after another; `present` of them exist.
  int present;
  int cols;
  int lanes;
  int groups;  // rows at a time
  int group;   // this lane's
  int member;  // its number in the group
  int lane;
  // Whether the tensor goes on before and after these rows, and whether after them by as much as a
  // part of memory (of full rows, which load_shifted() reads one part past).
  bool has_before;
  bool has_after;
  bool has_part_after;

  // All lanes of the warp share one row, or a run of one.
  __device__ __forceinline__ void take_one_row() {
    present = 1;
    lanes = kWarpThreads;
    groups = 1;
    group = 0;
    lane = threadIdx.x % kWarpThreads;
    member = lane;
  }

  template <RowAccess access>
  __device__ __forceinline__ void load(const X *x) {
    if constexpr (access == RowAccess::kWords) load_words(x);
    if constexpr (access == RowAccess::kUnits) load_units(x);
    if constexpr (access == RowAccess::kShifted) load_shifted(x);
  }
  template <RowAccess access, StoreHint hint>
  __device__ __forceinline__ void store(Y *y, bool is_log) const {
    if constexpr (access == RowAccess::kWords) store_words<hint>(y, is_log);
    if constexpr (access == RowAccess::kUnits) store_units<hint>(y, is_log);
    if constexpr (access == RowAccess::kShifted) store_shifted<hint>(y, is_log);
  }

 private:
  __device__ __forceinline__ int row(int r) const { return r * groups + group; }
  __device__ __forceinline__ bool is_present(int r) const { return row(r) < present; }
  __device__ __forceinline__ int col(int p) const { return (p * lanes + member) * kCols; }
  // Columns of a pack that exist, or less than 1.
  __device__ __forceinline__ int cols_left(int r, int p) const {
    return is_present(r) ? cols - col(p) : 0;
  }
  // Whether no lane's pack p has a column past the end. The same for the whole warp.
  __device__ __forceinline__ bool is_full(int p) const {
    return present == groups * kRows && cols >= (p + 1) * lanes * kCols;
  }

  // Calls use(n), n being a constant: packs before the n-th are full in all lanes.
  template <typename Use>
  __device__ __forceinline__ void with_full_packs(bool wanted, Use use) const {
    if constexpr (kFullPacks > 0) {
      if (wanted && is_full(kFullPacks - 1)) {
        use(std::integral_constant<int, kFullPacks>());
        return;
      }
    }
    use(std::integral_constant<int, 0>());
  }
  // For the compiler a value of its own each time: the comparisons of loading would otherwise be
  // kept for storing, a register of predicates and its unpacking for each.
  static __device__ __forceinline__ int anew(int value) {
    asm volatile("" : "+r"(value));
    return value;
  }

  // ---- words ----

  __device__ __forceinline__ void load_words(const X *x) {
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
  __device__ __forceinline__ void store_words(Y *y, bool is_log) const {
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
            store_raw<hint>(to + first, pack<Y>(value + first));
          }
        }
      }
    }
  }

  // ---- elements ----

  // Element k of pack p is this many after the lane's first.
  __device__ __forceinline__ int unit(int p, int k) const { return (p * kCols + k) * lanes; }

  __device__ __forceinline__ void load_units(const X *x) {
    const X nothing = -Limits<X>::infinity();
    X value[kRows][kPacks][kCols];
    with_full_packs(true, [&](auto full) {
      constexpr int kFull = decltype(full)::value;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const X *from = x + row(r) * cols + member;
        const int left = anew(is_present(r) ? cols - member : 0);
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
#pragma unroll
          for (int k = 0; k < kCols; ++k) {
            value[r][p][k] = p < kFull || unit(p, k) < left ? from[unit(p, k)] : nothing;
          }
        }
      }
    });
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) held[r].set(p, RawElements<X>::pack(value[r][p]));
    }
  }

  template <StoreHint hint>
  __device__ __forceinline__ void store_units(Y *y, bool is_log) const {
    with_full_packs(true, [&](auto full) {
      constexpr int kFull = decltype(full)::value;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        Y *to = y + row(r) * cols + member;
        const int left = anew(is_present(r) ? cols - member : 0);
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
          AccOf<X> value[kCols];
          held[r].output(p, is_log, value);
#pragma unroll
          for (int k = 0; k < kCols; ++k) {
            if (p < kFull || unit(p, k) < left) store_unit<hint>(to + unit(p, k), value[k]);
          }
        }
      }
    });
  }

  template <StoreHint hint>
  static __device__ __forceinline__ void store_unit(Y *to, Y value) {
    if constexpr (hint == StoreHint::kStreaming) {
      __stcs(to, value);
    } else {
      *to = value;
    }
  }

  // ---- packs at any address ----

  template <typename T>
  static __device__ __forceinline__ int bytes_past(const T *p, int unit) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(p) & static_cast<unsigned>(unit - 1));
  }
  // The last row of the tensor, or a row past it.
  __device__ __forceinline__ bool is_last(int r) const {
    return !has_after && row(r) >= present - 1;
  }

  __device__ __forceinline__ void load_shifted(const X *x) {
    constexpr int kSize = static_cast<int>(sizeof(X));
    // Rows with others before and after them have no part that reaches out of the tensor: a full
    // pack's kPackParts are read whole, where it begins with a part too. That is a part past the
    // rows, not only the half of one that a single element after them would fill.
    const bool inside = has_before && has_part_after;
    std::uint32_t part[kRows][kPacks][kPackParts];
    int past[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r)
      past[r] = kSize == 2 ? bytes_past(x + row(r) * cols, kPartBytes) : 0;
    with_full_packs(inside, [&](auto full) {
      constexpr int kFull = decltype(full)::value;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        // By a pointer throughout: from an integer the compiler would not know it as global memory.
        const std::uint32_t *from =
            reinterpret_cast<const std::uint32_t *>(x + row(r) * cols - past[r] / kSize) +
            member * kParts;
        // The tensor's first part: half of it may lie before.
        const bool is_first = !has_before && row(r) == 0 && member == 0;
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
          const int left = cols_left(r, p) * kSize;
          const int limit = kSize == 2 ? part_limit(left, is_last(r)) : left;
#pragma unroll
          for (int i = 0; i < kPackParts; ++i) {
            // Rows of wider types are whole packs here.
            const int begin = kSize == 2 ? i * kPartBytes - past[r] : 0;
            const bool may =
                p < kFull || (begin < limit && (p > 0 || i > 0 || begin >= 0 || !is_first));
            part[r][p][i] = may ? from[p * lanes * kParts + i] : 0u;
          }
        }
      }
    });
    if constexpr (kSize == 2) {
      if (!inside) load_halves(x, past, part);
    }
    with_full_packs(true, [&](auto full) {
      constexpr int kFull = decltype(full)::value;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
          RawPack raw;
#pragma unroll
          for (int i = 0; i < kParts; ++i) {
            const std::uint32_t next = part[r][p][kPackParts - kParts + i];
            raw.part[i] = kSize == 2 ? shift_right(part[r][p][i], next, 8 * past[r]) : next;
          }
          if (p >= kFull) raw = existing(raw, cols_left(r, p));
          held[r].set(p, raw);
        }
      }
    });
  }

  // What is past the row's end is the next row's, or nothing.
  static __device__ __forceinline__ RawPack existing(const RawPack &raw, int left) {
    if constexpr (sizeof(X) == 2) {
      return first_cols<X>(raw, left);
    } else {
      return left > 0 ? raw : empty_pack<X>();
    }
  }

  // The tensor's first and last element, where they have half a part to themselves.
  __device__ __forceinline__ void load_halves(
      const X *x, const int (&past)[kRows],
      std::uint32_t (&part)[kRows][kPacks][kPackParts]) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const std::uint16_t *halves = reinterpret_cast<const std::uint16_t *>(x + row(r) * cols);
      if (!has_before && row(r) == 0 && member == 0 && past[r] != 0) {
        part[r][0][0] = std::uint32_t{halves[0]} << 16;
      }
      const std::uint32_t last = is_present(r) && is_last(r) ? halves[cols - 1] : 0u;
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        const int half = half_part(past[r], 2 * cols_left(r, p), is_last(r));
#pragma unroll
        for (int i = 0; i < kPackParts; ++i) part[r][p][i] = i == half ? last : part[r][p][i];
      }
    }
  }

  template <StoreHint hint>
  __device__ __forceinline__ void store_shifted(Y *y, bool is_log) const {
    constexpr int kYSize = static_cast<int>(sizeof(Y));
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      RawPack word[kPacks][kYWords];
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        AccOf<X> value[kCols];
        held[r].output(p, is_log, value);
#pragma unroll
        for (int w = 0; w < kYWords; ++w) word[p][w] = pack<Y>(value + w * kWordCols);
      }
      Y *row_at = y + row(r) * cols;
      const int shift = bytes_past(row_at, kWordBytes);
      unsigned char *at = reinterpret_cast<unsigned char *>(row_at - shift / kYSize);
      const int end = is_present(r) ? shift + cols * kYSize : 0;
      const int parts = shift / kPartBytes;
      const int bytes = sizeof(Y) == 2 ? shift % kPartBytes : 0;
      with_full_packs(true, [&](auto full) {
        constexpr int kFull = decltype(full)::value;
        if constexpr (kSwitch) {
          switch (parts) {
            case 0: store_words_at<hint, kFull>(at, word, {0, bytes}, end); break;
            case 1: store_words_at<hint, kFull>(at, word, {1, bytes}, end); break;
            case 2: store_words_at<hint, kFull>(at, word, {2, bytes}, end); break;
            default: store_words_at<hint, kFull>(at, word, {3, bytes}, end); break;
          }
        } else {
          store_words_at<hint, kFull>(at, word, {parts, bytes}, end);
        }
      });
    }
  }

  // Word w of a lane's pack goes to the aligned word that its beginning falls into, with the end of
  // the word before it: the last one of the pack before, which is another lane's.
  template <StoreHint hint, int kFull>
  __device__ __forceinline__ void store_words_at(unsigned char *row_at,
                                                 RawPack (&word)[kPacks][kYWords], WordShift shift,
                                                 int end) const {
    const bool is_last_member = member == lanes - 1;
    const int source = lane - member + ((member + lanes - 1) & (lanes - 1));
    RawPack last = {};  // of the pack before, where that is the last member's
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
#pragma unroll
      for (int w = 0; w < kYWords; ++w) turn_word(word[p][w].part, shift);
      const RawPack &tail = word[p][kYWords - 1];
      RawPack before;
#pragma unroll
      for (int i = 0; i < kParts; ++i) {
        // What nobody takes is not sent.
        before.part[i] = 0;
        if (!kSwitch || i <= shift.parts) {
          before.part[i] =
              __shfl_sync(kFullWarp, is_last_member ? last.part[i] : tail.part[i], source);
        }
      }
      last = tail;
#pragma unroll
      for (int w = 0; w < kYWords; ++w) {
        RawPack merged;
#pragma unroll
        for (int i = 0; i < kParts; ++i) {
          merged.part[i] = merged_part(i, before.part[i], word[p][w].part[i], shift);
        }
        before = word[p][w];
        const int at = ((p * lanes + member) * kYWords + w) * kWordBytes;
        const bool is_first = p == 0 && w == 0 && member == 0;
        if (p >= kFull) {
          store_word_at<Y, hint>(row_at, at, merged, is_first ? shift.total() : 0, end);
        } else if (is_first && !shift.is_zero()) {
          store_after<Y>(row_at, merged, shift);
        } else {
          store_raw<hint>(row_at + at, merged);
        }
      }
    }
    // A row that fills every pack ends in a word after them.
    const int at = kPacks * lanes * kYWords * kWordBytes;
    if (is_last_member) {
      if constexpr (kFull == kPacks) {
        store_before<Y>(row_at + at, last, shift);
      } else {
        store_word_at<Y, hint>(row_at, at, last, 0, end);
      }
    }
  }
};

}  // namespace softmax
