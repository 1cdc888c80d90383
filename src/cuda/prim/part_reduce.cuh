// Reductions of parts: the RowPart of a group of lanes, of a block's warps, and of a row.
//
// Every thread of the group gets the same bits, in an order that is a function of the number of
// lanes, warps or parts alone.
#pragma once

#include "cuda/prim/reduce.cuh"

namespace softmax {

constexpr int kMostWarps = 32;

// The least power of two that is >= count, at most 32.
__device__ __forceinline__ int lanes_for(int count) {
  return count >= kWarpThreads ? kWarpThreads : count <= 1 ? 1 : 1 << (32 - __clz(count - 1));
}

// Over groups of `lanes` neighbouring lanes, a power of two that the whole warp agrees on.
template <typename T>
__device__ __forceinline__ T group_lanes_max(T value, int lanes) {
#pragma unroll
  for (int step = kWarpThreads / 2; step > 0; step /= 2) {
    if (step < lanes) value = fmax(value, __shfl_xor_sync(kFullWarp, value, step));
  }
  return value;
}

__device__ __forceinline__ WideSum<float> shuffled(const WideSum<float> &sum, int step) {
  return {__shfl_xor_sync(kFullWarp, sum.value, step)};
}
__device__ __forceinline__ WideSum<double> shuffled(const WideSum<double> &sum, int step) {
  WideSum<double> other;
  other.value.hi = __shfl_xor_sync(kFullWarp, sum.value.hi, step);
  other.value.lo = __shfl_xor_sync(kFullWarp, sum.value.lo, step);
  return other;
}

// The sums against one reference of `lanes` lanes.
template <typename T>
__device__ __forceinline__ RowPart<T> group_lanes_sum(RowPart<T> part, int lanes, bool is_log) {
#pragma unroll
  for (int step = kWarpThreads / 2; step > 0; step /= 2) {
    if (step < lanes) {
      part.others.add(shuffled(part.others, step));
      if (is_log) part.ones += __shfl_xor_sync(kFullWarp, part.ones, step);
    }
  }
  return part;
}

// The union of parts with maxima of their own, one a lane.
template <typename T>
__device__ __forceinline__ RowPart<T> group_lanes_merge(RowPart<T> part, int lanes, bool is_log) {
  part.rescale(group_lanes_max(part.max, lanes));
  return group_lanes_sum(part, lanes, is_log);
}

template <typename T>
__device__ __forceinline__ RowPart<T> no_part() {
  return {-Limits<T>::infinity(), T(0), {}};
}

// What the warps of a block leave for each other, as bytes, because shared memory cannot have
// initialisers. A barrier lies between a value's writing and its reading, and one between that and
// the next writing.
template <typename T>
struct BlockScratch {
  T max[kMostWarps];
  alignas(RowPart<T>) unsigned char parts[kMostWarps][sizeof(RowPart<T>)];

  __device__ __forceinline__ RowPart<T> *part(int i) {
    return reinterpret_cast<RowPart<T> *>(parts[i]);
  }
};

__device__ __forceinline__ int warps_of_block() { return blockDim.x / kWarpThreads; }
__device__ __forceinline__ bool is_first_lane() { return threadIdx.x % kWarpThreads == 0; }
__device__ __forceinline__ int warp_of_block() { return threadIdx.x / kWarpThreads; }

// The block's maximum, from every lane's. With a barrier.
template <typename T>
__device__ __forceinline__ T block_max(T value, BlockScratch<T> &scratch) {
  value = lanes_max<kWarpThreads>(value);
  if (is_first_lane()) scratch.max[warp_of_block()] = value;
  __syncthreads();
  const int warps = warps_of_block();
  const int lanes = lanes_for(warps);
  const int i = static_cast<int>(threadIdx.x) % lanes;
  return group_lanes_max(i < warps ? scratch.max[i] : -Limits<T>::infinity(), lanes);
}

// The block's sum against one reference: every warp leaves its own, and after a barrier any warp
// can have the whole.
template <typename T>
__device__ __forceinline__ void leave_sum(RowPart<T> part, BlockScratch<T> &scratch, bool is_log) {
  part = group_lanes_sum(part, kWarpThreads, is_log);
  if (is_first_lane()) *scratch.part(warp_of_block()) = part;
}
template <typename T>
__device__ __forceinline__ RowPart<T> block_sum(T max, BlockScratch<T> &scratch, bool is_log) {
  const int warps = warps_of_block();
  const int lanes = lanes_for(warps);
  const int i = static_cast<int>(threadIdx.x) % lanes;
  RowPart<T> part{max, T(0), {}};
  if (i < warps) part.add(*scratch.part(i));
  return group_lanes_sum(part, lanes, is_log);
}

// The union of parts first, first + stride, ... of `count`, read by `load`, over all lanes of a
// warp that call it together: every lane gets it.
template <typename T, typename Load>
__device__ __forceinline__ RowPart<T> merge_parts(int first, int stride, int count, Load load,
                                                  bool is_log) {
  T max = -Limits<T>::infinity();
  for (int i = first; i < count; i += stride) max = fmax(max, load(i).max);
  max = lanes_max<kWarpThreads>(max);
  RowPart<T> sum{max, T(0), {}};
  for (int i = first; i < count; i += stride) {
    RowPart<T> part = load(i);
    part.rescale(max);
    sum.add(part);
  }
  return group_lanes_sum(sum, kWarpThreads, is_log);
}

// The union of all parts, for the first warp of the block: alone where they are few, with the help
// of the others, whose calls return nothing of use, where they are many. By every thread of the
// block; with two barriers if there are many.
constexpr int kFewParts = 2 * kWarpThreads;
template <typename T, typename Load>
__device__ __forceinline__ RowPart<T> merge_many_parts(int count, Load load,
                                                       BlockScratch<T> &scratch, bool is_log) {
  const RowPart<T> part =
      merge_parts<T>(threadIdx.x, static_cast<int>(blockDim.x), count, load, is_log);
  __syncthreads();
  if (is_first_lane()) *scratch.part(warp_of_block()) = part;
  __syncthreads();
  return merge_parts<T>(
      threadIdx.x % kWarpThreads, kWarpThreads, warps_of_block(),
      [&scratch](int i) { return *scratch.part(i); }, is_log);
}

}  // namespace softmax
