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

// One slot a warp, as bytes, because shared memory cannot have initialisers.
template <typename T>
struct PartSlots {
  alignas(RowPart<T>) unsigned char bytes[kMostWarps][sizeof(RowPart<T>)];

  __device__ __forceinline__ RowPart<T> *at(int i) {
    return reinterpret_cast<RowPart<T> *>(bytes[i]);
  }
};

// The union of the block's warps, whose parts lie in `slots` since before a barrier. By whole warps.
template <typename T>
__device__ __forceinline__ RowPart<T> merge_warps(PartSlots<T> &slots, bool is_log) {
  const int warps = blockDim.x / kWarpThreads;
  const int lanes = lanes_for(warps);
  const int i = static_cast<int>(threadIdx.x) % lanes;
  return group_lanes_merge(i < warps ? *slots.at(i) : no_part<T>(), lanes, is_log);
}

// The union of parts 0 .. count - 1, read by `load`: every warp for itself where there are few of
// them, the whole block together, by way of `slots`, where there are many. By every thread of the
// block; nobody else uses `slots` meanwhile.
template <typename T, typename Load>
__device__ __forceinline__ RowPart<T> merge_parts(int count, Load load, PartSlots<T> &slots,
                                                  bool is_log) {
  constexpr int kFewParts = 2 * kWarpThreads;
  const bool few = count <= kFewParts;
  const int lanes = few ? lanes_for(count) : kWarpThreads;
  const int stride = few ? lanes : static_cast<int>(blockDim.x);
  const int first = static_cast<int>(threadIdx.x) % stride;

  T max = -Limits<T>::infinity();
  for (int i = first; i < count; i += stride) max = fmax(max, load(i).max);
  // A reference for this lane or this warp.
  max = group_lanes_max(max, lanes);
  RowPart<T> row{max, T(0), {}};
  for (int i = first; i < count; i += stride) {
    RowPart<T> part = load(i);
    part.rescale(max);
    row.add(part);
  }
  row = group_lanes_sum(row, lanes, is_log);
  if (few) return row;

  __syncthreads();
  if (threadIdx.x % kWarpThreads == 0) *slots.at(threadIdx.x / kWarpThreads) = row;
  __syncthreads();
  return merge_warps(slots, is_log);
}

}  // namespace softmax
