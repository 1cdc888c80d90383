// WARP, BLOCK and TILE's whole words for few rows: a row a block, a pack a thread, and the bits of
// the kernels for many.
//
// A few rows in L2 wait for the trip there, for one instruction after another, and for code that is
// fetched for the first time. So the code is short, and the packs of a row are worked on by as many
// threads. Where a run's sum has an order (not of exact terms: GridSum), it is that of warp.cuh,
// tile.cuh and block.cuh: terms are exchanged in shared memory, from where the lanes that would
// have held them add them. All else is the same functions of the same numbers.
//
// A block has as many threads as the row has words there, those of its last run that do not exist
// included, and at least a warp.
#pragma once

#include "cuda/prim/held.cuh"
#include "cuda/prim/overlap.cuh"
#include "cuda/prim/part_merge.cuh"
#include "cuda/prim/warp_rows.cuh"
#include "cuda/prim/word_ends.cuh"

namespace softmax {

// BLOCK's runs where a row is this short.
constexpr int kFewRunWarps = kFewBlockPacks;
constexpr int kFewRunThreads = kFewRunWarps * kWarpThreads;
constexpr int kFewMostRuns = kFewMostWords / kFewRunThreads;

// ---- a thread's pack ----

// The elements of a pack, `step` apart, of which those before `left` exist, and -inf: all are on
// their way before the first is waited for, the row's last in place of those that do not exist.
template <typename X>
__device__ __forceinline__ RawPack load_some(const X *from, int step, int left) {
  constexpr int kCols = kPackCols<X>;
  BitsOf<X> bits[kCols];
#pragma unroll
  for (int i = 0; i < kCols; ++i) {
    const int at = i * step < left ? i * step : left - 1;
    bits[i] = reinterpret_cast<const BitsOf<X> *>(from)[at];
  }
  const BitsOf<X> nothing = minus_inf_bits<X>();
#pragma unroll
  for (int i = 0; i < kCols; ++i) bits[i] = i * step < left ? bits[i] : nothing;
  RawPack raw;
  memcpy(&raw, bits, sizeof raw);
  return raw;
}

// As TermPacks, with a thread's terms apart from its values, and what is rare there once for all
// columns.
template <typename X>
class FewTermPack : public TermPacks<X, 1, false> {
 public:
  using Base = TermPacks<X, 1, false>;
  using typename Base::Acc;
  using typename Base::Exp;
  static constexpr int kCols = Base::kCols;

  template <bool kIsLog>
  __device__ __forceinline__ void make_terms(Acc max, Acc (&term)[kCols]) {
    this->copy(0, term);
    if constexpr (sizeof(Acc) == 8) {
      Exp(finite_reference(max)).times(term, sum_unit<Acc>(), term);
    } else if (__builtin_expect(!is_near(max, kNearLimit), false)) {
      make_terms_in_turn(max, term);
    } else {
      const NearTerms terms(max);
#pragma unroll
      for (Acc &t : term) t = terms(t);
    }
    if constexpr (!kIsLog) this->keep(0, term);
  }
  // Against any reference, in place of which larger values count.
  __device__ __forceinline__ void make_terms_below(Acc reference, Acc (&term)[kCols]) const {
    this->copy(0, term);
    make_terms_in_turn(reference, term);
  }

  template <bool kIsLog>
  __device__ __forceinline__ void output(bool, Acc (&y)[kCols]) const {
    Base::output(0, kIsLog, y);
  }

 private:
  static __device__ __forceinline__ void make_terms_in_turn(Acc reference, Acc (&term)[kCols]) {
    const AnyTerms<Acc> terms(reference);
#pragma unroll 1
    for (int turn = 0; turn < kCols; ++turn) {
      Acc one[1] = {term[0] > reference ? reference : term[0]};
      terms.make(one);
#pragma unroll
      for (int i = 1; i < kCols; ++i) term[i - 1] = term[i];
      term[kCols - 1] = one[0];
    }
  }
};

// As RawPacks, or as CoarseTermPacks: where WARP has rows element by element, and TILE's.
template <typename X>
class FewRawPack : public RawPacks<X, 1, false> {
 public:
  using Base = RawPacks<X, 1, false>;
  static constexpr int kCols = kPackCols<X>;

