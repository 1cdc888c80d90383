// How a row is cut into slabs, and what a block of the slab kernels needs of shared memory. A
// function of N and the types alone: the cut decides the order of additions.
#pragma once

#include <cstdint>

namespace softmax {

struct Slabs {
  std::int32_t cols = 0;   // of a slab; the last one may have fewer
  std::int32_t count = 0;  // in a row
};

constexpr std::int64_t kSlabColsMultiple = 16;  // every slab of a row is aligned as the row is

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t multiple) {
  return ceil_div(a, multiple) * multiple;
}

// Slabs as equal as can be, of at most `slab_bytes` (and a little: the rounding).
constexpr Slabs cut_row(std::int64_t cols, int element_bytes, std::int64_t slab_bytes) {
  const std::int64_t wanted = ceil_div(cols * element_bytes, slab_bytes);
  const std::int64_t width = round_up(ceil_div(cols, wanted), kSlabColsMultiple);
  return {static_cast<std::int32_t>(width), static_cast<std::int32_t>(ceil_div(cols, width))};
}

// A slot holds a range at any offset from a 16-byte boundary.
constexpr std::int64_t slot_bytes(std::int64_t range_bytes) {
  return round_up(range_bytes + 16, 128);
}

// max, ones, and the sum in two parts: PartSum of the accumulator type.
constexpr std::int64_t part_bytes(int accumulator_bytes) { return 4 * accumulator_bytes; }

// Slots, their barriers, two barriers for the exchange, and two rows' parts (CLUSTER).
constexpr std::int64_t slab_smem_bytes(std::int64_t slot, int slots, std::int64_t parts_bytes) {
  return slot * slots + round_up(8 * (slots + 2), 32) + parts_bytes;
}

// TILE: whole rows that fill about `tile_bytes`, a multiple of what the block takes at once where
// that is not too many.
constexpr std::int64_t tile_rows(std::int64_t row_bytes, std::int64_t tile_bytes, int at_once) {
  const std::int64_t fitting = tile_bytes / row_bytes;
  if (fitting < 1) return 1;
  return fitting < at_once ? fitting : fitting / at_once * at_once;
}

}  // namespace softmax
