// How COLUMN spreads rows that lie across memory: for host and device.
//
// What a thread takes at once is a quad: four elements that are neighbours in memory, which are
// four neighbouring rows at one position of the axis, or, where there are but two neighbouring rows
// (an inner extent of 2), both at two positions. Lane i of a quad is row i % quad_rows of them, at
// position i / quad_rows.
//
// The axis is cut into a part for each block of a cluster; in a part, thread t of those along the
// axis has the positions t, t + threads, ... Positions of a thread are added in their order, then
// threads in a binary tree over the bits of t, lowest first, then blocks likewise. A quad of two
// positions does the work of two such threads, the two that the tree joins first: nothing of this
// depends on what rows lie side by side, how many, or where.
#pragma once

#include <cstdint>

#include "core/exp.h"

namespace softmax {

constexpr int kQuad = 4;  // lanes

// A function of N, the type and the device.
struct ColumnShape {
  std::int32_t blocks;   // that share the axis
  std::int32_t threads;  // along the axis, of a block
  std::int32_t quads;    // that each of them holds

  // Of the axis, in a block.
  SOFTMAX_HD std::int64_t part() const { return std::int64_t{threads} * quads; }
};

constexpr int kColumnMostThreads = 512;  // of a block
constexpr int kColumnThreads = 256;      // rather
constexpr int kColumnPart = 1024;        // positions of a block, where clusters are large enough
// 64 bytes are what memory moves at once.
constexpr int kColumnWidthBytes = 64;
// Of a thread's elements, held in shared memory: a block's are 64 KB, for three of them to be on a
// multiprocessor.
constexpr int kColumnThreadBytes = 256;

constexpr std::int64_t kColumnStaticBytes = 1024;  // of a block's shared memory, beside the rest

// Of an element as it is held: 8-bit ones as 16-bit ones.
constexpr int column_held_size(int size) { return size < 2 ? 2 : size; }

constexpr ColumnShape column_shape(std::int64_t cols, int held_size, int most_blocks) {
  std::int64_t blocks = 1;
  while (blocks < most_blocks && (cols + blocks - 1) / blocks > kColumnPart) blocks *= 2;
  const std::int64_t part = (cols + blocks - 1) / blocks;
  const std::int64_t most_quads = kColumnThreadBytes / (kQuad * held_size);
  std::int64_t threads = 1;
  while (threads < kColumnMostThreads && threads * most_quads < part) threads *= 2;
  const std::int64_t quads = (part + threads - 1) / threads;
  return {static_cast<std::int32_t>(blocks), static_cast<std::int32_t>(threads),
          static_cast<std::int32_t>(quads < INT32_MAX ? quads : INT32_MAX)};
}

// Which rows a block takes: no order of additions depends on it.
struct ColumnTile {
  std::int64_t groups;        // of rows that a quad is of, in all
  std::int64_t inner;         // neighbouring rows
  std::int32_t inner_groups;  // in them
  std::int32_t quad_rows;     // 4 or 2
  std::int32_t width;         // groups of a block, a power of two
  // Whether quads are whole words of the tensor.
  bool x_is_whole;
  bool y_is_whole;
  bool mask_is_whole;

