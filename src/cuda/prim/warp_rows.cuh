// Rows in the registers of a warp: how they are loaded, reduced, finished and stored. See RowAccess
// for which way serves which rows.
//
// A row (for BLOCK: a warp's run of one) is shared by `lanes` lanes, a power of two: member g of
// them holds words g, g + lanes, ... of it, or of the window that it lies in. A warp has 32 / lanes
// rows at a time, kRows times. No byte outside the tensor is read, and none outside the rows
// written.
#pragma once

#include "core/held_rows.h"
#include "cuda/prim/compile.cuh"
#include "cuda/prim/held.cuh"
#include "cuda/prim/part_merge.cuh"
#include "cuda/prim/word_ends.cuh"

namespace softmax {

// How results are stored. kStreaming is the other to be tried: y is not read again here, but it may
// be by the caller's next kernel.
constexpr StoreHint kHeldStoreHint = StoreHint::kNone;

// kOneRow: the lanes of a warp have one row. kFullPacks: as many packs as are mostly full in all
// lanes, for which there is code without a check a column. kMayBeWords: rows by elements may be
// whole words after all, which are dealt out as kWords has them. Source: what X are made of as they
// are loaded; a pack is kCols of them, a word or half of one.
template <typename X, typename Y, int kPacks, RowAccess access, int kRows, bool kOneRow,
          int kFullPacks, bool kKeepsTerms = access == RowAccess::kUnits, bool kMayBeWords = false,
          typename Source = X>
struct WarpRows {
  using Acc = AccOf<X>;
  static constexpr bool kIsWindow = access == RowAccess::kWindow;
  // Whether what no lane has is left out pack by pack and half by half.
  static constexpr bool kIsSparse = kKeepsTerms && sizeof(Y) == 2;
  static constexpr int kCols = kPackCols<X>;
  static constexpr int kYWords = kCols * static_cast<int>(sizeof(Y)) / kWordBytes;  // of a pack
  static constexpr int kWordCols = kCols / kYWords;  // of a word of y
  using Held = HeldPacks<X, Y, kPacks, kIsWindow, kKeepsTerms>;
  // Of the sum of a lane's terms, for warp_part: the same with and without a tail.
  static constexpr int kSumBits = unit_bits((kPacks + 1) * kCols);

  Held held[kRows];

  // The rows lie one after another; `present` of them exist.
  int present;
  int cols;
  int pitch;  // element by element: from one row to the next
  int lanes;
  int groups;  // rows at a time
  int group;   // this lane's
  int member;  // its number in the group
  int lane;
  // Elements of the tensor before these rows, and from their first on, as far as an int goes.
  int before;
  int after;

  // All lanes of the warp share one row, or a run of one.
  __device__ __forceinline__ void take_one_row() {
    present = 1;
    pitch = 0;
    lanes = kWarpThreads;
    groups = 1;
    group = 0;
    lane = threadIdx.x % kWarpThreads;
    member = lane;
  }
  // Where the rows begin in a tensor of `all` elements.
  __device__ __forceinline__ void set_place(std::int64_t first, std::int64_t all) {
    constexpr std::int64_t kMost = 1 << 30;
    before = static_cast<int>(first < kMost ? first : kMost);
    after = static_cast<int>(all - first < kMost ? all - first : kMost);
  }

