// A row, or a warp's part of one, in registers: read once, used twice.
//
// Three ways to hold it, with one interface. Where the output has 16 bits the input does too, and
// its raw words take half the registers of anything else: the coarse exponential is cheap enough to
// take twice. Where registers are many and instructions count, values become terms in place; so do
// they where exponentials are exact, which are taken once.
//
// kIsWindow: packs are those of a window (core/held_window.h), and there may be one more, the tail.
// kIsUnits: a pack is elements `step / kCols` apart, of which the warp may have the first half
// alone.
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

__device__ __forceinline__ std::uint32_t unknown_zero(const RowArgs &args) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(args.rows) >> 63);  // not negative
}

// Which packs there are, and how a window's are added: see PositionSums. All but `foreign` is the
// same for the whole warp.
struct Places {
  int foreign;    // of a window
  bool has_tail;  // of a window
  int step;       // elements from one pack to the next
  int end;        // where the run ends

  // Whether any lane has an element in the pack. Most do: it pays for the last run of a row.
  __device__ __forceinline__ bool has(int pack) const { return pack == 0 || pack * step < end; }
  // The same of its second half, where packs are elements.
  __device__ __forceinline__ bool has_half(int pack) const { return pack * step + step / 2 < end; }
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

template <bool kIsWindow, int kTermsTogether, typename Sums, typename T, int kCols>
__device__ __forceinline__ void add_pack(int pack, const Places &places, const T (&term)[kCols],
                                         Sums *sums, RowPart<T> *part) {
  if constexpr (kIsWindow) {
    sums->add_window(pack, places.foreign, term);
  } else {
    sums->template add_words<kTermsTogether>(pack, term, part->others);
  }
}

// Log-softmax: the terms of a few values without those of the maximum itself, which are counted:
// the unit each, or NaN where both are infinite. Terms too small for any result are 0, as
// CoarseExp's of -inf are anyway, so that it does not matter how many are added for what does not
// exist.
template <typename T, int kCount, typename Exp>
__device__ __forceinline__ void terms_apart(const T (&value)[kCount], const Exp &exp,
                                            T (&term)[kCount], T *ones) {
  constexpr bool kHasNothing = sizeof(T) == 4 && !std::is_same_v<Exp, CoarseExp>;
  exp.times(value, sum_unit<T>(), term);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const bool is_one = value[i] == exp.reference();
    const bool is_nothing = kHasNothing && value[i] < exp.reference() - kNoTermBelow;
    *ones += is_one ? term[i] : T(0);
    term[i] = is_one || is_nothing ? T(0) : term[i];
  }
}

// ---- raw words ----

template <typename X, int kPacks, bool kIsWindow>
class RawPacks {
 public:
  static_assert(sizeof(X) == 2, "16-bit types alone are held as they are");
  static constexpr int kCols = kPackCols<X>;
  static constexpr int kStored = kIsWindow ? kPacks + 1 : kPacks;
  static constexpr int kTermsTogether = CoarseTerms::kTermsTogether * kPacks;
  using Acc = float;
  // Rounding in a sum of so few terms is less than their own errors.
  using Sums = PositionSums<float, kCols, kPacks, kPacks>;
  static constexpr float kNearLimit = kCoarseNearLimit;

  __device__ __forceinline__ void set(int pack, const RawPack &raw) { raw_[pack] = raw; }

  __device__ __forceinline__ float max(const Places &) const {
    using Pair = typename RawElements<X>::Pair;
    std::uint32_t largest[kStored];
#pragma unroll
    for (int pack = 0; pack < kStored; ++pack) {
      const RawPack &raw = raw_[pack];
      largest[pack] = pair_max<Pair>(pair_max<Pair>(raw.part[0], raw.part[1]),
                                     pair_max<Pair>(raw.part[2], raw.part[3]));
    }
#pragma unroll
    for (int pack = 1; pack < kStored; ++pack) {
      largest[0] = pair_max<Pair>(largest[0], largest[pack]);
    }
    const float2 ends = RawElements<X>::unpack(largest[0]);
    return max_or_nan(ends.x, ends.y);
  }

  // The terms against this maximum, to `sums`, or where packs are no window's to `part`; and in
  // log-softmax the number of its equals.
  __device__ __forceinline__ void add_terms(float max, bool is_log, const Places &places,
                                            Sums *sums, RowPart<float> *part) const {
    if (is_log) {
      const CoarseExp exp(finite_reference(max));
      const auto make = [&](const float(&value)[kCols], float(&term)[kCols]) {
        terms_apart(value, exp, term, &part->ones);
      };
      add_each(places, make, sums, part);
    } else {
      const CoarseTerms terms(max);
      const auto make = [&](const float(&value)[kCols], float(&term)[kCols]) {
        terms.make(value, term);
      };
      with_places<kPacks>(places, [&](const auto &some) { add_each(some, make, sums, part); });
    }
  }

