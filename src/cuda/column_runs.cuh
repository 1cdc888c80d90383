// Algorithm 15, COLUMN, of few columns: rows whose neighbours lie side by side, in runs of whole
// words. Bulk copies bring a run of every column to shared memory and take results from there; a
// thread has the rows of eight bytes alone, and the bits of column_held.cuh, which takes what is
// no such run. Every input is read once, every output written once.
//
// Elements that wait in shared memory cost no registers, whose numbers decide how many copies are
// under way, and loops over columns turn for as many as there are.
#pragma once

#include "core/column_runs.h"
#include "cuda/general/column_numbers.cuh"
#include "cuda/general/wide_row.cuh"
#include "cuda/prim/bulk.cuh"
#include "cuda/prim/compile.cuh"
#include "cuda/prim/raw_pack.cuh"

namespace softmax {

#if SOFTMAX_BULK_COPY

// Results have x's type. kIsApart: log-softmax, or with statistics, which want a sum apart from
// what equals the maximum.
template <typename X, bool kIsApart>
class ColumnRun {
  static constexpr int kLanes = kRunThreadBytes / static_cast<int>(sizeof(X));
  static constexpr bool kKeepsTerms = sizeof(X) == 4;  // in the elements' places

 public:
  __device__ __forceinline__ ColumnRun(const GeneralArgs &args, unsigned char *slots,
                                       std::uint64_t *barrier)
      : args_(args), slots_(slots), barrier_(barrier) {
    const ColumnTile &tile = args.tile;
    const int outer = static_cast<int>(blockIdx.x / static_cast<unsigned>(tile.inner_groups));
    const int run = static_cast<int>(blockIdx.x) - outer * tile.inner_groups;
    const std::int64_t within = std::int64_t{run} * tile.width;
    row_ = outer * tile.inner + within;
    const std::int64_t left = tile.inner - within;
    count_ = left < tile.width ? static_cast<int>(left) : tile.width;
    const Layout &layout = args.layout();
    begin_[kTensorX] = within + (layout.dims > 1 ? outer * layout.stride[kTensorX][0] : 0);
    begin_[kTensorY] = within + (layout.dims > 1 ? outer * layout.stride[kTensorY][0] : 0);
  }

  // Whether there are rows that are left, which the thread's own are, by bits.
  __device__ __forceinline__ bool run(unsigned *left) {
    load();
    *left = 0;
    if (first() < count_) *left = take();
    fence_slot_writes();
    const bool has_left = __syncthreads_or(*left != 0) != 0;
    if (!has_left && has_results()) store();
    return has_left;
  }

  // Results but for rows that are left, and then those.
  __device__ __forceinline__ void run_left(unsigned left, unsigned char *is_left,
                                           TeamScratch *scratch) const {
    X *const y = static_cast<X *>(args_.buffers.y) + begin_[kTensorY];
    for (int i = 0; i < kLanes; ++i) {
      const int r = first() + i;
      is_left[r] = left >> i & 1;
      if (r >= count_ || is_left[r] != 0 || !has_results()) continue;
      for (int c = 0; c < cols(); ++c) {
        y[c * axis(kTensorY) + r] = reinterpret_cast<const X *>(slots_ + c * kRunBytes)[r];
      }
    }
    __syncthreads();
    const Team team = Team::of_block(scratch);
#pragma unroll 1
    for (int r = 0; r < count_; ++r) {
      if (is_left[r] != 0) run_wide_row(args_, row_ + r, team);
    }
  }

 private:
  __device__ __forceinline__ bool is_log() const { return kIsApart && args_.is_log; }
  __device__ __forceinline__ bool has_results() const { return !kIsApart || !args_.is_stats; }
  __device__ __forceinline__ int cols() const { return static_cast<int>(args_.layout().cols); }
  __device__ __forceinline__ std::int64_t axis(int tensor) const {
    return args_.layout().axis_stride[tensor];
  }
  // Of the block's rows.
  __device__ __forceinline__ int first() const { return static_cast<int>(threadIdx.x) * kLanes; }
  // The thread's elements of a column, or what has taken their places.
  __device__ __forceinline__ uint2 &at(int col) const {
    return *reinterpret_cast<uint2 *>(slots_ + col * kRunBytes + threadIdx.x * kRunThreadBytes);
  }
  __device__ __forceinline__ std::uint32_t bytes() const {
    return static_cast<std::uint32_t>(count_ * sizeof(X));
  }

  __device__ __forceinline__ void load() const {
    namespace ptx = cuda::ptx;
    if (threadIdx.x < kWarpThreads) {
      if (threadIdx.x == 0) {
        ptx::mbarrier_init(barrier_, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared,
                                       barrier_, cols() * bytes());
      }
      __syncwarp();
      const int col = static_cast<int>(threadIdx.x);
      if (col < cols()) {
        ptx::cp_async_bulk(
            ptx::space_cluster, ptx::space_global, slots_ + col * kRunBytes,
            static_cast<const X *>(args_.buffers.x) + begin_[kTensorX] + col * axis(kTensorX),
            bytes(), barrier_);
      }
    }
    constexpr std::uint32_t kMinusInf = RawElements<X>::kMinusInf[0];
    for (int col = cols(); col < column_run_slots(cols()); ++col) {
      at(col) = make_uint2(kMinusInf, kMinusInf);
    }
    __syncthreads();
    wait_for(barrier_, 0);
  }

