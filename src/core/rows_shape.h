// What the policy, the launch and the kernels of the general call's dense rows must agree on.
#pragma once

#include <cstdint>

namespace softmax {

// Bytes of a row's inputs that a thread has on their way, at most, and of how many rows.
constexpr int kRowsAheadBytes = 128;
constexpr int kRowsMostStages = 4;
constexpr int rows_stages(int packs) {
  const int fit = kRowsAheadBytes / (packs * 16);
  return fit < 1 ? 1 : fit < kRowsMostStages ? fit : kRowsMostStages;
}

// Shared memory of a thread: what is on its way of x, and of a mask.
constexpr int rows_slot_bytes(int packs) { return rows_stages(packs) * packs * 16; }
constexpr int rows_mask_slot_bytes(int packs, int x_bytes, int mask_bytes) {
  return rows_stages(packs) * packs * (16 / x_bytes) * mask_bytes;
}

// Threads of a multiprocessor that have registers for so many elements each.
constexpr int rows_resident_threads(int values) { return values > 16 ? 512 : 1024; }

}  // namespace softmax
