// How rows are laid out over registers, and how they get there: what the policies of WARP and
// BLOCK, the launch and the kernels must agree on. A pack is 16 bytes of input; a thread holds
// `packs` of a row.
#pragma once

#include <cstdint>

#include "core/exp.h"

namespace softmax {

constexpr int kHeldPackBytes = 16;

// WARP: threads of a block, and rows that each lane takes part in: four packs a lane are under way
// whatever N is, or more where one row has more.
constexpr int kWarpBlockThreads = 128;
constexpr int warp_rows_a_lane(int packs) { return packs < 4 ? 4 / packs : 1; }
constexpr int kWarpMostPacks = 8;
// Lanes that share a row up to a line's length, and the only number of them that goes with this
// many packs; 0 where it depends on the row.
constexpr int kWarpLineLanes = 8;
constexpr int warp_only_lanes(int packs) {
  return packs == 2 ? kWarpLineLanes : packs == kWarpMostPacks ? 32 : 0;
}

// Lanes that share a row, and packs that each of them has room for.
struct RowShape {
  int lanes;
  int packs;  // a power of two; 0: more than a warp holds
};

// Rows of `words` words straight from memory, WARP's: few lanes a row and one pack a lane while
// rows are short: neighbouring lanes then touch neighbouring packs of one row after another. From 8
// lanes, which is a whole line, on it is cheaper to take more packs a lane than to reduce over more
// lanes.
constexpr RowShape line_shape(std::int64_t words) {
  if (words > 32 * kWarpMostPacks) return {32, 0};
  int lanes = 1;
  int packs = 1;
  while (lanes < kWarpLineLanes && lanes < words) lanes *= 2;
  while (packs < 4 && lanes * packs < words) packs *= 2;
  while (lanes < 32 && lanes * packs < words) lanes *= 2;
  while (lanes * packs < words) packs *= 2;
  return {lanes, packs};
}

// Rows of whole words that line_shape leaves a part of the lanes' packs of idle: below so much it
// has cost more than a tenth of a copy's speed. Up to a line's length what is idle is lanes, a
// quarter or an eighth of them.
constexpr bool is_ragged(std::int64_t words) {
  const RowShape shape = line_shape(words);
  const std::int64_t room = std::int64_t{shape.lanes} * shape.packs;
  return words < kWarpLineLanes ? words < room : 10 * words < 7 * room;
}

// Rows of odd length, of which a lane of WARP or TILE has every `lanes`-th element. They come to
// registers from shared memory, mostly: there nothing is gained by neighbouring lanes having
// neighbouring elements, and the fewer lanes share a row the less is reduced and left idle.
constexpr RowShape unit_shape(std::int64_t cols, int x_bytes) {
  const int pack_cols = kHeldPackBytes / x_bytes;
  const std::int64_t words = cols / pack_cols + (cols % pack_cols != 0 ? 1 : 0);
  if (words > 32 * kWarpMostPacks) return {32, 0};
  int packs = 1;
  while (packs < kWarpMostPacks && packs < words) packs *= 2;
  int lanes = 1;
  while (lanes * packs < words) lanes *= 2;
  return {lanes, packs};
}

// Packs of a lane that have elements of such a row.
constexpr int used_packs(std::int64_t cols, int x_bytes, int lanes) {
  const int step = lanes * (kHeldPackBytes / x_bytes);
  return static_cast<int>((cols + step - 1) / step);
}

// TILE: threads of a block, at most, and tiles of a block.
constexpr int kTileThreads = 128;
constexpr int kMostTiles = 4;

// BLOCK: up to this many threads hold four packs each and leave room for three blocks on a
// multiprocessor; longer rows take twice as many packs, or, where 16-bit values are held as float32
// and eight packs of them are too many, twice the threads.
// Sixteen-bit rows of words turn to eight packs at half the threads: an element costs little there,
// and the merging of warps is shared by twice as many.
constexpr int block_most_threads_of_four(int x_bytes, bool widened, bool by_units) {
  return widened ? 1024 : (x_bytes == 2 && !by_units ? 256 : 512);
}
constexpr int block_most_packs(bool widened) { return widened ? 4 : 8; }
constexpr int block_most_threads(int packs, bool widened) {
  return packs > 4 || widened ? 1024 : 512;
}

// Few rows: a block has one, and a thread one word of it. The order of additions stays that of the
// packs and lanes that WARP or BLOCK would have: rows this short have BLOCK's runs of four packs.
// Longer ones are sooner done by fewer threads that hold more.
constexpr int kFewMostWords = 256;
constexpr int kFewBlockPacks = 4;
// Shared memory: a thread's terms, and in log-softmax how many equal the maximum; a block's maxima
// of warps and parts of runs.
constexpr int few_slot_bytes(int x_bytes, int accumulator_bytes, bool is_log) {
  return (kHeldPackBytes / x_bytes + (is_log ? 1 : 0)) * accumulator_bytes;
}
constexpr int few_fixed_bytes(int accumulator_bytes) {
  return (32 + kFewMostWords / 32 / kFewBlockPacks * 4) * accumulator_bytes;
}

// The way between memory and registers.
enum class RowAccess {
  kWords,   // a row is aligned 16-byte words
  kUnits,   // element by element, neighbouring lanes taking neighbouring ones
  kWindow,  // a row lies in such words, anywhere: see held_window.h
};

// Whether a row has a length of whole words. It decides which columns a lane has, and with them the
// order of additions.
SOFTMAX_HD constexpr bool is_whole_words(std::int64_t cols, int x_bytes) {
  return cols % (kHeldPackBytes / x_bytes) == 0;
}

// TILE's rows of whole words, of which a lane has every `lanes`-th word. Shared memory serves words
// of 16 bytes to this many lanes at a time, from as many columns of banks.
constexpr int kBankWords = 8;
// As unit_shape, but with so many lanes a row that rows one after another, or as far apart as
// row_spread_bits says, have their words in different columns, or two of them at most in the same
// one: more lanes would cost more than that does. Rows of up to four words are a lone lane's, and
// meet where they are two or four.
constexpr RowShape tile_shape(std::int64_t cols, int x_bytes) {
  RowShape shape = unit_shape(cols, x_bytes);
  if (!is_whole_words(cols, x_bytes) || shape.packs < kWarpMostPacks) return shape;
  const std::int64_t words = cols * x_bytes / kHeldPackBytes;
  while (shape.lanes < kBankWords && words % (4 * shape.lanes) == 0) shape.lanes *= 2;
  return shape;
}
// Bytes of a row that its lanes read at once and others' rows must keep clear of.
constexpr int lanes_bytes(std::int64_t cols, int x_bytes, int lanes) {
  if (!is_whole_words(cols, x_bytes)) return lanes * x_bytes;
  return lanes < kBankWords ? lanes * kHeldPackBytes : 0;
}

// Rows of odd length begin anywhere in a word. They go element by element, four or more loads
// instead of one, which is less than what a window takes, but for long ones of two bytes an
// element: those find too few threads for that. Of the other two ways the address decides, and
// every lane has the same columns, canonically.
constexpr std::int64_t kMostHalfUnits =
    16384;  // N = 16383: 0.73 of copy speed; in windows 16385: 0.81
SOFTMAX_HD constexpr bool goes_by_units(std::int64_t cols, int x_bytes) {
  return !is_whole_words(cols, x_bytes) && (x_bytes > 2 || cols <= kMostHalfUnits);
}
constexpr RowAccess row_access(std::int64_t cols, int x_bytes, std::uintptr_t x, std::uintptr_t y) {
  if (goes_by_units(cols, x_bytes)) return RowAccess::kUnits;
  if (!is_whole_words(cols, x_bytes)) return RowAccess::kWindow;
  return (x | y) % kHeldPackBytes == 0 ? RowAccess::kWords : RowAccess::kWindow;
}

// Whether rows of such a length always lie in windows. Those are up to a word longer than the row,
// for which there is room then.
SOFTMAX_HD constexpr bool is_always_window(std::int64_t cols, int x_bytes) {
  return !is_whole_words(cols, x_bytes) && !goes_by_units(cols, x_bytes);
}
// Words that a warp's run of a long row has, where each lane has so many packs.
SOFTMAX_HD constexpr int run_words(int packs, std::int64_t cols, int x_bytes) {
  return 32 * packs - (is_always_window(cols, x_bytes) ? 1 : 0);
}

// Sixteen-bit values for 16-bit results are held as float32 by TILE, and by WARP where they come
// element by element: in twice the registers and with fewer instructions than words. Where a row
// has several warps they must be many, to have enough on their way.
constexpr bool is_half_to_half(int x_bytes, int y_bytes) { return x_bytes == 2 && y_bytes == 2; }

}  // namespace softmax