  // Before the first output.
  __device__ __forceinline__ void finish(const HeldFactors<float> &factors, bool) {
    // From here the words are others to the compiler, which would otherwise keep what it has made
    // of them for the sum: four times as many registers.
#pragma unroll
    for (RawPack &raw : raw_) {
#pragma unroll
      for (std::uint32_t &part : raw.part) part ^= factors.zero;
    }
    row_ = factors.row;
    output_ = CoarseOutput(row_.max, row_.inverse_sum);
  }
  __device__ __forceinline__ void finish_whole(const HeldFactors<float> &factors, bool is_log) {
    finish(factors, is_log);
  }
  __device__ __forceinline__ void output(int pack, bool is_log, float (&y)[kCols]) const {
    unpack<X>(raw_[pack], y);
    if (is_log) {
#pragma unroll
      for (float &v : y) v = (v - row_.max) - row_.log_sum;
    } else {
      output_.make(y);
    }
  }

  // The first pack becomes the last.
  __device__ __forceinline__ void turn() {
    const RawPack first = raw_[0];
#pragma unroll
    for (int pack = 1; pack < kStored; ++pack) raw_[pack - 1] = raw_[pack];
    raw_[kStored - 1] = first;
  }

 protected:
  __device__ __forceinline__ void copy(int pack, float (&value)[kCols]) const {
    unpack<X>(raw_[pack], value);
  }

 private:
  // Adds what make(value, term) makes of each pack's values.
  template <typename SomePlaces, typename Make>
  __device__ __forceinline__ void add_each(const SomePlaces &places, Make make, Sums *sums,
                                           RowPart<float> *part) const {
    const auto add = [&](int pack, const RawPack &raw) {
      float value[kCols];
      float term[kCols] = {};
      if (places.has(pack)) {
        unpack<X>(raw, value);
        make(value, term);
      }
      add_pack<kIsWindow, kTermsTogether>(pack, places, term, sums, part);
    };
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) add(pack, raw_[pack]);
    if (kIsWindow && places.has_tail) add(kPacks, raw_[kStored - 1]);
  }

  RawPack raw_[kStored];
  RowFactors<float> row_;
  CoarseOutput output_;
};

// ---- values, and terms in their place ----

// The two ways of ShiftedExp<float>, each by itself.
template <bool kIsNear>
struct OneWayExp {
  static constexpr int kTermsTogether = ShiftedExp<float>::kTermsTogether;
  const ShiftedExp<float> &exp;

  __device__ __forceinline__ float reference() const { return exp.reference(); }
  template <int kCount>
  __device__ __forceinline__ void times(const float (&x)[kCount], float factor,
                                        float (&result)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      result[i] = kIsNear ? exp.near_times(x[i], factor) : exp.far_times(x[i], factor);
    }
  }
};
using NearExp = OneWayExp<true>;
using FarExp = OneWayExp<false>;

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

template <typename X, int kPacks, bool kIsWindow>
class TermPacks {
 public:
  static constexpr int kCols = kPackCols<X>;
  static constexpr int kStored = kIsWindow ? kPacks + 1 : kPacks;
  using Acc = AccOf<X>;
  using Exp = ShiftedExp<Acc>;
  // In float64 what rounding takes from a sum of four shows in results that are held to 4 ulp.
  static constexpr int kTermsTogether = sizeof(Acc) == 8 ? 2 : Exp::kTermsTogether;
  using Sums = PositionSums<Acc, kCols, kPacks, kTermsTogether>;
  static constexpr float kNearLimit = softmax::kNearLimit;

  __device__ __forceinline__ void set(int pack, const RawPack &raw) {
    Acc value[kCols];
    unpack<X>(raw, value);
#pragma unroll
    for (int i = 0; i < kCols; ++i) value_[pack * kCols + i] = value[i];
  }

  __device__ __forceinline__ Acc max(const Places &) const {
    return tree_max<0, kStored * kCols>(value_);
  }