  __device__ __forceinline__ void load(const Source *x) {
    if constexpr (access == RowAccess::kWords) load_words(x);
    if constexpr (access == RowAccess::kUnits) {
      if (!has_words()) {
        load_units(x);
      } else if (is_word_aligned(x)) {
        load_packs<true>(x);
      } else {
        load_packs<false>(x);
      }
    }
    if constexpr (access == RowAccess::kWindow) load_window(x);
  }
  // Of row r's elements in this lane, the largest or a NaN.
  __device__ __forceinline__ Acc max(int r) const { return held[r].max(places(r)); }
  // Leaves what became of the values where they were loaded from, in shared memory, where it is as
  // wide.
  __device__ __forceinline__ void leave(X *x) const {
    static_assert(sizeof(X) == sizeof(Acc) && !kIsWindow && kRows == 1, "a value's own place");
    if constexpr (access == RowAccess::kWords) leave_words(x);
    if constexpr (access == RowAccess::kUnits) leave_units(x);
  }
  // Row r's part by this lane: the terms against `max`, which is the row's. By all lanes together.
  __device__ __forceinline__ RowPart<Acc> sum(int r, Acc max, bool is_log) {
    RowPart<Acc> part = RowPart<Acc>::of(max);
    if constexpr (Held::kHasOrder) {
      typename Held::Sums sums = {};
      held[r].add_terms(max, is_log, places(r), &sums, &part);
      if constexpr (kIsWindow) {
        to_canonical<kCols / 2>(shift[r], &sums);
        sums.add_to(part.others);
      }
    } else {
      part.others = held[r].add_terms(max, is_log, places(r));
    }
    return part;
  }
  // The part of one row, by all lanes together, of what `sum` gave.
  __device__ __forceinline__ RowPart<Acc> all_lanes(RowPart<Acc> part, bool is_log) {
    part = warp_part<kSumBits>(part, is_log && Held::kHasOrder);
    if (is_log) take_max_out(0, &part);
    return part;
  }
  // From load to store, where these lanes have all of each row.
  __device__ __forceinline__ void finish_whole_rows(const RowArgs &args) {
    Acc largest[kRows];
    RowPart<Acc> part[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) largest[r] = max(r);
    rows_max(&largest);
#pragma unroll
    for (int r = 0; r < kRows; ++r) part[r] = sum(r, largest[r], args.is_log);
    if (kSharesFinish && lanes >= kRows) return finish_by_lanes(largest, &part, args);
    lanes_part(part, args.is_log && Held::kHasOrder, lanes);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (args.is_log) take_max_out(r, &part[r]);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      finish_row(r, finish(part[r], Held::kNearLimit, args.empty_is_zero, args.is_log), args);
    }
  }
  template <StoreHint hint>
  __device__ __forceinline__ void store(Y *y, bool is_log) {
    if constexpr (access == RowAccess::kWords) {
      store_words<hint>(y, is_log);
    } else if constexpr (access == RowAccess::kUnits) {
      if (!has_words()) {
        store_units<hint>(y, is_log);
      } else if (is_word_aligned(y)) {
        store_packs<true, hint>(y, is_log);
      } else {
        store_packs<false, hint>(y, is_log);
      }
    } else if (element_of(y + row(0) * cols) % kWordCols == shift[0] % kWordCols) {
      store_window<hint>(y, is_log);
    } else {
      store_elements<hint>(y, is_log);
    }
  }

 private:
  // Rows by elements have a lane each where there are several.
  static constexpr bool kSharesFinish = kRows > 1 && access != RowAccess::kUnits;

  int shift[kRows];  // of the rows' windows

