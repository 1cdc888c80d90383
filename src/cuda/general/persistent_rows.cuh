// Softmax of dense rows of whole words in CLUSTER, by clusters that stay: where a cluster starts
// for every row, nobody has asked for the row's words before, and all of its blocks wait for the
// last. A thread here asks for the next row's words as it stores this one's, in the registers that
// storing leaves. (1046 x 128256, share of a copy's speed: bf16 with a mask 0.82 for 0.65, float32
// 0.94 for 0.86, both with the hardware's power of two. Blocks alone lose by it: float32, 32768 x
// 4096, 0.87 for 0.97.)
//
// What is not for this kernel is for rows.cuh, whose order of additions it has, and so its bits.
#pragma once

#include "core/scaled_exp.h"
#include "cuda/general/pack.cuh"
#include "cuda/general/row_numbers.cuh"
#include "cuda/general/row_piece.cuh"
#include "cuda/general/wide_row.cuh"
#include "cuda/general/word_row.cuh"
#include "cuda/prim/compile.cuh"
#include "cuda/prim/held_parts.cuh"

namespace softmax {

// Rows after which those that are left are computed, in float64, and the next words are asked for
// anew.
constexpr int kPersistentBatch = 64;

// A block's shared memory. Of everything there are two, in turns: whoever is a row ahead writes
// where nobody reads.
struct PersistentRoom {
  RowPiece warps[2][kRowsMostThreads / kWarpThreads];
  RowPiece blocks[2][kRowsMostBlocks];
  std::uint64_t barriers[2];  // that count the bytes of `blocks`
  bool is_wide[kPersistentBatch];
  TeamScratch scratch;
};

#if SOFTMAX_BULK_COPY

// kHasMask: BOOL_KEEP, a byte an element.
template <typename X, int kPacks, bool kHasMask>
class PersistentRows {
 public:
  static constexpr int kCols = kWordBytes / static_cast<int>(sizeof(X));
  static constexpr int kValues = kPacks * kCols;

  __device__ __forceinline__ PersistentRows(const GeneralArgs &args, PersistentRoom *room, int rank,
                                            unsigned team, unsigned teams)
      : args_(args),
        room_(*room),
        cols_(args, rank, static_cast<int>(threadIdx.x)),
        rank_(rank),
        end_(cols_.within(args.layout().cols)),
        teams_(teams),
        row_(team) {}

  __device__ __forceinline__ void run() {
    const auto rows = static_cast<unsigned>(args_.layout().rows);
    open();
#pragma unroll 1
    while (row_ < rows) {
      const unsigned left = (rows - 1 - row_) / teams_ + 1;
      run_batch(static_cast<int>(min(left, unsigned{kPersistentBatch})));
    }
  }

 private:
  // Of a lane's terms.
  static constexpr int kSumBits = unit_bits(kValues);

  __device__ __forceinline__ std::int64_t stride(int tensor) const {
    return args_.layout().stride[tensor][0];
  }
  template <typename T>
  __device__ __forceinline__ T *at(const void *tensor, int index, std::int64_t row) const {
    T *const first = const_cast<T *>(static_cast<const T *>(tensor));
    return as_base(first + row * stride(index) + cols_.first(), args_.zero);
  }

  __device__ __forceinline__ void open() const {
    if (threadIdx.x == 0) {
      for (std::uint64_t &barrier : room_.barriers) cuda::ptx::mbarrier_init(&barrier, 1);
      cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
    }
    cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_relaxed);
    cuda::ptx::barrier_cluster_wait(cuda::ptx::sem_acquire);
  }

