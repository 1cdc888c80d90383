// A row, or a warp's part of one, held as values, and as exact terms in their place: see held.cuh.
#pragma once

#include "cuda/prim/held_parts.cuh"

namespace softmax {

// ShiftedExp<float> of a reference that is far from 0.
struct FarExp {
  const ShiftedExp<float> &exp;

  __device__ __forceinline__ float reference() const { return exp.reference(); }
  template <int kCount>
  __device__ __forceinline__ void times(const float (&x)[kCount], float factor,
                                        float (&result)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) result[i] = exp.far_times(x[i], factor);
  }
};

template <typename X, int kPacks, bool kIsWindow>
class TermPacks {
 public:
  static constexpr int kCols = kPackCols<X>;
  static constexpr int kStored = kIsWindow ? kPacks + 1 : kPacks;
  using Acc = AccOf<X>;
  using Exp = ShiftedExp<Acc>;
  // Log-softmax's: its sum leaves out the maximum's own terms and may be as small as it likes,
  // where a grid would be too coarse. What rounding takes from a sum of four shows in results that
  // are held to 4 ulp; of 16-bit elements, eight a pack, there are not registers for less.
  static constexpr int kTermsTogether = sizeof(X) == 2 ? 4 : 2;
  // Softmax's has no order.
  static constexpr bool kHasOrder = false;
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

  // The terms against this maximum, to `part`, or where log-softmax has a window to `sums`; and in
  // log-softmax the number of its equals. Softmax needs the values no more, and keeps the terms;
  // log-softmax does.
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
        each_pack(places, [&](int pack, int at) {
          Acc term[kCols] = {};
          if (places.has(pack)) {
            Acc value[kCols];
            copy(at, value);
            near_terms_apart(value, exp, term, &part->ones);
          }
          add_pack<kIsWindow, kTermsTogether>(pack, places, term, sums, part);
        });
      } else {
        const NearTerms terms(max);
        GridSum<Acc> sum;
        with_places<kPacks>(places, [&](const auto &some) {
          each_pack(some, [&](int pack, int at) {
            if (!some.has(pack)) return;
            Acc term[kCols];
            copy(at, term);
#pragma unroll
            for (Acc &t : term) t = terms(t);
            keep(at, term);
#pragma unroll
            for (const Acc t : term) sum.add(t);
          });
        });
        part->others = sum.sum();
      }
    } else {
      const Exp exp(finite_reference(max));
      GridSum<Acc> sum;
      each_pack(places, [&](int pack, int at) {
        if (is_log) {
          add_apart(exp, pack, at, places, sums, part);
        } else {
          take_terms(exp, at, &sum);
        }
      });
      if (!is_log) part->others = sum.sum();
    }
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
  // use(pack, where it is held)
  template <typename Use>
  __device__ __forceinline__ void each_pack(const Places &places, Use use) {
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) use(pack, pack);
    if (kIsWindow && places.has_tail) use(kPacks, kStored - 1);
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

  // A maximum so far from 0 is rare, and its exponentials are long: a loop that brings one pack
  // after another to the first place, so that their code is there once. What is no tail is -inf,
  // and as good as one.
  __device__ __forceinline__ void add_far(const Exp &exp, bool is_log, const Places &places,
                                          Sums *sums, RowPart<Acc> *part) {
    // Two loops: with the sums of both in one, registers spilled.
    if (is_log) {
      each_turned([&](int pack) { add_apart(FarExp{exp}, pack, 0, places, sums, part); });
    } else {
      GridSum<Acc> sum;
      each_turned([&](int) { take_terms(FarExp{exp}, 0, &sum); });
      part->others = sum.sum();
    }
  }
  template <typename Use>
  __device__ __forceinline__ void each_turned(Use use) {
#pragma unroll 1
    for (int pack = 0; pack < kStored; ++pack) {
      use(pack);
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
  __device__ __forceinline__ void take_terms(const AnyExp &exp, int at, GridSum<Acc> *sum) {
    Acc term[kCols];
    copy(at, term);
    exp.times(term, sum_unit<Acc>(), term);
    keep(at, term);
#pragma unroll
    for (const Acc t : term) sum->add(t);
  }

  Acc value_[kStored * kCols];
  RowFactors<Acc> row_;
  TermFactor<Acc> factor_;  // of log-softmax in float32: hi and lo of log_reference
};

}  // namespace softmax