  // The terms against this maximum, to `sums`, or where packs are no window's to `part`; and in
  // log-softmax the number of its equals. Softmax needs the
  // values no more, and keeps the terms; log-softmax does.
  __device__ __forceinline__ void add_terms(Acc max, bool is_log, const Places &places, Sums *sums,
                                            RowPart<Acc> *part) {
    if (max == -Limits<Acc>::infinity()) {
      // No term. Among a row's runs there may be such, where the others would wait for add_far.
      if (!is_log) clear();
      return;
    }
    if constexpr (sizeof(Acc) == 4) {
      if (!is_near(max, kNearLimit)) {
        add_far(Exp(finite_reference(max)), is_log, places, sums, part);
      } else if (is_log) {
        const Exp exp(max);
        each_pack(places,
                  [&](int pack, int at) { add_apart(NearExp{exp}, pack, at, places, sums, part); });
      } else {
        const NearTerms terms(max);
        with_places<kPacks>(places, [&](const auto &some) {
          each_pack(some, [&](int pack, int at) {
            Acc term[kCols] = {};
            if (some.has(pack)) {
              copy(at, term);
#pragma unroll
              for (int i = 0; i < kCols; ++i) term[i] = terms(term[i]);
              keep(at, term);
            }
            add_pack<kIsWindow, kTermsTogether>(pack, some, term, sums, part);
          });
        });
      }
    } else {
      const Exp exp(finite_reference(max));
      each_pack(places, [&](int pack, int at) {
        if (is_log) {
          add_apart(exp, pack, at, places, sums, part);
        } else {
          take_terms(exp, pack, at, places, sums, part);
        }
      });
    }
  }

  __device__ __forceinline__ void finish(const HeldFactors<Acc> &factors, bool is_log) {
    row_ = factors.row;
    if (is_log) return;
    factor_ = term_factor(factors.row, factors.scale);
    if (factor_.has_before()) {
#pragma unroll
      for (Acc &term : value_) term *= factor_.before;
    }
  }
  // The same where these are all of the row's terms, taken against its own maximum.
  __device__ __forceinline__ void finish_whole(const HeldFactors<Acc> &factors, bool) {
    row_ = factors.row;
    factor_ = whole_row_factor(factors.row);
  }
  __device__ __forceinline__ void output(int pack, bool is_log, Acc (&y)[kCols]) const {
    copy(pack, y);
    if (is_log) {
      const Exp exp(row_.max);
#pragma unroll
      for (Acc &v : y) v = exp.log_value(v, row_.log_sum);
    } else {
#pragma unroll
      for (Acc &v : y) v = factor_.times(v);
    }
  }

  // The first pack becomes the last.
  __device__ __forceinline__ void turn() {
    turn(std::make_integer_sequence<int, (kStored - 1) * kCols>());
  }

 protected:
  __device__ __forceinline__ void keep(int pack, const Acc (&value)[kCols]) {
#pragma unroll
    for (int i = 0; i < kCols; ++i) value_[pack * kCols + i] = value[i];
  }
  __device__ __forceinline__ void copy(int pack, Acc (&value)[kCols]) const {
#pragma unroll
    for (int i = 0; i < kCols; ++i) value[i] = value_[pack * kCols + i];
  }

 private:
  // use(pack, where it is held)
  template <typename Use>
  __device__ __forceinline__ void each_pack(const Places &places, Use use) {
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) use(pack, pack);
    if (kIsWindow && places.has_tail) use(kPacks, kStored - 1);
  }

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (Acc &value : value_) value = Acc(0);
  }

  // A maximum so far from 0 is rare, and its exponentials are long: a loop that brings one pack
  // after another to the first place, so that their code is there once. What is no tail is -inf,
  // and as good as one.
  __device__ __forceinline__ void add_far(const Exp &exp, bool is_log, const Places &places,
                                          Sums *sums, RowPart<Acc> *part) {
#pragma unroll 1
    for (int pack = 0; pack < kStored; ++pack) {
      if (is_log) {
        add_apart(FarExp{exp}, pack, 0, places, sums, part);
      } else {
        take_terms(FarExp{exp}, pack, 0, places, sums, part);
      }
      turn();
    }
  }

  // Written out by the compiler's hand: a loop would be taken for a copy of memory, and the values
  // would no longer be registers.
  template <int... kIndex>
  __device__ __forceinline__ void turn(std::integer_sequence<int, kIndex...>) {
    Acc first[kCols];
    copy(0, first);
    ((value_[kIndex] = value_[kIndex + kCols]), ...);
    keep(kStored - 1, first);
  }

  template <typename AnyExp>
  __device__ __forceinline__ void add_apart(const AnyExp &exp, int pack, int at,
                                            const Places &places, Sums *sums,
                                            RowPart<Acc> *part) const {
    Acc value[kCols], term[kCols];
    copy(at, value);
    terms_apart(value, exp, term, &part->ones);
    add_pack<kIsWindow, kTermsTogether>(pack, places, term, sums, part);
  }
  template <typename AnyExp>
  __device__ __forceinline__ void take_terms(const AnyExp &exp, int pack, int at,
                                             const Places &places, Sums *sums, RowPart<Acc> *part) {
    Acc term[kCols];
    copy(at, term);
    exp.times(term, sum_unit<Acc>(), term);
    keep(at, term);
    add_pack<kIsWindow, kTermsTogether>(pack, places, term, sums, part);
  }

  Acc value_[kStored * kCols];
  RowFactors<Acc> row_;
  TermFactor<Acc> factor_;
};

