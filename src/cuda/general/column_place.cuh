// Where a thread of COLUMN is: which rows it has, and which positions of the axis.
#pragma once

#include "cuda/general/args.h"
#include "cuda/general/element.cuh"

namespace softmax {

struct ColumnPlace {
  __device__ __forceinline__ explicit ColumnPlace(const GeneralArgs &arguments)
      : args(arguments),
        rank(static_cast<int>(blockIdx.x % args.row_blocks)),
        first_group(std::int64_t{blockIdx.x / args.row_blocks} * args.tile.width),
        group(static_cast<int>(threadIdx.x) & (args.tile.width - 1)),
        axis_thread(static_cast<int>(threadIdx.x) / args.tile.width),
        rows(column_rows(args.tile, first_group + group)) {}

  __device__ __forceinline__ int quad_rows() const { return args.tile.quad_rows; }
  __device__ __forceinline__ int row_of_lane(int i) const { return i & (quad_rows() - 1); }
  // Of a lane, among those of the block.
  __device__ __forceinline__ int tile_row(int i) const {
    return group * quad_rows() + row_of_lane(i);
  }
  __device__ __forceinline__ int position(int quad) const {
    return column_position(args.column, args.tile, rank, axis_thread, quad, 0);
  }
  __device__ __forceinline__ int position_step(int i) const {  // of a lane
    return quad_rows() == kQuad ? 0 : i / 2;
  }
  __device__ __forceinline__ int cols() const { return static_cast<int>(args.layout().cols); }
  // Of the block's row `r`; -1 for none.
  __device__ __forceinline__ std::int64_t row_of(int r) const {
    const int place = quad_rows() == kQuad ? r / kQuad : r / 2;
    const ColumnRows rows = column_rows(args.tile, first_group + place);
    const int within = r & (quad_rows() - 1);
    return within < rows.count ? rows.first + within : -1;
  }

  // From one lane's element to the next, and from one quad's to the next.
  struct Steps {
    std::int64_t row, axis;
  };
  __device__ __forceinline__ Steps steps(int tensor) const {
    const Layout &layout = args.layout();
    return {layout.stride[tensor][layout.dims - 1], layout.axis_stride[tensor]};
  }
  __device__ __forceinline__ std::int64_t lane_offset(const Steps &s, int i) const {
    return row_of_lane(i) * s.row + position_step(i) * s.axis;
  }

  // The factor of x, of a row, or without row_scale of any.
  __device__ __forceinline__ double scale_of(std::int64_t row) const {
    const float *const row_scale = args.buffers.row_scale;
    return row_scale == nullptr || row < 0 ? args.general.scale
                                           : args.general.scale * double(row_scale[row]);
  }

  const GeneralArgs &args;
  int rank;                  // of the block in its cluster
  std::int64_t first_group;  // of the block
  int group;                 // within the block
  int axis_thread;
  ColumnRows rows;
};

}  // namespace softmax
