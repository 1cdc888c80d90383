// A row of 16-bit elements held as values, and as coarse terms in their place: see held.cuh.
#pragma once

#include "cuda/prim/held_parts.cuh"

namespace softmax {

// Log-softmax: the terms of a few values without those of the maximum itself, which are counted,
// but for -inf.
template <int kCount>
__device__ __forceinline__ void coarse_terms_apart(float max, const CoarseTerms &terms,
                                                   const float (&value)[kCount],
                                                   float (&term)[kCount], float *ones) {
  float others[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const bool is_one = value[i] == finite_reference(max);
    *ones += is_one ? sum_unit<float>() : 0.0f;
    others[i] = is_one ? -Limits<float>::infinity() : value[i];
  }
  terms.make_unasked(others, term);
}

// Of packs that no lane has an element of, nothing is kept, or read.
template <typename X, int kPacks>
class CoarseTermPacks {
 public:
  static_assert(sizeof(X) == 2, "others' terms are exact");
  static constexpr int kCols = kPackCols<X>;
  static constexpr int kStored = kPacks;
  static constexpr bool kHasOrder = true;  // the sum: see Sums
  using Acc = float;
  using Sums = PositionSums<float, kCols, kPacks>;
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
    const CoarseTerms terms(max);
    if (is_log) {
      each_half(
          places,
          [&](int, const float(&value)[kHalf], float(&term)[kHalf]) {
            coarse_terms_apart(max, terms, value, term, &part->ones);
          },
          sums);
    } else {
      each_half(
          places,
          [&](int first, const float(&value)[kHalf], float(&term)[kHalf]) {
            terms.make(value, term);
#pragma unroll
            for (int i = 0; i < kHalf; ++i) value_[first + i] = term[i];
          },
          sums);
    }
    sums->add_to(part->others);
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

}  // namespace softmax