// ---- coarse terms in place of 16-bit values ----

// Of packs that no lane has an element of, nothing is kept, or read.
template <typename X, int kPacks>
class CoarseTermPacks {
 public:
  static_assert(sizeof(X) == 2, "others' terms are exact");
  static constexpr int kCols = kPackCols<X>;
  static constexpr int kStored = kPacks;
  static constexpr int kTermsTogether = CoarseTerms::kTermsTogether * kPacks;
  using Acc = float;
  using Sums = PositionSums<float, kCols, kPacks, kPacks>;
  static constexpr float kNearLimit = kCoarseNearLimit;

  __device__ __forceinline__ void set(int pack, const RawPack &raw) {
    float value[kCols];
    unpack<X>(raw, value);
    keep(pack, value);
  }

  __device__ __forceinline__ float max(const Places &places) const {
    float largest = tree_max<0, kCols>(value_);
#pragma unroll
    for (int pack = 1; pack < kPacks; ++pack) {
      if (!places.has(pack)) break;
      float value[kCols];
      copy(pack, value);
      largest = max_or_nan(largest, tree_max<0, kCols>(value));
    }
    return largest;
  }

  __device__ __forceinline__ void add_terms(float max, bool is_log, const Places &places,
                                            Sums *sums, RowPart<float> *part) {
    if (is_log) {
      const CoarseExp exp(finite_reference(max));
      each_half(
          places,
          [&](int, const float(&value)[kHalf], float(&term)[kHalf]) {
            terms_apart(value, exp, term, &part->ones);
          },
          sums);
    } else {
      const CoarseTerms terms(max);
      each_half(
          places,
          [&](int first, const float(&value)[kHalf], float(&term)[kHalf]) {
            terms.make(value, term);
#pragma unroll
            for (int i = 0; i < kHalf; ++i) value_[first + i] = term[i];
          },
          sums);
    }
    sums->template add_to<kTermsTogether>(part->others);
  }

  // There is no finish: whoever holds rows so has all of them.
  __device__ __forceinline__ void finish_whole(const HeldFactors<float> &factors, bool) {
    row_ = factors.row;
    factor_ = whole_row_factor(factors.row).hi;
  }
  __device__ __forceinline__ void output(int pack, bool is_log, float (&y)[kCols]) const {
    copy(pack, y);
    if (is_log) {
#pragma unroll
      for (float &v : y) v = (v - row_.max) - row_.log_sum;
    } else {
#pragma unroll
      for (float &v : y) v *= factor_;
    }
  }

 private:
  static constexpr int kHalf = kCols / 2;

  __device__ __forceinline__ void keep(int pack, const float (&value)[kCols]) {
#pragma unroll
    for (int i = 0; i < kCols; ++i) value_[pack * kCols + i] = value[i];
  }
  __device__ __forceinline__ void copy(int pack, float (&value)[kCols]) const {
#pragma unroll
    for (int i = 0; i < kCols; ++i) value[i] = value_[pack * kCols + i];
  }

  // Adds what make(index of the first, values, terms) makes of each half of a pack.
  template <typename Make>
  __device__ __forceinline__ void each_half(const Places &places, Make make, Sums *sums) const {
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) {
      if (!places.has(pack)) break;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (half > 0 && !places.has_half(pack)) break;
        const int first = pack * kCols + half * kHalf;
        float value[kHalf];
        float term[kHalf];
#pragma unroll
        for (int i = 0; i < kHalf; ++i) value[i] = value_[first + i];
        make(first, value, term);
        sums->template add_half<kHalf>(pack, half, term);
      }
    }
  }

  float value_[kPacks * kCols];
  RowFactors<float> row_;
  float factor_;
};

template <typename X, typename Y, int kPacks, bool kIsWindow, bool kKeepsTerms>
using HeldPacks = std::conditional_t<
    sizeof(Y) == 2,
    std::conditional_t<kKeepsTerms, CoarseTermPacks<X, kPacks>, RawPacks<X, kPacks, kIsWindow>>,
    TermPacks<X, kPacks, kIsWindow>>;

}  // namespace softmax
