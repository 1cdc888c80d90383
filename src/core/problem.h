// Plain values that pass between the layers: what is to be computed, on what, and how.
#pragma once

#include <cstddef>
#include <cstdint>

#include "softmax.h"

namespace softmax {

// A checked problem: rows x cols. Without features it is contiguous, the softmax axis innermost,
// and all there is to know; with some, a General (core/general.h) says the rest.
struct Problem {
  std::int32_t op = SOFTMAX_OP_SOFTMAX;
  std::int32_t x_dtype = SOFTMAX_DTYPE_F32;
  std::int32_t y_dtype = SOFTMAX_DTYPE_F32;
  std::int32_t empty_row = SOFTMAX_EMPTY_ROW_NAN;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::uint64_t flags = 0;
  std::uint64_t alignment = 0;
  std::uint32_t features = 0;  // Feature bits

  bool is_general() const { return features != 0; }
  bool is_log() const { return op == SOFTMAX_OP_LOGSOFTMAX; }
  bool empty_is_zero() const { return empty_row == SOFTMAX_EMPTY_ROW_ZERO; }
  bool has_work() const { return rows > 0 && cols > 0; }
};

struct Buffers {
  const void *x = nullptr;
  void *y = nullptr;
  void *workspace = nullptr;
  std::size_t workspace_bytes = 0;
};

// What the selector may know of a device; read once, when a handle is created.
struct DeviceCaps {
  bool is_cuda = false;
  std::int32_t ordinal = SOFTMAX_DEVICE_CPU;
  std::int32_t compute_capability = 0;  // 90 for sm_90; 0 on the CPU
  std::int32_t sm_count = 0;
  std::int32_t max_threads_per_sm = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t smem_per_block_bytes = 0;  // with the opt-in
  std::int64_t smem_per_sm_bytes = 0;
  char description[160] = {};  // one line for people
};

// How a kernel is launched: one plain value for every algorithm, comparable and printable. A field
// that means nothing to an algorithm is 0.
struct Policy {
  std::int32_t algo = SOFTMAX_ALGO_AUTO;
  std::int32_t threads_per_row = 0;
  std::int32_t rows_per_block = 0;
  std::int32_t vec_bytes = 0;
  std::int32_t packs = 0;  // 16-byte words of a row that a thread holds in registers
  // Few rows, where a thread holds one word: the lanes that would share a row, or a run of one,
  // with `packs` each, which is what the order of additions follows.
  std::int32_t few_lanes = 0;
  std::int32_t cluster = 0;
  std::int32_t row_blocks = 0;  // that share a row of slabs
  std::int32_t stages = 0;
  std::int32_t blocks_per_sm = 0;  // of a persistent grid; 0: a block for every rows_per_block rows
  std::int64_t slab_bytes = 0;     // of a row that are reduced as one
  std::int64_t smem_bytes = 0;
  std::int64_t workspace_bytes = 0;
};

inline bool operator==(const Policy &a, const Policy &b) {
  return a.algo == b.algo && a.threads_per_row == b.threads_per_row &&
         a.rows_per_block == b.rows_per_block && a.vec_bytes == b.vec_bytes && a.packs == b.packs &&
         a.few_lanes == b.few_lanes && a.cluster == b.cluster && a.row_blocks == b.row_blocks &&
         a.stages == b.stages && a.blocks_per_sm == b.blocks_per_sm &&
         a.slab_bytes == b.slab_bytes && a.smem_bytes == b.smem_bytes &&
         a.workspace_bytes == b.workspace_bytes;
}
inline bool operator!=(const Policy &a, const Policy &b) { return !(a == b); }

}  // namespace softmax