  // Log-softmax: row r's part without one of the maximum's own terms, where they have not been told
  // apart yet.
  __device__ __forceinline__ void take_max_out(int r, RowPart<Acc> *part) {
    if constexpr (!Held::kHasOrder) {
      const bool is_enough = part->take_max_out(Held::kNearLimit);
      if (!__all_sync(kFullWarp, is_enough)) take_others_below(r, part->max, !is_enough, part);
    }
  }
  // The second half of that for row r, whose maximum this is: in lanes that ask.
  __device__ __forceinline__ void take_others_below(int r, Acc max, bool asks, RowPart<Acc> *part) {
    auto below = RowPart<Acc>::of(lanes_max_or_nan(held[r].max_below(max, places(r)), lanes));
    // A row's last run may be one element.
    if (__any_sync(kFullWarp, below.max >= Limits<Acc>::lowest())) {
      below.others = held[r].add_terms_below(below.max);
      below = lanes_part(below, false, lanes);
    }
    if (asks) part->take_others_from(below, Held::kNearLimit);
  }
  __device__ __forceinline__ void finish_row(int r, const RowFactors<Acc> &row,
                                             const RowArgs &args) {
    held[r].finish_whole({row, {sum_unit<Acc>(), Acc(0)}, unknown_zero(args)}, args.is_log);
  }
  // What is done once a row is done by a few of its lanes, each for one of the rows, and what
  // outputs need of it told to the others: short rows have as much of it as of their elements.
  __device__ __forceinline__ void finish_by_lanes(const Acc (&largest)[kRows],
                                                  RowPart<Acc> (*part)[kRows],
                                                  const RowArgs &args) {
    const bool is_log = args.is_log;
    const int share = lanes / kRows;
    RowPart<Acc> own_part = part_of_one_row(*part, is_log && Held::kHasOrder, lanes, member);
    if constexpr (!Held::kHasOrder) {
      const bool is_enough = !is_log || own_part.take_max_out(Held::kNearLimit);
      if (!__all_sync(kFullWarp, is_enough)) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          take_others_below(r, largest[r], !is_enough && member / share == r, &own_part);
        }
      }
    }
    const RowFactors<Acc> own = finish(own_part, Held::kNearLimit, args.empty_is_zero, is_log);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int source = lane - member + r * share;
      RowFactors<Acc> row = {finite_reference(largest[r]), Acc(0), Acc(0), Acc(0)};
      if (is_log) {
        row.log_sum = __shfl_sync(kFullWarp, own.log_sum, source);
      } else {
        row.inverse_sum = __shfl_sync(kFullWarp, own.inverse_sum, source);
        // Results of 16 bits do without.
        if (sizeof(Y) > 2) row.correction = __shfl_sync(kFullWarp, own.correction, source);
      }
      finish_row(r, row, args);
    }
  }
  // From lanes' maxima to rows'. Those of 16-bit elements travel two by two.
  __device__ __forceinline__ void rows_max(Acc (*largest)[kRows]) const {
    if constexpr (sizeof(X) == 2 && kSharesFinish) {
      using Elements = RawElements<X>;
      std::uint32_t two[kRows / 2];
#pragma unroll
      for (int i = 0; i < kRows / 2; ++i) {
        two[i] = Elements::pack((*largest)[2 * i], (*largest)[2 * i + 1]);
      }
      lanes_reduce(two, lanes, pair_max<typename Elements::Pair>);
#pragma unroll
      for (int i = 0; i < kRows / 2; ++i) {
        const float2 both = Elements::unpack(two[i]);
        (*largest)[2 * i] = both.x;
        (*largest)[2 * i + 1] = both.y;
      }
    } else {
      lanes_max_or_nan(*largest, lanes);
    }
  }

  __device__ __forceinline__ Places places(int r) const {
    const int step = lanes * kCols;
    return {kIsWindow ? first_col(r) : 0, kIsWindow && has_tail(), step, end_of_rows(),
            has_words() ? 0 : step / 2};
  }
  __device__ __forceinline__ int row(int r) const { return r * groups + group; }
  __device__ __forceinline__ bool is_present(int r) const { return row(r) < present; }
  __device__ __forceinline__ int col(int p) const { return (p * lanes + member) * kCols; }
  // Columns of a pack that exist, or less than 1.
  __device__ __forceinline__ int cols_left(int r, int p) const {
    return is_present(r) ? cols - col(p) : 0;
  }
  // Packs that begin at or past this element, counted from the rows' first words, have none of them
  // in any lane. The same for the whole warp.
  __device__ __forceinline__ int end_of_rows() const {
    if constexpr (!kIsWindow) {
      return cols;
    } else {
      return cols + (kOneRow ? shift[0] : kCols - 1);
    }
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

  // ---- words ----

  // Where this lane's part of the first row is. Several rows are in global memory, and the compiler
  // would make each address in 64 bits from the kernel's arguments anew.
  template <typename T>
  __device__ __forceinline__ T *base(T *rows) const {
    T *const first = rows + (group * cols + member * kCols);
    if constexpr (kRows > 1) return anew_base(first);
    return first;
  }
  // From there to pack p of row r.
  __device__ __forceinline__ int offset(int r, int p) const {
    return r * groups * cols + p * lanes * kCols;
  }

  __device__ __forceinline__ void load_words(const Source *x) {
    RawPack raw[kRows][kPacks];
    const Source *const from = base(x);
    with_full_words([&](auto full) {
      constexpr int kFull = decltype(full)::value;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
          const bool may = p < kFull || cols_left(r, p) > 0;
          raw[r][p] = may ? load_whole<X>(from + offset(r, p)) : empty_pack<X>();
        }
      }
    });
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) held[r].set(p, raw[r][p]);
    }
  }

  __device__ __forceinline__ void leave_words(X *x) const {
    with_full_words([&](auto full) {
      constexpr int kFull = decltype(full)::value;
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        if (p >= kFull && cols_left(0, p) <= 0) continue;
        Acc value[kCols];
        held[0].copy(p, value);
        store_raw<StoreHint::kShared>(x + col(p), RawElements<X>::pack(value));
      }
    });
  }

  template <StoreHint hint>
  __device__ __forceinline__ void store_words(Y *y, bool is_log) {
    if constexpr (kYWords == 2) {
      if (kOneRow || lanes > 1) return store_sectors<hint>(y, is_log);
    }
    Y *const from = base(y);
    with_full_words([&](auto full) {
      constexpr int kFull = decltype(full)::value;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
          if (p < kFull || cols_left(r, p) > 0) {
            Acc value[kCols];
            held[r].output(p, is_log, value);
            Y *to = from + offset(r, p);
#pragma unroll
            for (int first = 0; first < kCols; first += kWordCols) {
              store_raw<hint>(to + first, pack<Y>(value + first));
            }
          }
        }
      }
    });
  }
  // The same where a pack is two words of y.
  template <StoreHint hint>
  __device__ __forceinline__ void store_sectors(Y *y, bool is_log) {
    const int odd = member & 1;
    Y *const from = base(y - odd * kWordCols);
    with_full_words([&](auto full) {
      constexpr int kFull = decltype(full)::value;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
          Acc value[kCols];
          held[r].output(p, is_log, value);
          RawPack first = pack<Y>(value), second = pack<Y>(value + kWordCols);
          share_sectors(&first, &second);
          Y *const to = from + offset(r, p);
          // From the even lane's pack on.
          const int left = is_present(r) ? cols - col(p) + odd * kCols : 0;
          if (p < kFull || left > 0) store_raw<hint>(to, first);
          if (p < kFull || left > kCols) store_raw<hint>(to + kCols, second);
        }
      }
    });
  }
  // Where a warp has one row, most are all full; where it has several, asking is as cheap.
  template <typename Use>
  __device__ __forceinline__ void with_full_words(Use use) const {
    if constexpr (kOneRow && kFullPacks == kPacks) {
      with_full_packs(true, use);
    } else {
      use(std::integral_constant<int, 0>());
    }
  }

  // ---- elements ----

  // Element k of pack p is this many after the lane's first.
  __device__ __forceinline__ int unit(int p, int k) const { return (p * kCols + k) * lanes; }

  __device__ __forceinline__ void load_units(const Source *x) {
    with_full_packs(true, [&](auto full) {
      constexpr int kFull = decltype(full)::value;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const Source *from = x + row(r) * pitch + member;
        const int left = anew(is_present(r) ? cols - member : 0);
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
          if (kIsSparse && p >= kFull && p > 0 && unit(p, 0) >= cols) continue;
          if (p < kFull || (kIsSparse && kFullPacks > 0 && is_full(p))) {
            held[r].set(p, load_pack_units<true>(from + unit(p, 0), 0));
          } else {
            held[r].set(p, load_pack_units<false>(from + unit(p, 0), left - unit(p, 0)));
          }
        }
      }
    });
  }
  // Of one pack, those before `left`.
  template <bool kIsWhole>
  __device__ __forceinline__ RawPack load_pack_units(const Source *from, int left) const {
    const BitsOf<X> nothing = minus_inf_bits<X>();
    BitsOf<X> bits[kCols];
#pragma unroll
    for (int k = 0; k < kCols; ++k) {
      bits[k] = kIsWhole || k * lanes < left ? load_bits<X>(from + k * lanes) : nothing;
    }
    RawPack raw;
    memcpy(&raw, bits, sizeof raw);
    if constexpr (sizeof(Y) == 2 && !kKeepsTerms) {
      // Or the compiler would keep the halves, in twice as many registers.
#pragma unroll
      for (std::uint32_t &part : raw.part) part = anew(part);
    }
    return raw;
  }

  __device__ __forceinline__ void leave_units(X *x) const {
    with_full_packs(true, [&](auto full) {
      constexpr int kFull = decltype(full)::value;
      const int left = anew(is_present(0) ? cols - member : 0);
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        if (p >= kFull && p > 0 && unit(p, 0) >= cols) continue;
        Acc value[kCols];
        held[0].copy(p, value);
#pragma unroll
        for (int k = 0; k < kCols; ++k) {
          if (p < kFull || unit(p, k) < left) x[member + unit(p, k)] = value[k];
        }
      }
    });
  }

  template <StoreHint hint>
  __device__ __forceinline__ void store_units(Y *y, bool is_log) const {
    with_full_packs(true, [&](auto full) {
      constexpr int kFull = decltype(full)::value;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        Y *to = y + row(r) * pitch + member;
        const int left = anew(is_present(r) ? cols - member : 0);
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
          if (p >= kFull && p > 0 && unit(p, 0) >= cols) continue;
          AccOf<X> value[kCols];
          held[r].output(p, is_log, value);
          const bool all = p < kFull || (kIsSparse && kFullPacks > 0 && is_full(p));
          if (all) {
#pragma unroll
            for (int k = 0; k < kCols; ++k) store_unit<hint>(to + unit(p, k), value[k]);
          } else {
#pragma unroll
            for (int k = 0; k < kCols; ++k) {
              if (unit(p, k) < left) store_unit<hint>(to + unit(p, k), value[k]);
            }
          }
        }
      }
    });
  }

  template <StoreHint hint>
  static __device__ __forceinline__ void store_unit(Y *to, Acc value) {
    if constexpr (hint == StoreHint::kStreaming) {
      __stcs(to, DeviceElement<Y>::store(value));
    } else {
      store_element(to, value);
    }
  }

  // ---- whole words in the place of elements ----
  //
  // Where the rows lie off a word's boundary, their words go element by element.

  __device__ __forceinline__ bool has_words() const { return kMayBeWords && cols % kCols == 0; }

  template <bool kIsAligned>
  __device__ __forceinline__ void load_packs(const Source *x) {
    with_full_packs(kIsAligned, [&](auto full) {
      constexpr int kFull = decltype(full)::value;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const Source *from = x + row(r) * pitch + member * kCols;
        const int left = anew(is_present(r) ? cols - member * kCols : 0);
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
          if (kIsSparse && p >= kFull && p > 0 && unit(p, 0) >= cols) continue;
          RawPack raw = empty_pack<X>();
          if (p < kFull || unit(p, 0) < left) {
            raw = kIsAligned ? load_whole<X>(from + unit(p, 0))
                             : load_cols<X>(from + unit(p, 0), WordCols{0, kCols});
          }
          held[r].set(p, raw);
        }
      }
    });
  }

  template <bool kIsAligned, StoreHint hint>
  __device__ __forceinline__ void store_packs(Y *y, bool is_log) const {
    with_full_packs(kIsAligned, [&](auto full) {
      constexpr int kFull = decltype(full)::value;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        Y *to = y + row(r) * pitch + member * kCols;
        const int left = anew(is_present(r) ? cols - member * kCols : 0);
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
          if (p >= kFull && unit(p, 0) >= left) continue;
          Acc value[kCols];
          held[r].output(p, is_log, value);
          if constexpr (kIsAligned) {
#pragma unroll
            for (int first = 0; first < kCols; first += kWordCols) {
              store_raw<hint>(to + unit(p, 0) + first, pack<Y>(value + first));
            }
          } else {
#pragma unroll
            for (int k = 0; k < kCols; ++k) store_unit<hint>(to + unit(p, 0) + k, value[k]);
          }
        }
      }
    });
  }

  // ---- windows ----

  // An address modulo a word, in elements.
  template <typename T>
  static __device__ __forceinline__ int element_of(const T *p) {
    constexpr std::uintptr_t kInWord = kPackCols<T> - 1;
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(p) / sizeof(T) & kInWord);
  }
  // Where this lane's first pack has its first column.
  __device__ __forceinline__ int first_col(int r) const { return member == 0 ? shift[r] : 0; }
  // Where the row ends, from the lane's first element on.
  __device__ __forceinline__ int end_of(int r) const {
    return is_present(r) ? shift[r] + cols - member * kCols : 0;
  }
  // The same for the whole warp.
  __device__ __forceinline__ bool has_tail() const {
    const int capacity = lanes * kPacks * kCols;
    return kOneRow ? window_has_tail(shift[0], cols, capacity)
                   : window_may_have_tail(cols, capacity, kCols);
  }

  __device__ __forceinline__ void load_window(const Source *x) {
    // Rows with others before and after them have no word that reaches out of the tensor.
    const bool inside = window_is_inside(present * cols, before, after, kCols);
#pragma unroll
    for (int r = 0; r < kRows; ++r) shift[r] = element_of(x + row(r) * cols) % kCols;
    RawPack raw[kRows][Held::kStored];
    with_full_packs(inside, [&](auto full) {
      constexpr int kFull = decltype(full)::value;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const Source *from = x + (row(r) * cols - shift[r]) + member * kCols;
        int limit = anew(end_of(r));
        bool first_reaches_out = false;
        if (!inside && is_present(r)) {
          const WindowReads reads = reads_of(r);
          first_reaches_out = member == 0 && reads.first_reaches_out;
          limit = reads.limit - member * kCols;
        }
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
          const int at = p * lanes * kCols;
          const bool may = p < kFull || (at < limit && (p > 0 || !first_reaches_out));
          raw[r][p] = may ? load_whole<X>(from + at) : empty_pack<X>();
        }
        raw[r][kPacks] = empty_pack<X>();
        if (has_tail() && kPacks * lanes * kCols < limit) {
          raw[r][kPacks] = load_whole<X>(from + kPacks * lanes * kCols);
        }
      }
    });
    if (!inside) load_ends(x, raw);
    with_full_packs(true, [&](auto full) {
      constexpr int kFull = decltype(full)::value;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const int end = anew(end_of(r));
        clear_before<X>(first_col(r), &raw[r][0]);
#pragma unroll
        for (int p = kFull; p < kPacks; ++p) clear_from<X>(end - p * lanes * kCols, &raw[r][p]);
        if (has_tail()) clear_from<X>(end - kPacks * lanes * kCols, &raw[r][kPacks]);
#pragma unroll
        for (int p = 0; p < Held::kStored; ++p) held[r].set(p, raw[r][p]);
      }
    });
  }

  __device__ __forceinline__ WindowReads reads_of(int r) const {
    const int at = row(r) * cols;
    return window_reads(shift[r], cols, before + at, after - at, kCols);
  }

  // The first and the last word of a row, where they reach out of the tensor. It is rare.
  __device__ __forceinline__ void load_ends(const Source *x,
                                            RawPack (&raw)[kRows][Held::kStored]) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const WindowReads reads = reads_of(r);
      const int end = shift[r] + cols;
      const int last = (end - 1) / kCols;  // its number