  template <bool kIsLog>
  __device__ __forceinline__ void make_terms(float max, float (&term)[kCols], float *ones) {
    float value[kCols];
    this->copy(0, value);
    const CoarseTerms terms(max);
    if constexpr (kIsLog) {
      coarse_terms_apart(max, terms, value, term, ones);
    } else {
      terms.make(value, term);
#pragma unroll
      for (int i = 0; i < kCols; ++i) term_[i] = term[i];
    }
  }

  __device__ __forceinline__ void finish_whole(const HeldFactors<float> &factors, bool is_log) {
    Base::finish_whole(factors, is_log);
    factor_ = whole_row_factor(factors.row).hi;
  }
  template <bool kIsLog>
  __device__ __forceinline__ void output(bool keeps_terms, float (&y)[kCols]) const {
    if (kIsLog || !keeps_terms) {
      Base::output(0, kIsLog, y);
    } else {
#pragma unroll
      for (int i = 0; i < kCols; ++i) y[i] = term_[i] * factor_;
    }
  }

 private:
  float term_[kCols];
  float factor_;  // WARP's: of a whole row
};

template <typename X, typename Y>
using FewPack = std::conditional_t<sizeof(Y) == 2, FewRawPack<X>, FewTermPack<X>>;

// ---- a run's sum ----

template <int kCols>
constexpr int kFewSumBits = unit_bits(kCols);

// Of terms whose sum has no order: the run's part by its `warps`, eight at most, of which this is
// number `warp`, in every lane. `sums` is the run's own, in shared memory; `barrier` is that of all
// who share it.
template <typename T, int kCols, typename Barrier>
__device__ __forceinline__ RowPart<T> sum_of_run(T max, const T (&term)[kCols], int warp, int warps,
                                                 WideSum<T> *sums, Barrier barrier) {
  constexpr int kLanes = kFewMostWords / kWarpThreads;
  GridSum<T> own;
#pragma unroll
  for (const T t : term) own.add(t);
  RowPart<T> part = RowPart<T>::of(max);
  part.others = own.sum();
  part = warp_part<kFewSumBits<kCols>>(part, false);
  if (warps == 1) return part;
  const int lane = static_cast<int>(threadIdx.x % kWarpThreads);
  if (lane == 0) sums[warp] = part.others;
  barrier();
  part.others = {};
  if (lane % kLanes < warps) part.others = sums[lane % kLanes];
  return lanes_part(part, false, kLanes);
}

// The terms of a block whose sums have an order, a slot a pack; and in log-softmax the ones of
// each.
template <typename X, typename Y, bool kIsLog>
class FewTerms {
 public:
  static constexpr int kCols = kPackCols<X>;
  static constexpr int kSlotWords = kCols * static_cast<int>(sizeof(float)) / kWordBytes;

  // In memory for few_slot_bytes a thread of the block.
  __device__ __forceinline__ explicit FewTerms(uint4 *memory)
      : words_(memory), ones_(reinterpret_cast<float *>(memory + kSlotWords * blockDim.x)) {}

  __device__ __forceinline__ void put(int slot, const float (&term)[kCols], float ones) const {
#pragma unroll
    for (int i = 0; i < kSlotWords; ++i) {
      store_raw<StoreHint::kShared>(words_ + i * blockDim.x + slot,
                                    RawElements<float>::pack(term + i * kPackCols<float>));
    }
    if constexpr (kIsLog) ones_[slot] = ones;
  }