  // use(first column of so many that are taken at a time).
  template <typename Use>
  __device__ __forceinline__ void for_columns(Use use) const {
#pragma unroll 1
    for (int col = 0; col < cols(); col += kRunTogether) use(col);
  }
  static __device__ __forceinline__ void unpack(uint2 word, float (&value)[kLanes]) {
    if constexpr (kLanes == 2) {
      value[0] = __uint_as_float(word.x);
      value[1] = __uint_as_float(word.y);
    } else {
      const float2 low = RawElements<X>::unpack(word.x);
      const float2 high = RawElements<X>::unpack(word.y);
      value[0] = low.x;
      value[1] = low.y;
      value[2] = high.x;
      value[3] = high.y;
    }
  }
  static __device__ __forceinline__ uint2 pack(const float (&value)[kLanes]) {
    if constexpr (kLanes == 2) {
      return make_uint2(__float_as_uint(value[0]), __float_as_uint(value[1]));
    } else {
      return make_uint2(RawElements<X>::pack(value[0], value[1]),
                        RawElements<X>::pack(value[2], value[3]));
    }
  }
  // The larger of elements side by side, or a NaN.
  static __device__ __forceinline__ uint2 larger(uint2 a, uint2 b) {
    if constexpr (kLanes == 2) {
      return make_uint2(__float_as_uint(max_or_nan(__uint_as_float(a.x), __uint_as_float(b.x))),
                        __float_as_uint(max_or_nan(__uint_as_float(a.y), __uint_as_float(b.y))));
    } else {
      using Pair = typename RawElements<X>::Pair;
      return make_uint2(pair_max<Pair>(a.x, b.x), pair_max<Pair>(a.y, b.y));
    }
  }

  // make(lane, element) of four columns.
  template <typename Make>
  __device__ __forceinline__ void get(int col, float (&value)[kRunTogether][kLanes],
                                      Make make) const {
#pragma unroll
    for (int k = 0; k < kRunTogether; ++k) {
      unpack(at(col + k), value[k]);
#pragma unroll
      for (int i = 0; i < kLanes; ++i) value[k][i] = make(i, value[k][i]);
    }
  }
  __device__ __forceinline__ void put(int col, const float (&value)[kRunTogether][kLanes]) const {
#pragma unroll
    for (int k = 0; k < kRunTogether; ++k) at(col + k) = pack(value[k]);
  }
  template <typename Make>
  __device__ __forceinline__ void change(Make make) const {
    for_columns([&](int col) {
      float value[kRunTogether][kLanes];
      get(col, value, make);
      put(col, value);
    });
  }
  // As column_held.cuh adds them.
  template <bool kKeep, typename Sum, typename Make>
  __device__ __forceinline__ void add(Sum (&sum)[kLanes], Make make) const {
    for_columns([&](int col) {
      float term[kRunTogether][kLanes];
      get(col, term, make);
      if constexpr (kKeep) put(col, term);
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        sum[i] += (Sum(term[0][i]) + Sum(term[2][i])) + (Sum(term[1][i]) + Sum(term[3][i]));
      }
    });
  }

