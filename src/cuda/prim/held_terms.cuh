// A row, or a warp's part of one, held as values, and as exact terms in their place: see held.cuh.
#pragma once

#include "cuda/prim/held_parts.cuh"

namespace softmax {

// Terms against any reference: NearTerms', or against the reference itself.
template <typename Acc>
class AnyTerms {
 public:
  __device__ __forceinline__ explicit AnyTerms(Acc reference)
      : exp_(finite_reference(reference)), near_(reference) {}

  template <int kCount>
  __device__ __forceinline__ void make(Acc (&x)[kCount]) const {
    if constexpr (sizeof(Acc) == 8) {
      exp_.times(x, sum_unit<Acc>(), x);
    } else if (exp_.is_near()) {
#pragma unroll
      for (Acc &v : x) v = near_(v);
    } else {
#pragma unroll
      for (Acc &v : x) v = exp_.far_times(v, sum_unit<Acc>());
    }
  }

 private:
  struct NoTerms {
    __device__ __forceinline__ explicit NoTerms(Acc) {}
  };
  ShiftedExp<Acc> exp_;
  std::conditional_t<sizeof(Acc) == 4, NearTerms, NoTerms> near_;
};

template <typename X, int kPacks, bool kIsWindow>
class TermPacks {
 public:
  static constexpr int kCols = kPackCols<X>;
  static constexpr int kStored = kIsWindow ? kPacks + 1 : kPacks;
  using Acc = AccOf<X>;
  using Exp = ShiftedExp<Acc>;
  static constexpr bool kHasOrder = false;  // the sum: see GridSum
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

  // The sum of all terms against this maximum. Softmax needs the values no more, and keeps the
  // terms; log-softmax does.
  __device__ __forceinline__ WideSum<Acc> add_terms(Acc max, bool is_log, const Places &places) {
    if (max == -Limits<Acc>::infinity()) {
      // No term. Among a row's runs there may be such, where the others would wait for turned_sum.
      if (!is_log) clear();
      return {};
    }
    if constexpr (sizeof(Acc) == 4) {
      if (!is_near(max, kNearLimit)) return turned_sum(max, !is_log);
      const NearTerms terms(max);
      const auto make = [&](Acc(&x)[kCols]) {
#pragma unroll
        for (Acc &v : x) v = terms(v);
      };
      return is_log ? sum<false>(places, make) : sum<true>(places, make);
    } else {
      const Exp exp(finite_reference(max));
      const auto make = [&](Acc(&x)[kCols]) { exp.times(x, sum_unit<Acc>(), x); };
      return is_log ? sum<false>(places, make) : sum<true>(places, make);
    }
  }

  // Log-softmax: the largest of the values below this one, and the sum of all terms against that,
  // those of larger ones being its own.
  __device__ __forceinline__ Acc max_below(Acc limit, const Places &places) const {
    Acc largest = -Limits<Acc>::infinity();
#pragma unroll
    for (int pack = 0; pack < kStored; ++pack) {
      if (pack < kPacks && !places.has(pack)) continue;
      Acc value[kCols];
      copy(pack, value);
#pragma unroll
      for (const Acc v : value) largest = v < limit && v > largest ? v : largest;
    }
    return largest;
  }
  __device__ __forceinline__ WideSum<Acc> add_terms_below(Acc second) {
    return turned_sum(second, false);
  }

  __device__ __forceinline__ void finish(const HeldFactors<Acc> &factors, bool is_log) {
    row_ = factors.row;
    if (is_log) return finish_log();
    factor_ = term_factor(factors.row, factors.scale);
    if (factor_.has_before()) {
#pragma unroll
      for (Acc &term : value_) term *= factor_.before;
    }
  }
  // The same where these are all of the row's terms, taken against its own maximum.
  __device__ __forceinline__ void finish_whole(const HeldFactors<Acc> &factors, bool is_log) {
    row_ = factors.row;
    if (sizeof(Acc) == 4 && is_log) return finish_log();
    factor_ = whole_row_factor(factors.row);
  }
  __device__ __forceinline__ void output(int pack, bool is_log, Acc (&y)[kCols]) const {
    copy(pack, y);
    if (!is_log) {
#pragma unroll
      for (Acc &v : y) v = factor_.times(v);
    } else if constexpr (sizeof(Acc) == 4) {
      const Split<float> reference = {factor_.hi, factor_.lo};
#pragma unroll
      for (Acc &v : y) v = log_value(v, row_, reference);
    } else {
      const Exp exp(row_.max);
#pragma unroll
      for (Acc &v : y) v = exp.log_value(v, row_.log_sum);
    }
  }

  // The first pack becomes the last.
  __device__ __forceinline__ void turn() {
    turn(std::make_integer_sequence<int, (kStored - 1) * kCols>());
  }

  // What is held of a pack.
  __device__ __forceinline__ void copy(int pack, Acc (&value)[kCols]) const {
#pragma unroll
    for (int i = 0; i < kCols; ++i) value[i] = value_[pack * kCols + i];
  }

 protected:
  __device__ __forceinline__ void keep(int pack, const Acc (&value)[kCols]) {
#pragma unroll
    for (int i = 0; i < kCols; ++i) value_[pack * kCols + i] = value[i];
  }

 private:
  template <bool kKeeps, typename Make>
  __device__ __forceinline__ WideSum<Acc> sum(const Places &places, Make make) {
    GridSum<Acc> sum;
    const auto add = [&](int at) {
      Acc term[kCols];
      copy(at, term);
      make(term);
      if (kKeeps) keep(at, term);
#pragma unroll
      for (const Acc t : term) sum.add(t);
    };
    with_places<kPacks>(places, [&](const auto &some) {
#pragma unroll
      for (int pack = 0; pack < kPacks; ++pack) {
        if (some.has(pack)) add(pack);
      }
    });
    if (kIsWindow && places.has_tail) add(kStored - 1);
    return sum.sum();
  }

  __device__ __forceinline__ void finish_log() {
    if constexpr (sizeof(Acc) == 4) {
      const Split<float> reference = log_reference(row_);
      factor_ = {1.0f, reference.hi, reference.lo};
    }
  }

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (Acc &value : value_) value = Acc(0);
  }

  // The sum of terms against any reference, in place of which larger values count. It is rare: a
  // loop that brings one pack after another to the first place, so that its code is there once.
  // What is no tail is -inf, and as good as one.
  __device__ __forceinline__ WideSum<Acc> turned_sum(Acc reference, bool keeps) {
    const AnyTerms<Acc> terms(reference);
    GridSum<Acc> sum;
    each_turned([&](Acc(&x)[kCols]) {
#pragma unroll
      for (Acc &v : x) v = v > reference ? reference : v;
      terms.make(x);
#pragma unroll
      for (const Acc t : x) sum.add(t);
      return keeps;
    });
    return sum.sum();
  }
  // use(values) of one pack after another says whether it keeps what it has made of them.
  template <typename Use>
  __device__ __forceinline__ void each_turned(Use use) {
#pragma unroll 1
    for (int pack = 0; pack < kStored; ++pack) {
      Acc value[kCols];
      copy(0, value);
      if (use(value)) keep(0, value);
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

  Acc value_[kStored * kCols];
  RowFactors<Acc> row_;
  TermFactor<Acc> factor_;  // of log-softmax in float32: hi and lo of log_reference
};

}  // namespace softmax
