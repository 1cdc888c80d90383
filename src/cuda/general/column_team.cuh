// What COLUMN's threads of a row find in common: from lanes to the threads of a block, or of a
// cluster's blocks, in a binary tree that follows their place along the axis.
#pragma once

#include <cooperative_groups.h>

#include "cuda/general/column_place.cuh"
#include "cuda/general/row_team.cuh"
#include "cuda/prim/bulk.cuh"
#include "cuda/prim/reduce.cuh"

namespace softmax {

// What threads of a row find in common, and how two of them become one.
struct ColumnMax {
  float max;

  static __device__ __forceinline__ ColumnMax none() { return {-Limits<float>::infinity()}; }
  __device__ __forceinline__ ColumnMax with(const ColumnMax &other) const {
    return {max_or_nan(max, other.max)};
  }
  __device__ __forceinline__ ColumnMax from_lane(int step) const {
    return {__shfl_xor_sync(kFullWarp, max, step)};
  }
};
struct alignas(kColumnPartBytes) ColumnSums : RowSums {
  static __device__ __forceinline__ ColumnSums none() { return {{0.0, 0.0f}}; }
  __device__ __forceinline__ ColumnSums with(const ColumnSums &other) const {
    return {{others + other.others, ones + other.ones}};
  }
  __device__ __forceinline__ ColumnSums from_lane(int step) const {
    return {{__shfl_xor_sync(kFullWarp, others, step), __shfl_xor_sync(kFullWarp, ones, step)}};
  }
};

class ColumnTeam {
 public:
  __device__ __forceinline__ ColumnTeam(const GeneralArgs &args, const ColumnPlace &place,
                                        unsigned char *room)
      : args_(args), place_(place), room_(room) {}

  // By every thread, first of all: nobody writes to another block's shared memory before that
  // block is there.
  __device__ __forceinline__ void arrive() const {
#if SOFTMAX_BULK_COPY
    if (args_.row_blocks > 1) cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_relaxed);
#endif
  }

  // From lanes to the block's or the cluster's threads: `finish` is called for each of the block's
  // rows by one thread, and what it writes is there for all when this returns.
  template <typename V, typename Finish>
  __device__ __forceinline__ void reduce(V (&own)[kQuad], Finish finish) {
    const int width = args_.tile.width;
    if (place_.quad_rows() < kQuad) {
      own[0] = own[0].with(own[2]);
      own[1] = own[1].with(own[3]);
    }
#pragma unroll
    for (int step = 1; step < kWarpThreads; step *= 2) {
      if (step >= width) {
#pragma unroll
        for (int i = 0; i < kQuad; ++i) own[i] = own[i].with(own[i].from_lane(step));
      }
    }
    const int count = column_parts(args_.column, args_.tile);
    V *const parts = reinterpret_cast<V *>(room_ + args_.room.parts);
    const int thread = static_cast<int>(threadIdx.x);
    if (width >= kWarpThreads || thread % kWarpThreads < width) {
      const int part = width >= kWarpThreads ? place_.axis_thread : thread / kWarpThreads;
#pragma unroll
      for (int i = 0; i < kQuad; ++i) {
        if (i < place_.quad_rows()) parts[place_.tile_row(i) * count + part] = own[i];
      }
    }
    __syncthreads();
    V *from = parts;
    int from_count = count;
#if SOFTMAX_BULK_COPY
    if (args_.row_blocks > 1) {
      const auto cluster = cooperative_groups::this_cluster();
      // Two of them: who is one exchange ahead does not write where others still read.
      from = reinterpret_cast<V *>(room_ + args_.room.sent + exchange_ * args_.room.sent_bytes);
      from_count = args_.row_blocks;
      if (is_first_exchange_) cuda::ptx::barrier_cluster_wait(cuda::ptx::sem_acquire);
      for_rows(parts, count, [&](int r, int part, const V &all) {
        for (int to = part; to < from_count; to += count) {
          *cluster.map_shared_rank(&from[r * from_count + place_.rank], to) = all;
        }
      });
      cluster.sync();
      is_first_exchange_ = false;
      exchange_ ^= 1;
    }
#endif
    for_rows(from, from_count, [&](int r, int part, const V &all) {
      if (part == 0) finish(r, all);
    });
    __syncthreads();
  }

 private:
  // use(row, part, what its parts come to), by as many threads a row as it has parts.
  template <typename V, typename Use>
  __device__ __forceinline__ void for_rows(const V *parts, int count, Use use) const {
    const int all = args_.tile.rows() * count;
    const int threads = static_cast<int>(blockDim.x);
    const int shift = __popc(static_cast<unsigned>(count - 1));
#pragma unroll 1
    for (int first = 0; first < all; first += threads) {
      const int i = first + static_cast<int>(threadIdx.x);
      V value = i < all ? parts[i] : V::none();
#pragma unroll 1
      for (int step = 1; step < count; step *= 2) value = value.with(value.from_lane(step));
      if (i < all) use(i >> shift, i & (count - 1), value);
    }
  }

  const GeneralArgs &args_;
  const ColumnPlace &place_;
  unsigned char *room_;
  int exchange_ = 0;
  bool is_first_exchange_ = true;
};

}  // namespace softmax
