// Softmax of dense rows of whole words in BLOCK, a block each: what most calls ask for, without the
// questions of rows.cuh, a hundred instructions between a block's start and its first word and as
// many later. (32768 x 4096, share of a copy's speed: bf16 to float32 with a factor a row 0.95 for
// 0.84, with a mask to bf16 0.99 for 0.91; float32 with a factor a row 0.96 for 0.94.)
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

// Of a thread. 32768 x 4096 of bf16 to float32 with a factor a row takes 204 us with 64, 201 with
// 80 and 224 with 96, of float32 264, 264 and 263 (an H200).
template <typename X, typename Y>
constexpr int kAloneRegisters = sizeof(X) < sizeof(Y) ? 80 : 64;

// A block's shared memory.
struct AloneRoom {
  RowPiece warps[kRowsMostThreads / kWarpThreads];
  TeamScratch scratch;
};

template <typename X, typename Y, int kPacks>
class AloneRow {
 public:
  static constexpr int kCols = kWordBytes / static_cast<int>(sizeof(X));
  static constexpr int kValues = kPacks * kCols;

  __device__ __forceinline__ AloneRow(const GeneralArgs &args, AloneRoom *room)
      : args_(args),
        room_(*room),
        thread_(static_cast<int>(threadIdx.x)),
        end_(static_cast<int>(args.layout().cols)),
        step_(args.row_threads * kCols) {}

  // Whether nothing has been written, the row being one for wide_row.cuh.
  __device__ __forceinline__ bool run() {
    const RowScaling scaling = load();
    const float part_max = warp_max_or_nan(tree_max<0, kValues>(value_));
    const ScaledTerms own(finite_or_zero(part_max), scaling);
    const float part_exponent = exponent_of(part_max, own);
    const ScaledTerms terms = own.is_near() ? own : ScaledTerms(0.0f, scaling);
    double plain;
    if constexpr (sizeof(Y) < 4) {
      const ScaledCoarseTerms coarse(finite_or_zero(part_max), scaling, terms);
      plain = take_row_terms<ScaledCoarseTerms, kCols>(value_, coarse);
    } else {
      plain = take_row_terms<ScaledTerms, kCols>(value_, terms);
    }
    plain = warp_sum_of_units<kSumBits>(plain);

    if (thread_ % kWarpThreads == 0) {
      room_.warps[thread_ / kWarpThreads] = {0.0, plain, part_max, 0.0f, 0.0f, part_exponent};
    }
    __syncthreads();
    const RowTotal whole = merge_pieces<false>(
        args_.row_threads / kWarpThreads, [&](int i) -> const RowPiece & { return room_.warps[i]; },
        scaling, false, true);
    const float max = whole.max;
    const ScaledTerms all(finite_or_zero(max), scaling);
    if (!scaling.is_usual || !all.is_well_near()) return true;
    constexpr std::int32_t kDtype = sizeof(Y) < 4 ? SOFTMAX_DTYPE_BF16 : SOFTMAX_DTYPE_F32;
    finish_softmax_row(value_, max, args_, kDtype, [&] {
      return times_power(near_reciprocal(whole.plain), part_exponent - all.exponent());
    });
    store();
    return false;
  }

 private:
  // Of a lane's terms.
  static constexpr int kSumBits = unit_bits(kValues);

  template <typename T>
  __device__ __forceinline__ T *at(const void *tensor, int index) const {
    T *const first = const_cast<T *>(static_cast<const T *>(tensor));
    return as_base(first + blockIdx.x * args_.layout().stride[index][0] + thread_ * kCols,
                   args_.zero);
  }
  __device__ __forceinline__ bool is_whole() const { return end_ == kPacks * step_; }
  __device__ __forceinline__ bool has(int p) const { return p * step_ + thread_ * kCols < end_; }

  // The values, with the scale's sign, and -inf for what is masked or does not exist.
  __device__ __forceinline__ RowScaling load() {
    RawPack raw[kPacks];
    KeepPack<kCols> keep[kPacks] = {};
    const bool has_mask = args_.general.mask_kind == SOFTMAX_MASK_BOOL_KEEP;
    const X *const x = at<const X>(args_.buffers.x, kTensorX);
    if (is_whole()) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) raw[p] = load_raw(x + p * step_);
    } else {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        raw[p] = empty_pack<X>();
        if (has(p)) raw[p] = load_raw(x + p * step_);
      }
    }
    if (has_mask) {
      const auto *const mask = at<const std::uint8_t>(args_.buffers.mask, kTensorMask);
      if (is_whole()) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p) keep[p] = load_keep<kCols>(mask + p * step_);
      } else {
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
          if (has(p)) keep[p] = load_keep<kCols>(mask + p * step_);
        }
      }
    }
    RowScaling scaling = args_.scaling;
    if (args_.buffers.row_scale != nullptr) {
      scaling = RowScaling::of(args_.general.scale * double(args_.buffers.row_scale[blockIdx.x]));
    }
    if (scaling.sign < 0.0f) {
      constexpr std::uint32_t kSigns = sizeof(X) == 4 ? 0x80000000u : 0x80008000u;
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
#pragma unroll
        for (std::uint32_t &part : raw[p].part) part ^= has(p) ? kSigns : 0u;
      }
    }
    unpack_row<X>(raw, value_);
    if (has_mask) mask_row(keep, value_);
    return scaling;
  }

  __device__ __forceinline__ void store() const {
    Y *const y = at<Y>(args_.buffers.y, kTensorY);
    if (is_whole()) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) store_row_pack<kCols>(y + p * step_, value_, p, true);
      return;
    }
    const int warp_left = (kWarpThreads - thread_ % kWarpThreads) * kCols;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (p * step_ + thread_ * kCols + warp_left <= end_) {
        store_row_pack<kCols>(y + p * step_, value_, p, true);
      } else if (has(p)) {
        store_row_pack<kCols>(y + p * step_, value_, p, false);
      }
    }
  }

  const GeneralArgs &args_;
  AloneRoom &room_;
  const int thread_;
  const int end_;
  const int step_;
  float value_[kValues];
};

// A block is row_threads threads, whole warps, for the row of its number; of fewer than 2^31 rows.
template <typename X, typename Y, int kPacks>
__global__ void __maxnreg__((kAloneRegisters<X, Y>))
    general_alone_kernel(const __grid_constant__ GeneralArgs args) {
  __shared__ AloneRoom room;
  if (AloneRow<X, Y, kPacks>(args, &room).run()) {
    run_wide_row(args, blockIdx.x, Team::of_block(&room.scratch));
  }
}

}  // namespace softmax