  SOFTMAX_HD int positions() const { return quad_rows == kQuad ? 1 : 2; }  // of a quad
  SOFTMAX_HD int rows() const { return width * quad_rows; }                // of a block
  SOFTMAX_HD int axis_threads(int shape_threads) const { return shape_threads / positions(); }
};

// The first row of a group, and how many it has; none past the last group.
struct ColumnRows {
  std::int64_t first;
  std::int32_t count;
};
SOFTMAX_HD ColumnRows column_rows(const ColumnTile &tile, std::int64_t group) {
  if (group >= tile.groups) return {0, 0};
  const auto inner_groups = static_cast<std::uint32_t>(tile.inner_groups);
  const std::int64_t outer = group >> 32 == 0 ? static_cast<std::uint32_t>(group) / inner_groups
                                              : group / tile.inner_groups;
  const std::int64_t within = (group - outer * tile.inner_groups) * tile.quad_rows;
  const std::int64_t left = tile.inner - within;
  return {outer * tile.inner + within,
          static_cast<std::int32_t>(left < tile.quad_rows ? left : tile.quad_rows)};
}

// The position of quad `quad` of thread `thread` along the axis, lane `lane`.
SOFTMAX_HD int column_position(const ColumnShape &shape, const ColumnTile &tile, int rank,
                               int thread, int quad, int lane) {
  return static_cast<int>(rank * shape.part()) + quad * shape.threads + thread * tile.positions() +
         (tile.positions() == 1 ? 0 : lane / 2);
}

// A block's dynamic shared memory, in bytes from its beginning.
struct ColumnRoom {
  std::int32_t numbers;  // of rows; the quads come before them
  std::int32_t parts;    // of rows' maxima and sums, by warps
  std::int32_t sent;     // the same, by the blocks of a cluster: twice
  std::int32_t sent_bytes;
  std::int32_t left;  // which rows are left for wide_row.cuh
  std::int32_t masks;
  std::int64_t bytes;
};

constexpr int kColumnNumbersBytes = 32;  // of a row
constexpr int kColumnPartBytes = 16;

// Parts of a row that a block's warps leave.
SOFTMAX_HD int column_parts(const ColumnShape &shape, const ColumnTile &tile) {
  const int threads = tile.axis_threads(shape.threads);
  if (tile.width >= 32) return threads;
  return threads * tile.width <= 32 ? 1 : threads * tile.width / 32;
}

inline ColumnRoom column_room(const ColumnShape &shape, const ColumnTile &tile, int held_size,
                              bool has_mask) {
  const std::int64_t rows = tile.rows();
  const std::int64_t quads =
      std::int64_t{tile.axis_threads(shape.threads)} * tile.width * shape.quads;
  const std::int64_t numbers = (quads * kQuad * held_size + 15) / 16 * 16;
  const std::int64_t parts = numbers + rows * kColumnNumbersBytes;
  const std::int64_t sent = parts + rows * column_parts(shape, tile) * kColumnPartBytes;
  const std::int64_t sent_bytes = shape.blocks > 1 ? rows * shape.blocks * kColumnPartBytes : 0;
  const std::int64_t left = sent + 2 * sent_bytes;
  const std::int64_t masks = left + (rows + 15) / 16 * 16;
  ColumnRoom room;
  room.numbers = static_cast<std::int32_t>(numbers);
  room.parts = static_cast<std::int32_t>(parts);
  room.sent = static_cast<std::int32_t>(sent);
  room.sent_bytes = static_cast<std::int32_t>(sent_bytes);
  room.left = static_cast<std::int32_t>(left);
  room.masks = static_cast<std::int32_t>(masks);
  room.bytes = masks + (has_mask ? quads * kQuad : 0);
  return room;
}

// The rows of a call, `inner` neighbouring ones at a time, but for the width of a tile and whether
// quads are words.
inline ColumnTile column_tile(const ColumnShape &shape, std::int64_t rows, std::int64_t inner) {
  ColumnTile tile = {};
  tile.inner = inner;
  tile.quad_rows = inner == 2 && shape.threads > 1 ? 2 : kQuad;
  const std::int64_t inner_groups = (inner + tile.quad_rows - 1) / tile.quad_rows;
  tile.inner_groups = static_cast<std::int32_t>(inner_groups);
  tile.groups = rows / inner * inner_groups;
  tile.width = 1;
  return tile;
}

// How wide a tile is: whole warps, no more than there are rows, in at most `most_bytes` of shared
// memory; 0 where there is no such width. Where that leaves multiprocessors without a block, tiles
// are as narrow as memory moves them well.
inline std::int32_t column_width(const ColumnShape &shape, ColumnTile tile, int held_size,
                                 bool has_mask, std::int64_t most_bytes, int multiprocessors) {
  const int threads = tile.axis_threads(shape.threads);
  const auto is_too_large = [&] {
    return column_room(shape, tile, held_size, has_mask).bytes > most_bytes;
  };
  // Whether a row of the tile is as long in memory as it has to be.
  const auto is_wide = [&](int width) {
    return width * kQuad * held_size >= kColumnWidthBytes || width >= tile.inner_groups;
  };
  while (2 * tile.width * threads <= kColumnThreads / 2) tile.width *= 2;
  // Small blocks leave less shared memory over; larger ones are for length.
  while (tile.width * kQuad * held_size < 2 * kColumnWidthBytes &&
         2 * tile.width * threads <= kColumnThreads) {
    tile.width *= 2;
  }
  while (!is_wide(tile.width) && 2 * tile.width * threads <= kColumnMostThreads) tile.width *= 2;
  while (tile.width / 2 * threads >= 32) {
    const std::int64_t blocks = (tile.groups + tile.width - 1) / tile.width * shape.blocks;
    const bool is_idle = blocks < 2 * std::int64_t{multiprocessors} && is_wide(tile.width / 2);
    if (!is_idle && tile.width / 2 < tile.groups && !is_too_large()) break;
    tile.width /= 2;
  }
  return is_too_large() ? 0 : tile.width;
}

}  // namespace softmax
