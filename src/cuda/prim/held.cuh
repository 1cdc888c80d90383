// A row, or a warp's part of one, in registers: read once, used twice.
//
// Two ways to hold it, with one interface. Where the output has 16 bits the input does too, and its
// raw words take half the registers of anything else: the coarse exponential is cheap enough to
// take twice. Otherwise values become terms in place, so that the exact exponential is taken once.
#pragma once

#include <type_traits>
#include <utility>

#include "cuda/prim/raw_pack.cuh"
#include "cuda/prim/reduce.cuh"
#include "cuda/prim/row.cuh"

namespace softmax {

// What a row's maximum and sum have come to, for `output` below.
template <typename T>
struct HeldFactors {
  RowFactors<T> row;
  Split<T> scale;      // exp(the reference of this part's terms - max) in units
  std::uint32_t zero;  // 0, of which the compiler knows nothing
};

__device__ __forceinline__ std::uint32_t unknown_zero(const RowArgs &args) {
  return static_cast<std::uint32_t>(args.cols >> 32);  // such rows do not come here
}

// ---- raw words ----

template <typename X, int kPacks>
class RawPacks {
 public:
  static_assert(sizeof(X) == 2, "16-bit types alone are held as they are");
  static constexpr int kCols = kPackCols<X>;
  using Exp = CoarseExp;
  static constexpr bool kPlainSums = true;  // of softmax; log-softmax needs what is beside a 1

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
    return fmax(ends.x, ends.y);
  }

  __device__ __forceinline__ CompensatedSum<float> sum(const Exp &exp, bool is_log) const {
    if (!is_log) return plain_sum(exp);
    TermSum<float> terms;
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) {
      float value[kCols];
      unpack<X>(raw_[pack], value);
      terms.add(value, exp, true);
    }
    return terms.combined();
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
    exp_ = Exp(factors.row.max);
    factors_ = factors.row;
  }
  __device__ __forceinline__ void finish_whole(const HeldFactors<float> &factors, bool is_log) {
    finish(factors, is_log);
  }
  __device__ __forceinline__ void output(int pack, bool is_log, float (&y)[kCols]) const {
    unpack<X>(raw_[pack], y);
    if (is_log) {
#pragma unroll
      for (float &v : y) v = exp_.log_value(v, factors_.log_sum);
    } else {
      exp_.times(y, factors_.inverse_sum, y);
    }
  }

 private:
  // Rounding in a sum of so few terms is less than CoarseExp's own error.
  __device__ __forceinline__ CompensatedSum<float> plain_sum(const Exp &exp) const {
    CompensatedSum<float> sum;
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) {
      float term[kCols];
      unpack<X>(raw_[pack], term);
      exp.times(term, sum_unit<float>(), term);
#pragma unroll
      for (int width = kCols / 2; width > 0; width /= 2) {
#pragma unroll
        for (int i = 0; i < width; ++i) term[i] += term[i + width];
      }
      sum.hi += term[0];
    }
    return sum;
  }

  RawPack raw_[kPacks];
  Exp exp_;
  RowFactors<float> factors_;
};

// ---- values, and terms in their place ----

// The two ways of ShiftedExp<float>, each by itself.
struct NearExp {
  static constexpr int kTermsTogether = ShiftedExp<float>::kTermsTogether;
  const ShiftedExp<float> &exp;

  __device__ __forceinline__ float reference() const { return exp.reference(); }
  template <int kCount>
  __device__ __forceinline__ void times(const float (&x)[kCount], float factor,
                                        float (&result)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) result[i] = exp.near_times(x[i], factor);
  }
};
struct FarExp {
  static constexpr int kTermsTogether = ShiftedExp<float>::kTermsTogether;
  const ShiftedExp<float> &exp;

  __device__ __forceinline__ float reference() const { return exp.reference(); }
  template <int kCount>
  __device__ __forceinline__ void times(const float (&x)[kCount], float factor,
                                        float (&result)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) result[i] = exp.far_times(x[i], factor);
  }
};

// The largest, over a tree: with a row in registers a chain of all of them would be waited for.
template <int kFirst, int kCount, typename T, int kAll>
__device__ __forceinline__ T tree_max(const T (&value)[kAll]) {
  if constexpr (kCount == 1) {
    return value[kFirst];
  } else {
    constexpr int kHalf = kCount / 2;
    return fmax(tree_max<kFirst, kHalf>(value), tree_max<kFirst + kHalf, kCount - kHalf>(value));
  }
}

