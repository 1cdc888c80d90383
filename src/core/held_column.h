// How COLUMN spreads rows that lie across memory over the registers of threads: for host and
// device.
//
// A thread has some neighbouring rows, its lanes, at the positions t, t + threads, ... of its
// block's part of the axis, t being its number along the axis. Which positions those are is a
// function of N and the device, and so is the order of additions: a thread's one after another,
// then the threads' sums by lanes of a warp (held_column_lanes), then the blocks'. How many lanes
// threads have, and how many threads are side by side, changes none of it.
#pragma once

#include "core/column_tile.h"
#include "core/dtype.h"
#include "core/features.h"
#include "core/problem.h"

namespace softmax {

// Positions of a thread that shares its rows, of elements of so many bytes: 128 bytes of two rows,
// or 64 bytes of four.
constexpr int held_positions(int size) { return size == 2 ? 32 : 16; }
constexpr int kHeldAlonePositions = 32;  // of one that has them alone
constexpr int kHeldTogether = 4;         // of them that are taken, and added, at a time
constexpr int kHeldAxisThreads = 512;    // of a block, along the axis
constexpr int kHeldMostThreads = 1024;   // of a block
constexpr int kHeldThreads = 256;        // rather
constexpr int kHeldFewThreads = 128;     // no fewer, where there are rows enough
// A run of the tensor that a block takes at a position. A copy of such tiles takes 1.07 times as
// long as cudaMemcpyAsync at 512^3 of float32 in runs of 64 bytes, and 1.01 in runs of 128; at
// 8192 x 8192 over axis 0 1.34 and 1.20 (an H200).
constexpr int kHeldRunBytes = 128;      // rather, where blocks stay small
constexpr int kHeldFewRunBytes = 64;    // and no less where blocks are few
constexpr int kHeldLeastRunBytes = 32;  // what memory moves at least

// Blocks of a cluster. More than eight are for who has them.
constexpr int column_most_blocks(int compute_capability) {
  if (compute_capability < 90) return 1;
  return compute_capability == 90 ? 16 : 8;
}

// Positions of a block, where clusters are large enough, of elements of so many bytes. On an H200,
// us with 256 and 512 (and 1024): 512^3 over axis 1 of float32 271 and 282, of bf16 149 and 147;
// 32 x 1000 x 784 63 and 60 (60), 39.6 and 36.9 (38.7).
constexpr std::int64_t held_column_part(std::int64_t cols, int size) {
  return size == 4 && cols <= 512 ? 256 : 512;
}

constexpr ColumnShape held_column_shape(std::int64_t cols, int size, int most_blocks) {
  if (cols <= kHeldAlonePositions) return {1, 1, static_cast<std::int32_t>(cols)};
  std::int64_t blocks = 1;
  const std::int64_t most = held_column_part(cols, size);
  while (blocks < most_blocks && (cols + blocks - 1) / blocks > most) blocks *= 2;
  const std::int64_t part = (cols + blocks - 1) / blocks;
  std::int64_t threads = 2;
  while (threads * held_positions(size) < part && threads < 2 * kHeldAxisThreads) threads *= 2;
  const std::int64_t quads = (part + threads - 1) / threads;
  return {static_cast<std::int32_t>(blocks), static_cast<std::int32_t>(threads),
          static_cast<std::int32_t>(quads < INT32_MAX ? quads : INT32_MAX)};
}

// Whether rows are held in registers: where they are short enough for that, and what is left to do
// for the kernel leaves room. No masks, no given statistics, no 16-bit terms for float32 results.
inline bool is_held_column(const Problem &p, int compute_capability) {
  constexpr std::uint32_t kNot =
      kFeatureGivenStats | kFeatureBoolMask | kFeatureCausalMask | kFeatureRowLength;
  if ((p.features & kNot) != 0) return false;
  if (dtype_size(p.x_dtype) < 4 && dtype_size(p.y_dtype) > 2) return false;
  const int most_blocks = column_most_blocks(compute_capability);
  const int most_threads = most_blocks == 1 ? kHeldAxisThreads / 2 : kHeldAxisThreads;
  const int size = dtype_size(p.x_dtype);
  const ColumnShape shape = held_column_shape(p.cols, size, most_blocks);
  return shape.threads == 1 ||
         (shape.threads <= most_threads && shape.quads <= held_positions(size));
}
// The sums that threads take of a row: of log-softmax and for statistics one apart from what equals
// the maximum.
struct HeldSums {
  bool apart;
  bool plain;

