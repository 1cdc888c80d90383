// What kernels for softmax of dense rows of whole words do with the values that a thread holds of a
// row: packs of kCols that lie together, one after another.
#pragma once

#include "cuda/general/pack.cuh"
#include "cuda/general/part_terms.cuh"
#include "cuda/general/row_piece.cuh"

namespace softmax {

template <typename X, int kPacks, int kValues>
__device__ __forceinline__ void unpack_row(const RawPack (&raw)[kPacks], float (&value)[kValues]) {
  constexpr int kCols = kValues / kPacks;
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    float one[kCols];
    unpack<X>(raw[p], one);
#pragma unroll
    for (int i = 0; i < kCols; ++i) value[p * kCols + i] = one[i];
  }
}

// -inf for what is masked.
template <int kCols, int kPacks, int kValues>
__device__ __forceinline__ void mask_row(const KeepPack<kCols> (&keep)[kPacks],
                                         float (&value)[kValues]) {
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
#pragma unroll
    for (int i = 0; i < kCols; ++i) {
      if (!keep[p].has(i)) value[p * kCols + i] = -Limits<float>::infinity();
    }
  }
}

template <int kValues, typename Make>
__device__ __forceinline__ void change_row(float (&value)[kValues], Make make) {
#pragma unroll
  for (float &v : value) v = make(v);
}

// The same, with terms that make() makes; and their sum, in the order of HeldRow::take_terms.
template <typename Terms, int kCols, int kValues, typename Make>
__device__ __forceinline__ double take_row_terms(float (&value)[kValues], Make make) {
  constexpr int kTogether = Terms::kTermsTogether < kCols ? Terms::kTermsTogether : kCols;
  double sum = 0.0;
#pragma unroll
  for (int first = 0; first < kValues; first += kTogether) {
    float term[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) term[i] = value[first + i] = make(value[first + i]);
    sum += sum_of<Terms>(term);
  }
  return sum;
}

// Softmax of terms, of a row of that maximum, which are to be multiplied by factor(). A row with a
// NaN or a +inf, or without an element above -inf, is the same throughout.
template <int kValues, typename Factor>
__device__ __forceinline__ void finish_softmax_row(float (&value)[kValues], float max,
                                                   const GeneralArgs &args, std::int32_t y_dtype,
                                                   Factor factor) {
  const bool has_nan = !(max < Limits<float>::infinity());
  if (has_nan || max == -Limits<float>::infinity()) {
    const float nan = Limits<float>::infinity() - Limits<float>::infinity();
    change_row(value, [&](float) { return !has_nan && args.empty_is_zero ? 0.0f : nan; });
  } else {
    scale_terms(factor(), y_dtype, [&](auto make) { change_row(value, make); });
  }
}

// Pack p, to `to`. is_warp: as for store_row_values.
template <int kCols, typename Y, int kValues>
__device__ __forceinline__ void store_row_pack(Y *to, const float (&value)[kValues], int p,
                                               bool is_warp) {
  float one[kCols];
#pragma unroll
  for (int i = 0; i < kCols; ++i) one[i] = value[p * kCols + i];
  store_row_values(to, one, is_warp);
}

}  // namespace softmax