  __device__ __forceinline__ void run_batch(int count) {
    load();
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      const bool is_wide = run_row(i + 1 < count);
      if (threadIdx.x == 0) room_.is_wide[i] = is_wide;
      row_ += teams_;
    }
    __syncthreads();
    if (rank_ != 0) return;
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      const std::int64_t row = row_ - static_cast<unsigned>(count - i) * teams_;
      if (room_.is_wide[i]) run_wide_row(args_, row, Team::of_block(&room_.scratch));
    }
  }

  // ---- words ----

  // Of the batch's first row.
  __device__ __forceinline__ void load() {
    const X *const x = at<const X>(args_.buffers.x, kTensorX, row_);
    load_factor(row_);
    ColPlace place(cols_);
#pragma unroll
    for (int p = 0; p < kPacks; ++p, place.advance()) {
      raw_[p] = empty_pack<X>();
      if (place.at < end_) raw_[p] = load_raw(x + place.at);
    }
    load_mask(row_);
  }
  // The block's part of a row: it comes to L2 while the blocks wait for each other's sums.
  __device__ __forceinline__ void prefetch(std::int64_t row) const {
    const std::uint64_t x = address_of(at<const X>(args_.buffers.x, kTensorX, row));
    prefetch_range({x, x + end_ * sizeof(X)});
    if constexpr (kHasMask) {
      const std::uint64_t mask =
          address_of(at<const std::uint8_t>(args_.buffers.mask, kTensorMask, row));
      prefetch_range({mask, mask + end_});
    }
  }
  __device__ __forceinline__ void load_factor(std::int64_t row) {
    if (args_.buffers.row_scale != nullptr) factor_ = args_.buffers.row_scale[row];
  }
  // Once words are asked for: beside values that wait to be stored there is no room.
  __device__ __forceinline__ void load_mask(std::int64_t row) {
    if constexpr (!kHasMask) return;
    const auto *const mask = at<const std::uint8_t>(args_.buffers.mask, kTensorMask, row);
    ColPlace place(cols_);
#pragma unroll
    for (int p = 0; p < kPacks; ++p, place.advance()) {
      keep_[p] = {};
      if (place.at < end_) keep_[p] = load_keep<kCols>(mask + place.at);
    }
  }
  // The row's values: -inf for what is masked or does not exist.
  __device__ __forceinline__ void take_values(bool is_negative) {
    unpack_row<X>(raw_, value_);
    if (is_negative) {
#pragma unroll
      for (int i = 0; i < kValues; ++i) value_[i] = -value_[i];
      if (!cols_.is_whole(end_)) {
        ColPlace place(cols_);
#pragma unroll
        for (int p = 0; p < kPacks; ++p, place.advance()) {
#pragma unroll
          for (int i = 0; i < kCols; ++i) {
            if (place.at >= end_) value_[p * kCols + i] = -Limits<float>::infinity();
          }
        }
      }
    }
    if constexpr (kHasMask) mask_row(keep_, value_);
  }

  // ---- a row ----

  // Whether nothing has been written, the row being one for wide_row.cuh.
  __device__ __forceinline__ bool run_row(bool has_next) {
    take_values((args_.general.scale < 0.0) != (factor_ < 0.0f));
    float part_max = warp_max_or_nan(tree_max<0, kValues>(value_));
    // The scale's constants come after the mask has gone: there is no room for both.
    asm volatile("" : "+f"(factor_), "+f"(part_max));
    double scale = args_.general.scale;
    if (args_.buffers.row_scale != nullptr) scale *= double(factor_);
    const RowScaling scaling = RowScaling::of(scale);
    const ScaledTerms terms = terms_of(part_max, scaling);
    const float part_exponent = exponent_of(part_max, ScaledTerms(part_max, scaling));
    double plain;
    if (args_.y_dtype != SOFTMAX_DTYPE_F32) {
      const ScaledCoarseTerms coarse(finite_or_zero(part_max), scaling, terms);
      plain = take_row_terms<ScaledCoarseTerms, kCols>(value_, coarse);
    } else {
      plain = take_row_terms<ScaledTerms, kCols>(value_, terms);
    }
    plain = warp_sum_of_units<kSumBits>(plain);

    if constexpr (sizeof(X) == 2) {  // float32 has no registers for that
      if (has_next && threadIdx.x == 0) prefetch(row_ + teams_);
    }
    const RowTotal whole = meet({part_max, 0.0f, {0.0, 0.0f}, plain}, scaling);
    const float max = whole.max;
    const ScaledTerms all(finite_or_zero(max), scaling);
    const bool is_wide = !scaling.is_usual || !all.is_well_near();
    if (!is_wide) {
      finish_softmax_row(value_, max, args_, args_.y_dtype, [&] {
        return times_power(near_reciprocal(whole.plain), part_exponent - all.exponent());
      });
    }
    store(!is_wide, has_next);
    return is_wide;
  }

  // The row's, by all of its threads, from this warp's.
  __device__ __forceinline__ RowTotal meet(const RowTotal &own, const RowScaling &scaling) {
    RowPiece *const warps = room_.warps[turn_];
    if (threadIdx.x % kWarpThreads == 0) warps[threadIdx.x / kWarpThreads] = own.piece(scaling);
    __syncthreads();
    const RowTotal part = merge(warps, args_.row_threads / kWarpThreads, scaling);
    namespace ptx = cuda::ptx;
    RowPiece *const blocks = room_.blocks[turn_];
    std::uint64_t *const barrier = &room_.barriers[turn_];
    if (threadIdx.x == 0) {
      ptx::mbarrier_arrive_expect_tx(
          ptx::sem_release, ptx::scope_cta, ptx::space_shared, barrier,
          static_cast<std::uint32_t>(args_.row_blocks * sizeof(RowPiece)));
    }
    if (static_cast<int>(threadIdx.x) < args_.row_blocks) {
      const auto cluster = cooperative_groups::this_cluster();
      send_part(part.piece(scaling), cluster.map_shared_rank(&blocks[rank_], threadIdx.x),
                cluster.map_shared_rank(barrier, threadIdx.x));
    }
    wait_for(barrier, phases_ >> turn_ & 1);
    phases_ ^= 1u << turn_;
    turn_ ^= 1;
    return merge(blocks, args_.row_blocks, scaling);
  }
  static __device__ __forceinline__ RowTotal merge(const RowPiece *pieces, int count,
                                                   const RowScaling &scaling) {
    return merge_pieces<false>(
        count, [&](int i) -> const RowPiece & { return pieces[i]; }, scaling, false, true);
  }

  // ---- results, and the next row's words in their place ----

  __device__ __forceinline__ void store(bool has_results, bool has_next) {
    switch (args_.y_dtype) {
      case SOFTMAX_DTYPE_F16: return store_as<__half>(has_results, has_next);
      case SOFTMAX_DTYPE_BF16: return store_as<__nv_bfloat16>(has_results, has_next);
      default: return store_as<float>(has_results, has_next);
    }
  }
  template <typename Y>
  __device__ __forceinline__ void store_as(bool has_results, bool has_next) {
    Y *const y = at<Y>(args_.buffers.y, kTensorY, row_);
    const std::int64_t next = std::int64_t{row_} + (has_next ? teams_ : 0);
    const X *const x = at<const X>(args_.buffers.x, kTensorX, next);
    load_factor(next);
    ColPlace place(cols_);
    if (has_results && has_next && cols_.is_whole(end_)) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p, place.advance()) {
        store_row_pack<kCols>(y + place.at, value_, p, true);
        raw_[p] = load_raw(x + place.at);
      }
      load_mask(next);
      return;
    }
    // Where the warp's lanes have their packs.
    const int warp_left =
        (kWarpThreads - (static_cast<int>(threadIdx.x) & (kWarpThreads - 1))) * kCols;
