// The dynamic shared memory of a block that holds dense rows, where its warps tell each other of
// their parts. For host and device.
#pragma once

#include <cstdint>

namespace softmax {

constexpr int kExchangeBarrierBytes = 16;
constexpr int kRowPieceBytes = 32;  // what a warp tells of its part of a row, at most

// Of so many parts that meet.
constexpr std::int64_t exchange_bytes(std::int64_t parts) {
  return kExchangeBarrierBytes + parts * kRowPieceBytes;
}

}  // namespace softmax
