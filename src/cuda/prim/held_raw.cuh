// A row, or a warp's part of one, held as raw words: see held.cuh.
#pragma once

#include "cuda/prim/held_parts.cuh"

namespace softmax {

// Log-softmax: how many elements equal the maximum, two at a time.
template <typename X>
class MaxCount {
 public:
  // Of -inf none do: there is no term then.
  __device__ __forceinline__ explicit MaxCount(float max)
      : max_(max < Limits<float>::lowest() ? kNan : RawElements<X>::pack(max, max)) {}

  // The pack with -inf instead of those.
  __device__ __forceinline__ RawPack without(const RawPack &raw) {
    constexpr std::uint32_t kMinusInf = RawElements<X>::kMinusInf[0];
    RawPack others;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t equal = pair_equal_mask<Pair>(raw.part[i], max_);
      others.part[i] = (raw.part[i] & ~equal) | (kMinusInf & equal);
      masks_ += equal;
    }
    return others;
  }
  __device__ __forceinline__ float count() const {
    // Each mask's halves are 0 or -1, of 16 bits: the lower ones' sum comes first.
    const std::uint32_t lower = (0u - masks_) & 0xffffu;
    const std::uint32_t upper = ((0u - (masks_ + lower)) >> 16) + lower;
    return static_cast<float>(lower + (upper & 0xffffu));
  }

 private:
  using Pair = typename RawElements<X>::Pair;
  static constexpr std::uint32_t kNan = 0x7fff7fffu;

  std::uint32_t max_;
  std::uint32_t masks_ = 0;
};

template <typename X, int kPacks, bool kIsWindow>
class RawPacks {
 public:
  static_assert(sizeof(X) == 2, "16-bit types alone are held as they are");
  static constexpr int kCols = kPackCols<X>;
  static constexpr int kStored = kIsWindow ? kPacks + 1 : kPacks;
  static constexpr bool kHasOrder = true;  // the sum: see Sums
  using Acc = float;
  // Rounding in a sum of so few terms is less than their own errors.
  using Sums = PositionSums<float, kCols, kPacks>;
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
    const CoarseTerms terms(max);
    if (is_log) {
      MaxCount<X> maxima(max);
      const auto make = [&](const RawPack &raw, float(&term)[kCols]) {
        float value[kCols];
        unpack<X>(maxima.without(raw), value);
        terms.make_unasked(value, term);
      };
      add_each(places, make, sums, part);
      part->ones = maxima.count() * sum_unit<float>();
    } else {
      const auto make = [&](const RawPack &raw, float(&term)[kCols]) {
        float value[kCols];
        unpack<X>(raw, value);
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
  // Adds what make(raw, term) makes of each pack.
  template <typename SomePlaces, typename Make>
  __device__ __forceinline__ void add_each(const SomePlaces &places, Make make, Sums *sums,
                                           RowPart<float> *part) const {
    const auto add = [&](int pack, const RawPack &raw) {
      float term[kCols] = {};
      if (places.has(pack)) make(raw, term);
      if constexpr (kIsWindow) {
        sums->add_window(pack, places.foreign, term);
      } else {
        sums->add_words(pack, term);
      }
    };
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) add(pack, raw_[pack]);
    if (kIsWindow && places.has_tail) add(kPacks, raw_[kStored - 1]);
    if constexpr (!kIsWindow) sums->add_to(part->others);
  }

  RawPack raw_[kStored];
  RowFactors<float> row_;
  CoarseOutput output_;
};

}  // namespace softmax