  // As WarpRows::sum and what follows it: the part of the run whose first slot is `first`, each of
  // `lanes` having `packs`, by a whole warp, in every lane.
  __device__ __forceinline__ RowPart<float> sum(int first, float max, int lanes, int packs,
                                                bool is_cut) const {
    RowPart<float> part = RowPart<float>::of(max);
    int slot = first + (static_cast<int>(threadIdx.x) & (lanes - 1));
    float sum[kCols] = {};
    // A few packs at a time are waited for. Where lanes have fewer there are few enough for the
    // slots to exist all the same.
#pragma unroll 1
    for (int left = packs; left > 0; left -= kFewBlockPacks) {
      float term[kFewBlockPacks][kCols];
      float ones[kFewBlockPacks];
#pragma unroll
      for (int i = 0; i < kFewBlockPacks; ++i) get(slot + i * lanes, &term[i], &ones[i]);
#pragma unroll
      for (int i = 0; i < kFewBlockPacks; ++i) {
        if (i > 0 && i >= left) continue;
#pragma unroll
        for (int k = 0; k < kCols; ++k) sum[k] += term[i][k];
        if constexpr (kIsLog) part.ones += ones[i];
      }
      slot += kFewBlockPacks * lanes;
    }
    add_terms<kCols>(part.others, sum);
    if constexpr (!kIsLog) {
      if (is_cut) return warp_part<kSumBits>(part, false);
    }
    return lanes_part(part, kIsLog, lanes);
  }

 private:
  static constexpr int kSumBits =
      WarpRows<X, Y, kFewBlockPacks, RowAccess::kWords, 1, true, kFewBlockPacks>::kSumBits;

  __device__ __forceinline__ void get(int slot, float (*term)[kCols], float *ones) const {
#pragma unroll
    for (int i = 0; i < kSlotWords; ++i) {
      float some[kPackCols<float>];
      RawElements<float>::unpack(load_raw(words_ + i * blockDim.x + slot), some);
#pragma unroll
      for (int k = 0; k < kPackCols<float>; ++k) (*term)[i * kPackCols<float> + k] = some[k];
    }
    if constexpr (kIsLog) *ones = ones_[slot];
  }

