// A row, or a warp's part of one, in registers: read once, used twice.
//
// Two ways to hold it, with one interface. Where the output has 16 bits the input does too, and its
// raw words take half the registers of anything else: the coarse exponential is cheap enough to
// take twice. Otherwise values become terms in place, so that the exact exponential is taken once.
#pragma once

#include <type_traits>
#include <utility>

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
  return static_cast<std::uint32_t>(args.cols >> 32);  // such rows do not come here
}

// Log-softmax: the terms of a few values, those of the maximum itself apart: the unit each, or NaN
// where both are infinite.
template <typename T, int kCount, typename Exp>
__device__ __forceinline__ void add_apart(const T (&value)[kCount], const Exp &exp,
                                          RowPart<T> *part) {
  T term[kCount];
  exp.times(value, sum_unit<T>(), term);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const bool is_one = value[i] == exp.reference();
    part->ones += is_one ? term[i] : T(0);
    term[i] = is_one ? T(0) : term[i];
  }
  add_terms<Exp::kTermsTogether>(part->others, term);
}

// ---- raw words ----

template <typename X, int kPacks>
class RawPacks {
 public:
  static_assert(sizeof(X) == 2, "16-bit types alone are held as they are");
  static constexpr int kCols = kPackCols<X>;
  using Acc = float;
  static constexpr float kNearLimit = kCoarseNearLimit;

  __device__ __forceinline__ void set(int pack, const RawPack &raw) { raw_[pack] = raw; }

  __device__ __forceinline__ float max() const {
    using Pair = typename RawElements<X>::Pair;
    std::uint32_t largest[kPacks];
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) {
      const RawPack &raw = raw_[pack];
      largest[pack] = pair_max<Pair>(pair_max<Pair>(raw.part[0], raw.part[1]),
                                     pair_max<Pair>(raw.part[2], raw.part[3]));
    }
#pragma unroll
    for (int pack = 1; pack < kPacks; ++pack) {
      largest[0] = pair_max<Pair>(largest[0], largest[pack]);
    }
    const float2 ends = RawElements<X>::unpack(largest[0]);
    return max_or_nan(ends.x, ends.y);
  }

  __device__ __forceinline__ RowPart<float> sum(float max, bool is_log) const {
    RowPart<float> part = RowPart<float>::of(max);
    if (is_log) {
      const CoarseExp exp(finite_reference(max));
#pragma unroll
      for (int pack = 0; pack < kPacks; ++pack) {
        float value[kCols];
        unpack<X>(raw_[pack], value);
        add_apart(value, exp, &part);
      }
      return part;
    }
    const CoarseTerms terms(max);
    // Rounding in a sum of so few terms is less than their own errors.
    float sum = 0.0f;
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) {
      float term[kCols];
      unpack<X>(raw_[pack], term);
      terms.make(term, term);
#pragma unroll
      for (int width = kCols / 2; width > 0; width /= 2) {
#pragma unroll
        for (int i = 0; i < width; ++i) term[i] += term[i + width];
      }
      sum += term[0];
    }
    part.others.add(sum);
    return part;
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

 private:
  RawPack raw_[kPacks];
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

template <typename X, int kPacks>
class TermPacks {
 public:
  static constexpr int kCols = kPackCols<X>;
  using Acc = AccOf<X>;
  using Exp = ShiftedExp<Acc>;
  static constexpr float kNearLimit = softmax::kNearLimit;

  __device__ __forceinline__ void set(int pack, const RawPack &raw) {
    Acc value[kCols];
    unpack<X>(raw, value);
#pragma unroll
    for (int i = 0; i < kCols; ++i) value_[pack * kCols + i] = value[i];
  }

  __device__ __forceinline__ Acc max() const { return tree_max<0, kPacks * kCols>(value_); }

  // Softmax needs the values no more; log-softmax does.
  __device__ __forceinline__ RowPart<Acc> sum(Acc max, bool is_log) {
    RowPart<Acc> part = RowPart<Acc>::of(max);
    if constexpr (sizeof(Acc) == 4) {
      if (!is_near(max, kNearLimit)) {
        sum_far(Exp(finite_reference(max)), is_log, &part);
      } else if (is_log) {
        const Exp exp(max);
#pragma unroll
        for (int pack = 0; pack < kPacks; ++pack) add_values(NearExp{exp}, pack, &part);
      } else {
        const NearTerms terms(max);
#pragma unroll
        for (int pack = 0; pack < kPacks; ++pack) {
          Acc term[kCols];
#pragma unroll
          for (int i = 0; i < kCols; ++i) {
            term[i] = terms(value_[pack * kCols + i]);
            value_[pack * kCols + i] = term[i];
          }
          add_terms<NearTerms::kTermsTogether>(part.others, term);
        }
      }
    } else {
      const Exp exp(finite_reference(max));
#pragma unroll
      for (int pack = 0; pack < kPacks; ++pack) {
        if (is_log) {
          add_values(exp, pack, &part);
        } else {
          take_terms(exp, pack, &part);
        }
      }
    }
    return part;
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

 private:
  // A maximum so far from 0 is rare, and its exponentials are long: a loop that brings one pack
  // after another to the first place, so that their code is there once.
  __device__ __forceinline__ void sum_far(const Exp &exp, bool is_log, RowPart<Acc> *part) {
#pragma unroll 1
    for (int pack = 0; pack < kPacks; ++pack) {
      if (is_log) {
        add_values(FarExp{exp}, 0, part);
      } else {
        take_terms(FarExp{exp}, 0, part);
      }
      turn(std::make_integer_sequence<int, (kPacks - 1) * kCols>());
    }
  }

  // The first pack becomes the last. Written out by the compiler's hand: a loop would be taken for
  // a copy of memory, and the values would no longer be registers.
  template <int... kIndex>
  __device__ __forceinline__ void turn(std::integer_sequence<int, kIndex...>) {
    Acc first[kCols];
    copy(0, first);
    ((value_[kIndex] = value_[kIndex + kCols]), ...);
#pragma unroll
    for (int i = 0; i < kCols; ++i) value_[(kPacks - 1) * kCols + i] = first[i];
  }

  template <typename AnyExp>
  __device__ __forceinline__ void add_values(const AnyExp &exp, int pack,
                                             RowPart<Acc> *part) const {
    Acc value[kCols];
    copy(pack, value);
    add_apart(value, exp, part);
  }
  template <typename AnyExp>
  __device__ __forceinline__ void take_terms(const AnyExp &exp, int pack, RowPart<Acc> *part) {
    Acc term[kCols];
    copy(pack, term);
    exp.times(term, sum_unit<Acc>(), term);
#pragma unroll
    for (int i = 0; i < kCols; ++i) value_[pack * kCols + i] = term[i];
    softmax::add_terms<AnyExp::kTermsTogether>(part->others, term);
  }

  __device__ __forceinline__ void copy(int pack, Acc (&value)[kCols]) const {
#pragma unroll
    for (int i = 0; i < kCols; ++i) value[i] = value_[pack * kCols + i];
  }

  Acc value_[kPacks * kCols];
  RowFactors<Acc> row_;
  TermFactor<Acc> factor_;
};

template <typename X, typename Y, int kPacks>
using HeldPacks = std::conditional_t<sizeof(Y) == 2, RawPacks<X, kPacks>, TermPacks<X, kPacks>>;

}  // namespace softmax