#pragma unroll 1
      for (int side = 0; side < 2; ++side) {
        const int word = side == 0 ? 0 : last;
        const bool is_out = side == 0 ? reads.first_reaches_out : last * kCols >= reads.limit;
        const bool is_own = is_present(r) && (word & (lanes - 1)) == member;
        if (!is_out || !is_own) continue;
        const RawPack found = load_cols<X>(x + (row(r) * cols - shift[r]) + word * kCols,
                                           word_cols_of(word * kCols, kCols, shift[r], end));
#pragma unroll
        for (int p = 0; p < Held::kStored; ++p) {
          if (p * lanes + member == word) raw[r][p] = found;
        }
      }
    }
  }

  // Position sums, shifted by kStep and less: see step_positions.
  template <int kStep, typename Sums>
  __device__ __forceinline__ void to_canonical(int by, Sums *sums) const {
    const int source = lane - member + ((member + 1) & (lanes - 1));
    Acc next[kStep];
#pragma unroll
    for (int i = 0; i < kStep; ++i) next[i] = __shfl_sync(kFullWarp, sums->sum[i], source);
    step_positions<kStep>(sums->sum, next, (by & kStep) != 0);
    if constexpr (kStep > 1) to_canonical<kStep / 2>(by, sums);
  }

  // Where the outputs lie in their words as the inputs do in theirs. A word in which the row ends
  // is kept for last, so that what stores pieces is there once.
  template <StoreHint hint>
  __device__ __forceinline__ void store_window(Y *y, bool is_log) {
    with_full_packs(true, [&](auto full) {
      constexpr int kFull = decltype(full)::value;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        Y *to = y + (row(r) * cols - shift[r]) + member * kCols;
        const int first = first_col(r);
        const int end = anew(end_of(r));
        RawPack last = {};
        int last_at = end;
        const auto keep_or_store = [&](int at, const RawPack &word) {
          if (at + kWordCols <= end) {
            store_raw<hint>(to + at, word);
          } else if (at < end) {
            last = word;
            last_at = at;
          }
        };
        const auto store_pack = [&](int p, auto store_one) {
          Acc value[kCols];
          held[r].output(p, is_log, value);
#pragma unroll
          for (int w = 0; w < kYWords; ++w) {
            store_one((p < kPacks ? p * lanes : kPacks * lanes) * kCols + w * kWordCols,
                      pack<Y>(value + w * kWordCols));
          }
        };
        store_pack(0, [&](int at, const RawPack &word) {
          store_cols<hint>(to + at, word, word_cols_of(at, kWordCols, first, end));
        });
#pragma unroll
        for (int p = 1; p < kPacks; ++p) {
          if (p >= kFull && p * lanes * kCols >= end_of_rows()) continue;
          store_pack(p, [&](int at, const RawPack &word) {
            if (p < kFull) {
              store_raw<hint>(to + at, word);
            } else {
              keep_or_store(at, word);
            }
          });
        }
        if (has_tail()) store_pack(kPacks, keep_or_store);
        if (last_at < end) {
          store_cols<hint>(to + last_at, last, WordCols{0, end - last_at});
        }
      }
    });
  }

  // Where they do not: one by one, a pack after another brought to the first place.
  template <StoreHint hint>
  __device__ __forceinline__ void store_elements(Y *y, bool is_log) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      Y *to = y + (row(r) * cols - shift[r]);
#pragma unroll 1
      for (int p = 0; p < Held::kStored; ++p) {
        const int at = col(p);
        const WordCols own = word_cols_of(at, kCols, shift[r], is_present(r) ? shift[r] + cols : 0);
        Acc value[kCols];
        held[r].output(0, is_log, value);
#pragma unroll
        for (int i = 0; i < kCols; ++i) {
          if (own.from <= i && i < own.to) store_element(to + at + i, value[i]);
        }
        held[r].turn();
      }
    }
  }
};

}  // namespace softmax
