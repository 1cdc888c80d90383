// The kernels as host code sees them: an address by stem and types, to hand to cudaLaunchKernel.
// Null for a pair of types that has none.
#pragma once

#include <cstdint>

#include "core/held_rows.h"

namespace softmax {

const void *naive_kernel_for(std::int32_t x_dtype, std::int32_t y_dtype);
const void *shared_kernel_for(std::int32_t x_dtype, std::int32_t y_dtype);
const void *shuffle_kernel_for(std::int32_t x_dtype, std::int32_t y_dtype);
const void *vector_kernel_for(std::int32_t x_dtype, std::int32_t y_dtype);
const void *online_kernel_for(std::int32_t x_dtype, std::int32_t y_dtype);
const void *warp_online_kernel_for(std::int32_t x_dtype, std::int32_t y_dtype);
const void *reference_kernel_for(std::int32_t x_dtype, std::int32_t y_dtype);

// WARP's and BLOCK's for few rows.
const void *few_kernel_for(std::int32_t x_dtype, std::int32_t y_dtype, bool is_log);

// TILE: see unit_shape; of the packs so many are some row's.
const void *tile_kernel_for(std::int32_t x_dtype, std::int32_t y_dtype, std::int32_t lanes,
                            std::int32_t packs, std::int32_t used_packs);

// Of a row in registers: `packs` 16-byte words a thread, and how the rows lie in memory.
const void *warp_kernel_for(std::int32_t x_dtype, std::int32_t y_dtype, std::int32_t packs,
                            RowAccess access);
const void *block_kernel_for(std::int32_t x_dtype, std::int32_t y_dtype, std::int32_t packs,
                             RowAccess access);
const void *cluster_kernel_for(std::int32_t x_dtype, std::int32_t y_dtype, std::int32_t packs,
                               RowAccess access);
const void *cluster_stream_kernel_for(std::int32_t x_dtype, std::int32_t y_dtype,
                                      std::int32_t packs, RowAccess access, bool is_log);
const void *grid_kernel_for(std::int32_t x_dtype, std::int32_t y_dtype, std::int32_t packs,
                            RowAccess access);
const void *grid_stream_kernel_for(std::int32_t x_dtype, std::int32_t y_dtype, std::int32_t packs,
                                   RowAccess access, bool is_log);
const void *grid_lagged_kernel_for(std::int32_t x_dtype, std::int32_t y_dtype, std::int32_t packs,
                                   RowAccess access, bool is_log);

}  // namespace softmax