  uint4 *words_;
  float *ones_;
};

// ---- the runs of a row ----

// Of the threads that share a run: BLOCK's have a barrier for each, WARP's row is one.
__device__ __forceinline__ void run_barrier(bool is_cut, int run) {
  if (is_cut) {
    asm volatile("bar.sync %0, %1;" ::"r"(run + 1), "n"(kFewRunThreads) : "memory");
  } else if (blockDim.x > kWarpThreads) {
    __syncthreads();
  } else {
    __syncwarp();
  }
}

// The operation is an argument here, and a value elsewhere: code that is not there is not fetched.
// gridDim.x rows.
template <typename X, typename Y, bool kIsLog>
__global__ void __launch_bounds__(kFewMostWords, 1) few_kernel(RowArgs args) {
  using Acc = AccOf<X>;
  using Pack = FewPack<X, Y>;
  constexpr int kCols = kPackCols<X>;
  constexpr int kWordCols = kPackCols<Y>;
  extern __shared__ uint4 terms_memory[];
  __shared__ Acc maxima[kWarpThreads];
  __shared__ PartSlots<Acc, kFewMostRuns> parts;

  // Of this warp's run: its number and its first warp.
  const bool is_cut = args.is_cut;
  const int lane = static_cast<int>(threadIdx.x % kWarpThreads);
  const int warp = static_cast<int>(threadIdx.x / kWarpThreads);
  const int warps = static_cast<int>(blockDim.x / kWarpThreads);
  const int run = is_cut ? static_cast<int>(threadIdx.x / kFewRunThreads) : 0;
  const int first_warp = run * kFewRunWarps;

  // Elements `step` apart of a run by elements: a pack begins at its lane's first.
  const int step = args.unit_step;
  const int in_run = static_cast<int>(threadIdx.x) - first_warp * kWarpThreads;
  const int unit = in_run & (step - 1);
  const int at = run * args.slab_cols + (in_run - unit) * kCols + unit;
  const int run_end = min((run + 1) * args.slab_cols, static_cast<int>(args.cols));
  const std::int64_t first = std::int64_t{blockIdx.x} * args.cols + at;
  const auto is_word = [&](const auto *p, int left) {
    return step == 1 && left >= kCols && is_word_aligned(p);
  };
  Pack pack;
  wait_for_kernel_before(args);
  {
    const X *x = static_cast<const X *>(args.x) + first;
    const int left = run_end - at;
    RawPack raw;
    if (is_word(x, left)) {
      raw = load_raw(x);
    } else {
      raw = load_some(x, step, left);
    }
    pack.set(0, raw);
  }

  const auto run_max = [&](Acc own) {
    const Acc of_warp = warp_max_or_nan(own);
    if (warps == 1) return of_warp;
    if (lane == 0) maxima[warp] = of_warp;
    run_barrier(is_cut, run);
    return warp_max_or_nan(lane < (is_cut ? kFewRunWarps : warps) ? maxima[first_warp + lane]
                                                                  : -Limits<Acc>::infinity());
  };
  const Acc max = run_max(pack.max(Places{}));

  // Every warp for itself, or of several runs one warp each, and those on all four schedulers.
  const bool is_one_run = !is_cut || warps <= kFewRunWarps;
  const bool is_own_run = is_one_run || ((warp ^ run) & (kFewRunWarps - 1)) == 0;
  RowPart<Acc> part = RowPart<Acc>::of(max);
  const auto put_part = [&] {
    if (!is_one_run && is_own_run && lane == 0) parts[run] = part;
  };
  Acc term[kCols];
  if constexpr (Pack::kHasOrder) {
    const FewTerms<X, Y, kIsLog> terms(terms_memory);
    Acc ones = Acc(0);
    pack.template make_terms<kIsLog>(max, term, &ones);
    terms.put(static_cast<int>(threadIdx.x), term, ones);
    run_barrier(is_cut, run);
    if (is_own_run) {
      part = terms.sum(first_warp * kWarpThreads, max, args.row_lanes, args.packs, is_cut);
    }
  } else {
    const auto sum = [&](Acc reference) {
      return sum_of_run(reference, term, warp - first_warp, is_cut ? kFewRunWarps : warps,
                        reinterpret_cast<WideSum<Acc> *>(terms_memory) + first_warp,
                        [&] { run_barrier(is_cut, run); });
    };
    pack.template make_terms<kIsLog>(max, term);
    part = sum(max);
    if constexpr (kIsLog) {
      // All runs or none, so that all the block's threads come by the same barriers.
      const bool is_enough = part.take_max_out(Pack::kNearLimit);
      put_part();
      if (is_one_run ? !is_enough : __syncthreads_or(!is_enough)) {
        const Acc second = run_max(pack.max_below(max, Places{}));
        pack.make_terms_below(second, term);
        const RowPart<Acc> below = sum(second);
        if (!is_enough) part.take_others_from(below, Pack::kNearLimit);
        put_part();
        if (!is_one_run) __syncthreads();
      }
    }
  }
  if (!is_one_run) {
    if constexpr (Pack::kHasOrder || !kIsLog) {
      put_part();
      __syncthreads();
    }
    part =
        merge_lone_parts<Acc, kRunsBits>(static_cast<int>(blockDim.x / kFewRunThreads),
                                         Pack::kNearLimit, kIsLog, [&](int i) { return parts[i]; });
  }
  // Of one run it is the unit, or in float64 one of the NaNs.
  Split<Acc> scale = {sum_unit<Acc>(), Acc(0)};
  if constexpr (!kIsLog) {
    if (is_cut && (!is_one_run || sizeof(Acc) == 8)) {
      scale = part_scale(max, part.max, Pack::kNearLimit);
    }
  }
  const RowFactors<Acc> factors = finish(part, Pack::kNearLimit, args.empty_is_zero, kIsLog);
  if (is_cut) {
    pack.finish({factors, scale, 0}, kIsLog);
  } else {
    pack.finish_whole({factors, scale, 0}, kIsLog);
  }

  Acc value[kCols];
  pack.template output<kIsLog>(args.keeps_terms, value);
  Y *y = static_cast<Y *>(args.y) + first;
  const int left = anew(run_end) - at;
  if (is_word(y, left)) {
#pragma unroll
    for (int i = 0; i < kCols; i += kWordCols) {
      store_raw<kHeldStoreHint>(y + i, softmax::pack<Y>(value + i));
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCols; ++i) {
      if (i * step < left) store_element(y + i * step, value[i]);
    }
  }
}

}  // namespace softmax