#pragma unroll
    for (int p = 0; p < kPacks; ++p, place.advance()) {
      const bool is_there = place.at < end_;
      if (has_results && place.at + warp_left <= end_) {
        store_row_pack<kCols>(y + place.at, value_, p, true);
      } else if (has_results && is_there) {
        store_row_pack<kCols>(y + place.at, value_, p, false);
      }
      raw_[p] = empty_pack<X>();
      if (is_there && has_next) raw_[p] = load_raw(x + place.at);
    }
    load_mask(next);
  }

  const GeneralArgs &args_;
  PersistentRoom &room_;
  const HeldCols<kCols, kPacks> cols_;
  const int rank_;
  const int end_;  // of the row's columns in the block's part
  const unsigned teams_;
  unsigned row_;
  int turn_ = 0;              // of the two that room is for
  std::uint32_t phases_ = 0;  // of the barriers, a bit each
  float factor_ = 1.0f;       // of the row's scale
  RawPack raw_[kPacks];
  KeepPack<kCols> keep_[kHasMask ? kPacks : 1] = {};
  float value_[kValues];
};

#endif  // SOFTMAX_BULK_COPY

// Clusters take the rows team, team + teams, ..., of fewer than 2^31.
template <typename X, int kPacks, bool kHasMask>
__global__ void __maxnreg__(kPersistentRegisters)
    general_persistent_kernel(const __grid_constant__ GeneralArgs args) {
#if SOFTMAX_BULK_COPY
  __shared__ PersistentRoom room;
  // A power of two of them.
  const int rank = static_cast<int>(blockIdx.x) & (args.row_blocks - 1);
  const int shift = __ffs(args.row_blocks) - 1;
  PersistentRows<X, kPacks, kHasMask>(args, &room, rank, blockIdx.x >> shift, gridDim.x >> shift)
      .run();
#endif
}

}  // namespace softmax
