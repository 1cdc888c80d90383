// How rows are laid out over registers: what the policies of WARP and BLOCK and their kernels must
// agree on. A pack is 16 bytes of input; a thread holds `packs` of a row.
#pragma once

namespace softmax {

constexpr int kHeldPackBytes = 16;

// WARP: threads of a block, and rows that each lane takes part in: four packs a lane are under way
// whatever N is, or more where one row has more.
constexpr int kWarpBlockThreads = 128;
constexpr int warp_rows_a_lane(int packs) { return packs < 4 ? 4 / packs : 1; }
constexpr int kWarpMostPacks = 8;

// BLOCK: up to this many threads hold four packs each and leave room for three blocks on a
// multiprocessor; longer rows take twice as many packs, or, where 16-bit values are held as float32
// and eight packs of them are too many, twice the threads.
// Sixteen-bit rows turn to eight packs at half the threads: an element costs little there, and the
// merging of warps is shared by twice as many.
constexpr int block_most_threads_of_four(int x_bytes, bool widened) {
  return widened ? 1024 : (x_bytes == 2 ? 256 : 512);
}
constexpr int block_most_packs(bool widened) { return widened ? 4 : 8; }
constexpr int block_most_threads(int packs, bool widened) {
  return packs > 4 || widened ? 1024 : 512;
}

// Shared memory of one warp for rows at any address: a run of 32 lanes' packs, as they come in or
// as they go out, whichever is more. Beside it, its first byte is up to 15 past the beginning, and
// the last pack of a row is read whole.
constexpr int stage_bytes(int packs_a_lane, int x_bytes, int y_bytes) {
  return 32 * packs_a_lane * kHeldPackBytes * (y_bytes > x_bytes ? y_bytes / x_bytes : 1) +
         2 * kHeldPackBytes;
}

}  // namespace softmax