  // The thread's rows, whose results take the elements' places. Which are left, by bits.
  __device__ __forceinline__ unsigned take() const {
    uint2 most = at(0);
    for_columns([&](int col) {
      most = larger(most, larger(larger(at(col), at(col + 1)), larger(at(col + 2), at(col + 3))));
    });
    float max[kLanes];
    unpack(most, max);
    RowSums apart[kLanes] = {};
    if constexpr (kIsApart) take_apart(max, apart);
    unsigned left = 0;
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      const ScaledTerms all(finite_or_zero(max[i]), args_.scaling);
      const bool is_left = is_left_row(all, args_.scaling);
      left |= unsigned{is_left} << i;
      if (kIsApart && args_.writes_stats() && !is_left) {
        write_row_stats(args_, row_ + first() + i,
                        {max[i], apart[i].ones, apart[i].others, all.reference()});
      }
    }
    if (is_log()) {
      finish_log(max, apart);
    } else if (has_results()) {
      finish_softmax(max);
    }
    return left;
  }

  __device__ __forceinline__ void take_apart(const float (&max)[kLanes],
                                             RowSums (&apart)[kLanes]) const {
    const auto terms_of_lane = [&](int i) { return terms_of(max[i], args_.scaling); };
    if constexpr (kLanes == 2) {
      add_apart(max, {terms_of_lane(0), terms_of_lane(1)}, apart);
    } else {
      add_apart(max, {terms_of_lane(0), terms_of_lane(1), terms_of_lane(2), terms_of_lane(3)},
                apart);
    }
  }
  __device__ __forceinline__ void add_apart(const float (&max)[kLanes],
                                            const ScaledTerms (&terms)[kLanes],
                                            RowSums (&apart)[kLanes]) const {
    double others[kLanes] = {};
    add<false>(others, [&](int i, float x) {
      const bool is_one = x == max[i];
      const float made = terms[i](x);
      apart[i].ones += is_one ? 1.0f : 0.0f;
      return is_one ? 0.0f : made;
    });
#pragma unroll
    for (int i = 0; i < kLanes; ++i) apart[i].others = others[i];
  }

  __device__ __forceinline__ void finish_log(const float (&max)[kLanes],
                                             const RowSums (&apart)[kLanes]) const {
    const RowScaling &scaling = args_.scaling;
    float finite[kLanes], log_sum[kLanes];
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      finite[i] = finite_or_zero(max[i]);
      const double top = double(max[i]) * scaling.size;
      log_sum[i] = column_log_sum(args_, max[i], top, -Limits<double>::infinity(),
                                  ScaledTerms(finite[i], scaling).reference(), apart[i]);
    }
    if constexpr (kKeepsTerms) {
      change([&](int i, float x) { return scaled_log_value(x, finite[i], scaling, log_sum[i]); });
    } else {
      change(
          [&](int i, float x) { return coarse_log_value(x, finite[i], scaling.hi, log_sum[i]); });
    }
  }
  __device__ __forceinline__ void finish_softmax(const float (&max)[kLanes]) const {
    const RowScaling &scaling = args_.scaling;
    double total[kLanes] = {};
    if constexpr (kKeepsTerms) {
      const ScaledTerms terms[2] = {terms_of(max[0], scaling), terms_of(max[1], scaling)};
      add<true>(total, [&](int i, float x) { return terms[i](x); });
    } else {
      CoarseColumn coarse[kLanes];
#pragma unroll
      for (int i = 0; i < kLanes; ++i) coarse[i] = CoarseColumn::of(max[i], scaling);
      float some[kLanes] = {};
      add<false>(some, [&](int i, float x) { return coarse[i](x); });
#pragma unroll
      for (int i = 0; i < kLanes; ++i) total[i] = some[i];
    }
    float n[kLanes][4];
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      const HeldNumbers numbers = softmax_numbers(args_, max[i], scaling, total[i],
                                                  -Limits<double>::infinity(), !kKeepsTerms);
#pragma unroll
      for (int k = 0; k < 4; ++k) n[i][k] = numbers.number[k];
    }
    if constexpr (kKeepsTerms) {
      ColumnFactor factor[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        factor[i] = ColumnFactor::of(
            n[i], exponent_of(max[i], ScaledTerms(finite_or_zero(max[i]), scaling)));
      }
      if (factor[0].has_power || factor[1].has_power) {
        change([&](int i, float term) { return factor[i].powered(term); });
      } else {
        change([&](int i, float term) { return factor[i].plain(term); });
      }
    } else {
      change([&](int i, float x) { return coarse_result(n[i], x); });
    }
  }

  // A barrier is behind all writes. Slots stay until they have been read.
  __device__ __forceinline__ void store() const {
    namespace ptx = cuda::ptx;
    const int col = static_cast<int>(threadIdx.x);
    if (col >= cols()) return;
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared,
                       static_cast<X *>(args_.buffers.y) + begin_[kTensorY] + col * axis(kTensorY),
                       slots_ + col * kRunBytes, bytes());
    ptx::cp_async_bulk_commit_group();
    wait_for_stores<0>();
  }

  const GeneralArgs &args_;
  unsigned char *const slots_;
  std::uint64_t *const barrier_;
  std::int64_t row_;       // the block's first
  int count_;              // of its rows
  std::int64_t begin_[2];  // of x and y
};

#endif  // SOFTMAX_BULK_COPY

// Blocks on a multiprocessor that the compiler keeps registers for: as many as there is shared
// memory for, of 20 columns. (Of 21, which have 24 slots, there is for eight.)
constexpr int kRunBlocks = 10;

template <typename X, bool kIsApart>
__global__ void __launch_bounds__(kRunThreads, kResident<(kIsApart ? 8 : kRunBlocks), kRunThreads>)
    column_runs_kernel(const __grid_constant__ GeneralArgs args) {
#if SOFTMAX_BULK_COPY
  extern __shared__ __align__(128) unsigned char slots[];
  __shared__ TeamScratch wide_scratch;
  __shared__ unsigned char is_left[kRunBytes / sizeof(X)];
  __shared__ std::uint64_t barrier;
  ColumnRun<X, kIsApart> call(args, slots, &barrier);
  unsigned left;
  if (call.run(&left)) call.run_left(left, is_left, &wide_scratch);
#endif
}

}  // namespace softmax
