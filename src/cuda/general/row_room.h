// What host and device must agree on of dense rows: the dynamic shared memory of a block, where its
// warps tell each other of their parts, and what clusters that stay hold (persistent_rows.cuh).
#pragma once

#include <cstdint>

namespace softmax {

constexpr int kExchangeBarrierBytes = 16;
constexpr int kRowPieceBytes = 32;  // what a warp tells of its part of a row, at most

// Of so many parts that meet.
constexpr std::int64_t exchange_bytes(std::int64_t parts) {
  return kExchangeBarrierBytes + parts * kRowPieceBytes;
}

constexpr int kPersistentValues = 32;  // of a thread
constexpr int kPersistentRegisters = 64;

}  // namespace softmax