  SOFTMAX_HD int count() const { return int{apart} + int{plain}; }
};
inline HeldSums held_column_sums(const Problem &p) {
  const bool is_softmax = p.op == SOFTMAX_OP_SOFTMAX;
  return {!is_softmax || (p.features & kFeatureStatsOutputs) != 0, is_softmax};
}

// Of a quad: two, and of 8-bit elements four, but where two make words of it and four do not. Four
// of 16 bits would leave twice as many parts of rows to merge.
constexpr int held_column_lanes(const ColumnShape &shape, std::int64_t inner, int size) {
  const bool is_pair = inner % 4 != 0 && inner % 2 == 0;
  return size > 1 || shape.threads == 1 || is_pair ? 2 : 4;
}

// Which rows a block takes, but for the width.
constexpr ColumnTile held_column_tile(std::int64_t rows, std::int64_t inner, int lanes) {
  const std::int64_t inner_groups = (inner + lanes - 1) / lanes;
  ColumnTile tile = {};
  tile.inner = inner;
  tile.quad_rows = lanes;
  tile.inner_groups = static_cast<std::int32_t>(inner_groups);
  tile.groups = rows / inner * inner_groups;
  tile.width = 1;
  return tile;
}

// Lanes of a warp that merge a row's parts, four each where there are so many.
SOFTMAX_HD int held_column_mergers(int parts) {
  return parts <= 4 ? 1 : parts >= 128 ? 32 : parts / 4;
}

// A block's shared memory, in bytes from its beginning.
struct HeldColumnRoom {
  std::int32_t numbers;  // of rows
  std::int32_t stats;    // of rows
  std::int32_t own;      // of rows: their scales and sinks
  std::int32_t groups;   // where they are
  std::int32_t sent;     // parts of rows, by the blocks of a cluster
  std::int32_t parts;    // the same, by threads
  std::int32_t left;     // which rows are left for wide_row.cuh
  std::int32_t bytes;
  std::int32_t pitch;  // from a row's parts to the next one's
  std::int32_t sum;    // from the parts of a sum to those of another
  std::int32_t sent_sum;
};

constexpr int kHeldNumbersBytes = 16;
constexpr int kHeldStatsBytes = 32;
constexpr int kHeldPartBytes = 16;
constexpr int kHeldOwnBytes = 48;
constexpr int kHeldGroupBytes = 16;

SOFTMAX_HD HeldColumnRoom held_column_room(const ColumnShape &shape, const ColumnTile &tile,
                                           HeldSums sums) {
  const int rows = tile.rows();
  HeldColumnRoom room;
  // Neighbouring threads write to different banks, whether they are of one row or not.
  const int padding = tile.width >= 8 ? 1 : 8 / tile.width;
  room.pitch = shape.threads == 1 ? 1 : shape.threads + padding;
  room.sum = rows * room.pitch;
  room.sent_sum = shape.blocks > 1 ? rows * shape.blocks : 0;
  room.numbers = 0;
  room.stats = rows * kHeldNumbersBytes;
  room.own = room.stats + (sums.apart ? rows * kHeldStatsBytes : 0);
  room.groups = room.own + rows * kHeldOwnBytes;
  room.sent = room.groups + tile.width * kHeldGroupBytes;
  room.parts = room.sent + sums.count() * room.sent_sum * kHeldPartBytes;
  room.left = room.parts + sums.count() * room.sum * kHeldPartBytes;
  room.bytes = room.left + rows;
  return room;
}

// How many threads are side by side: whole warps, and runs of the tensor as long as memory moves
// them well; 0 where shared memory has no room for that.
inline std::int32_t held_column_width(const ColumnShape &shape, ColumnTile tile, int size,
                                      HeldSums sums, std::int64_t most_bytes, int multiprocessors) {
  const std::int64_t groups = tile.groups;
  const auto runs_are = [&](std::int64_t width, int bytes) {
    return width * tile.quad_rows * size >= bytes || width >= tile.inner_groups;
  };
  const auto threads_of = [&](std::int64_t width) { return width * shape.threads; };
  std::int64_t width = 1;
  while (threads_of(width) < kHeldFewThreads) width *= 2;
  while (!runs_are(width, kHeldRunBytes) && threads_of(2 * width) <= kHeldThreads) width *= 2;
  while (!runs_are(width, kHeldLeastRunBytes) && threads_of(2 * width) <= kHeldMostThreads) {
    width *= 2;
  }
  // No multiprocessor without a block, nor threads without rows.
  while (threads_of(width / 2) >= 32) {
    const std::int64_t blocks = (groups + width - 1) / width * shape.blocks;
    const bool is_idle =
        blocks < 2 * std::int64_t{multiprocessors} && runs_are(width / 2, kHeldFewRunBytes);
    if (!is_idle && width / 2 < groups) break;
    width /= 2;
  }
  tile.width = static_cast<std::int32_t>(width);
  while (tile.width > 0 && held_column_room(shape, tile, sums).bytes > most_bytes) {
    tile.width = threads_of(tile.width / 2) >= 32 ? tile.width / 2 : 0;
  }
  return tile.width;
}

}  // namespace softmax
