// The words of a dense row that one thread of the kernels for statistics alone has in registers:
// they are used once, and the next row's come in their places.
#pragma once

#include "core/lse_terms.h"
#include "cuda/general/pack.cuh"
#include "cuda/general/part_terms.cuh"
#include "cuda/general/row_team.cuh"
#include "cuda/prim/compile.cuh"

namespace softmax {

// The words of a row that one thread has, as rows.cuh deals them out. kIsApart: what equals the
// maximum is counted apart from the other terms.
template <typename X, int kPacks, bool kIsApart>
class StatsWords {
 public:
  static constexpr int kCols = kWordBytes / static_cast<int>(sizeof(X));
  static constexpr int kValues = kPacks * kCols;

  __device__ __forceinline__ StatsWords(const GeneralArgs &args, int rank)
      : cols_(args, rank, static_cast<int>(threadIdx.x)),
        end_(cols_.within(args.layout().cols)),
        zero_(args.zero) {}

  __device__ __forceinline__ std::int64_t first() const { return cols_.first(); }

  // Whether a row that begins there is whole words.
  __device__ __forceinline__ bool is_words(const X *x) const {
    return is_word_aligned(x) && end_ % kCols == 0;
  }
  // All of a row's words, of whatever address.
  __device__ __forceinline__ void load(const X *x) {
    ColPlace place(cols_);
    if (is_words(x)) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p, place.advance()) {
        raw_[p] = empty_pack<X>();
        load_word(p, x + place.at, end_ - place.at);
      }
      return;
    }
#pragma unroll
    for (int p = 0; p < kPacks; ++p, place.advance()) {
      const int left = end_ - place.at;
      raw_[p] = is_word_aligned(x) && left >= kCols
                    ? load_raw(x + place.at)
                    : load_raw_pieces(x + place.at, left, empty_pack<X>());
    }
  }

  // -x in place of x.
  __device__ __forceinline__ void negate() {
    constexpr std::uint32_t kSigns = sizeof(X) == 2 ? 0x80008000u : 0x80000000u;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
#pragma unroll
      for (std::uint32_t &part : raw_[p].part) part ^= kSigns;
      clear_from<X>(end_ - cols_.col(p), &raw_[p]);
    }
  }

  __device__ __forceinline__ float max() {
    if constexpr (!kIsApart && sizeof(X) == 2) return max_of_pairs();
    float most = -Limits<float>::infinity();
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        const std::uint32_t largest = max_of_group(p, g);
        if constexpr (kKeepsMax) group_max_[p * kGroups + g] = largest;
        most = max_or_nan(most, wide_max(largest));
      }
    }
    return most;
  }

  // Sums of terms, against this maximum of the warp, apart from what equals it. From words that
  // have been used up on, those of the row at `next`, if it is one of whole words; null for none.
  __device__ __forceinline__ RowSums take_sums(float max, const ScaledTerms &terms, const X *next) {
    const std::uint32_t narrow_max = narrow(max);
    RowSums sums = {0.0, 0.0f};
    use_up(next, [&](int p, const float(&value)[kCols]) {
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        float term[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) term[i] = terms.quick(value[g * kTogether + i]);
        if (has_max(p * kGroups + g, value + g * kTogether, max, narrow_max)) {
#pragma unroll
          for (int i = 0; i < kTogether; ++i) {
            const bool is_one = value[g * kTogether + i] == max;
            sums.ones += is_one ? 1.0f : 0.0f;
            term[i] = is_one ? 0.0f : term[i];
          }
        }
        sums.others += sum_of<ScaledTerms>(term);
      }
    });
    return sums;
  }
  // The same of all terms together.
  __device__ __forceinline__ double take_sum(const LseTerms &terms, const X *next) {
    constexpr int kTwo = LseTerms::kTermsTogether;
    double sum = 0.0;
    use_up(next, [&](int, const float(&value)[kCols]) {
#pragma unroll
      for (int i = 0; i < kCols; i += kTwo) {
        float terms_sum = terms(value[i]);
#pragma unroll
        for (int k = 1; k < kTwo; ++k) terms_sum += terms(value[i + k]);
        sum += small_double(terms_sum);
      }
    });
    return sum * kOfSmall;
  }

 private:
  static constexpr int kTogether = ScaledTerms::kTermsTogether;
  static constexpr int kGroups = kCols / kTogether;
  static_assert(kTogether == 4);

  // A term as float64, times 2^-896, exactly: its bits, shifted. The conversion is an instruction
  // of the unit that takes powers of two, and as slow; this is a multiplication, because the
  // assembler does not know by what.
  static constexpr double kOfSmall = 0x1p896;
  __device__ __forceinline__ double small_double(float term) const {
    return __longlong_as_double(
        static_cast<long long>(std::uint64_t{__float_as_uint(term)} * (zero_ ^ 1u << 29)));
  }

  // 16-bit elements are compared two by two, as they are.
  static constexpr bool kKeepsMax = kIsApart && sizeof(X) == 2;

  // use(p, its values), word by word, and the next row's in their places.
  template <typename Use>
  __device__ __forceinline__ void use_up(const X *next, Use use) {
    const int end = next != nullptr && is_words(next) ? end_ : 0;
    ColPlace place(cols_);
#pragma unroll
    for (int p = 0; p < kPacks; ++p, place.advance()) {
      float value[kCols];
      unpack<X>(raw_[p], value);
      load_word(p, next + place.at, end - place.at);
      use(p, value);
    }
    if (next != nullptr && end == 0) load(as_base(next, zero_));
  }

  // What is past the end is -inf, and stays so.
  __device__ __forceinline__ void load_word(int p, const X *from, int left) {
    if (left > 0) raw_[p] = load_raw(from);
  }

  // The largest of a group, of 16-bit elements at even and at odd places.
  __device__ __forceinline__ std::uint32_t max_of_group(int p, int g) const {
    if constexpr (sizeof(X) == 4) {
      float value[4];
      unpack<X>(raw_[p], value);
      return __float_as_uint(
          max_or_nan(max_or_nan(value[0], value[1]), max_or_nan(value[2], value[3])));
    } else {
      return pair_max<typename RawElements<X>::Pair>(raw_[p].part[2 * g], raw_[p].part[2 * g + 1]);
    }
  }
  __device__ __forceinline__ float max_of_pairs() const {
    using Pair = typename RawElements<X>::Pair;
    std::uint32_t most = empty_pack<X>().part[0];
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const RawPack &raw = raw_[p];
      most = pair_max<Pair>(most, pair_max<Pair>(pair_max<Pair>(raw.part[0], raw.part[1]),
                                                 pair_max<Pair>(raw.part[2], raw.part[3])));
    }
    return wide_max(most);
  }
  static __device__ __forceinline__ float wide_max(std::uint32_t of_group) {
    if constexpr (sizeof(X) == 4) {
      return __uint_as_float(of_group);
    } else {
      const float2 two = RawElements<X>::unpack(of_group);
      return max_or_nan(two.x, two.y);
    }
  }
  // One of the row's elements, as groups' maxima are.
  static __device__ __forceinline__ std::uint32_t narrow(float max) {
    if constexpr (sizeof(X) == 4) {
      return __float_as_uint(max);
    } else {
      return RawElements<X>::pack(max, max);
    }
  }
  // Whether any of a group equals the maximum, in a row without a NaN.
  __device__ __forceinline__ bool has_max(int group, const float *value, float max,
                                          std::uint32_t narrow_max) const {
    if constexpr (kKeepsMax) {
      using Pair = typename RawElements<X>::Pair;
      return __heq2_mask(pair_of<Pair>(group_max_[group]), pair_of<Pair>(narrow_max)) != 0;
    } else {
      bool has = false;
#pragma unroll
      for (int i = 0; i < kTogether; ++i) has |= value[i] == max;
      return has;
    }
  }

  const HeldCols<kCols, kPacks> cols_;
  const int end_;  // of the row's columns in the block's part
  const std::uint32_t zero_;
  RawPack raw_[kPacks];
  std::uint32_t group_max_[kKeepsMax ? kPacks * kGroups : 1];
};

}  // namespace softmax
