// What the ways of held.cuh to hold a row have in common.
#pragma once

#include <type_traits>
#include <utility>

#include "core/held_rows.h"
#include "core/held_window.h"
#include "core/row_part.h"
#include "cuda/prim/raw_pack.cuh"
#include "cuda/prim/reduce.cuh"
#include "cuda/prim/row.cuh"

namespace softmax {

// What a row's maximum and sum have come to, for `output` below.
template <typename T>
struct HeldFactors {
  RowFactors<T> row;
  Split<T> scale;      // what this part's terms are multiplied by to be the row's, in units
  std::uint32_t zero;  // 0, of which the compiler knows nothing
};

// Straight from the kernel's arguments, or registers spill: made of another argument, such as the
// top bit of `rows`, it cost BLOCK's windows 550 bytes a thread and a third of their speed.
__device__ __forceinline__ std::uint32_t unknown_zero(const RowArgs &args) { return args.zero; }

// Which packs there are, and how a window's are added: see PositionSums. All but `foreign` is the
// same for the whole warp.
struct Places {
  int foreign;    // of a window
  bool has_tail;  // of a window
  int step;       // elements from one pack to the next
  int end;        // where the run ends
  int half;       // elements from a pack's first to its second half's, in any lane

  // Whether any lane has an element in the pack. Most do: it pays for the last run of a row.
  __device__ __forceinline__ bool has(int pack) const { return pack == 0 || pack * step < end; }
  // The same of its second half.
  __device__ __forceinline__ bool has_half(int pack) const { return pack * step + half < end; }
};
// Where all packs have some: nothing is asked, and a pack's work is mixed with the next one's.
struct FullPlaces : Places {
  __device__ __forceinline__ bool has(int) const { return true; }
  __device__ __forceinline__ bool has_half(int) const { return true; }
};

// Calls use(places). Both ways are worth their code where packs are many.
template <int kPacks, typename Use>
__device__ __forceinline__ void with_places(const Places &places, Use use) {
  if (kPacks >= 8 && places.has(kPacks - 1)) {
    use(FullPlaces{places});
  } else {
    use(places);
  }
}

// The largest or a NaN, over a tree: with a row in registers a chain of all of them would be waited
// for.
template <int kFirst, int kCount, typename T, int kAll>
__device__ __forceinline__ T tree_max(const T (&value)[kAll]) {
  if constexpr (kCount == 1) {
    return value[kFirst];
  } else {
    constexpr int kHalf = kCount / 2;
    return max_or_nan(tree_max<kFirst, kHalf>(value),
                      tree_max<kFirst + kHalf, kCount - kHalf>(value));
  }
}

}  // namespace softmax
