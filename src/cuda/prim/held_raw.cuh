// A row, or a warp's part of one, held as raw words: see held.cuh.
#pragma once

#include "cuda/prim/held_parts.cuh"

namespace softmax {

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

}  // namespace softmax