template <typename X, int kPacks>
class TermPacks {
 public:
  static constexpr int kCols = kPackCols<X>;
  using Acc = AccOf<X>;
  using Exp = ShiftedExp<Acc>;
  static constexpr bool kPlainSums = false;

  __device__ __forceinline__ void set(int pack, const RawPack &raw) {
    Acc value[kCols];
    unpack<X>(raw, value);
#pragma unroll
    for (int i = 0; i < kCols; ++i) value_[pack * kCols + i] = value[i];
  }

  __device__ __forceinline__ Acc max() const { return tree_max<0, kPacks * kCols>(value_); }

  // Softmax needs the values no more; log-softmax does, and what is beside a 1.
  __device__ __forceinline__ CompensatedSum<Acc> sum(const Exp &exp, bool is_log) {
    if constexpr (sizeof(Acc) == 4) {
      if (!exp.is_near()) return sum_far(exp, is_log);
      return sum_all(NearExp{exp}, is_log);
    } else {
      return sum_all(exp, is_log);
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

 private:
  template <typename AnyExp>
  __device__ __forceinline__ CompensatedSum<Acc> sum_all(const AnyExp &exp, bool is_log) {
    if (is_log) {
      TermSum<Acc> terms;
#pragma unroll
      for (int pack = 0; pack < kPacks; ++pack) add_values(exp, pack, &terms);
      return terms.combined();
    }
    CompensatedSum<Acc> sum;
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) add_terms(exp, pack, pack == 0, &sum);
    return sum;
  }

  // A maximum so far from 0 is rare, and its exponentials are long: a loop that brings one pack
  // after another to the first place, so that their code is there once.
  __device__ __forceinline__ CompensatedSum<Acc> sum_far(const Exp &exp, bool is_log) {
    TermSum<Acc> terms;
#pragma unroll 1
    for (int pack = 0; pack < kPacks; ++pack) {
      if (is_log) {
        add_values(FarExp{exp}, 0, &terms);
      } else {
        add_terms(FarExp{exp}, 0, false, &terms.others);
      }
      turn(std::make_integer_sequence<int, (kPacks - 1) * kCols>());
    }
    return terms.combined();
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
                                             TermSum<Acc> *terms) const {
    Acc value[kCols];
    copy(pack, value);
    terms->add(value, exp, true);
  }
  // The terms take the values' place. The first of a sum are the sum: adding them to 0 would be ten
  // instructions that change nothing.
  template <typename AnyExp>
  __device__ __forceinline__ void add_terms(const AnyExp &exp, int pack, bool is_first,
                                            CompensatedSum<Acc> *sum) {
    Acc term[kCols];
    copy(pack, term);
    exp.times(term, sum_unit<Acc>(), term);
#pragma unroll
    for (int i = 0; i < kCols; ++i) value_[pack * kCols + i] = term[i];
    constexpr int kTogether = kCols < AnyExp::kTermsTogether ? kCols : AnyExp::kTermsTogether;
#pragma unroll
    for (int first = 0; first < kCols; first += kTogether) {
#pragma unroll
      for (int width = kTogether / 2; width > 0; width /= 2) {
#pragma unroll
        for (int i = 0; i < width; ++i) term[first + i] += term[first + i + width];
      }
      if (is_first && first == 0) {
        sum->hi = term[0];
      } else {
        sum->add(term[first]);
      }
    }
  }

  __device__ __forceinline__ void copy(int pack, Acc (&value)[kCols]) const {
#pragma unroll
    for (int i = 0; i < kCols; ++i) value[i] = value_[pack * kCols + i];
  }

  Acc value_[kPacks * kCols];
  RowFactors<Acc> row_;
  TermFactor<Acc> factor_;
};

// The sums over `lanes` neighbouring lanes, as the way of holding needs them.
template <typename Held, typename T, int kRows>
__device__ __forceinline__ void held_lanes_sum(CompensatedSum<T> (&sum)[kRows], int lanes,
                                               bool is_log) {
  if constexpr (Held::kPlainSums) {
    if (!is_log) {
#pragma unroll
      for (int step = kWarpThreads / 2; step > 0; step /= 2) {
        if (step < lanes) {
#pragma unroll
          for (CompensatedSum<T> &s : sum) s.hi += __shfl_xor_sync(kFullWarp, s.hi, step);
        }
      }
      return;
    }
  }
  lanes_sum(sum, lanes);
}

template <typename X, typename Y, int kPacks>
using HeldPacks = std::conditional_t<sizeof(Y) == 2, RawPacks<X, kPacks>, TermPacks<X, kPacks>>;

}  // namespace softmax
