// GRID with rows on their way: how many blocks share a row, and in which order a warp goes over its
// runs and the slots that they come in. For host and device alike.
//
// A block has `count` slabs of a row, and each of its warps a run of every one. First a warp takes
// the runs' parts, from slab 0 on; when the row's parts have met it writes the runs, from the last
// slab back:
//
//   the last slab's    waits in registers; its slot is filled again at once
//   those before it    wait in their slots, as many as leave one slot to be filled meanwhile
//   the first ones     are read again, the latest first: those are likeliest to be in L2 still
//
// A slot is filled with what comes next as soon as it is done with, so the order of the copies is
// that of their use: the runs of slabs 0, 1, ..., count - 1, then those that are read again, then
// the next row's.
#pragma once

#include <cstdint>

#include "core/exp.h"
#include "core/slabs.h"

namespace softmax {

constexpr int kGridStreamWarps = 16;  // of a block, at most
// Slabs of a row that a block may have, slots of a warp, and bytes of all parts of a row, at most.
constexpr int kMostBlockSlabs = 8;
constexpr int kMostGridSlots = 8;
constexpr std::int64_t kMostRowPartBytes = 16384;

// ---- whether, and who shares a row ----

// Of a block's shared memory, beside the slots: the parts of its runs, barriers, and what they are
// rounded to; and all parts of a row.
constexpr std::int64_t grid_meeting_bytes(int accumulator_bytes) {
  return (kMostBlockSlabs + 1) * kGridStreamWarps * part_bytes(accumulator_bytes) + 512;
}
constexpr std::int64_t grid_row_bytes(std::int64_t slabs, int accumulator_bytes) {
  return slabs * part_bytes(accumulator_bytes);
}
constexpr std::int64_t grid_slots_bytes(int packs, int warps, int slots) {
  return warps * ring_bytes(stream_slot_bytes(packs), slots);
}
// Slots of a warp that such a block has room for.
constexpr int grid_slots(std::int64_t block_bytes, std::int64_t slabs, int accumulator_bytes,
                         int packs, int warps) {
  const std::int64_t bytes = block_bytes - grid_meeting_bytes(accumulator_bytes) -
                             grid_row_bytes(slabs, accumulator_bytes);
  const std::int64_t slots = bytes / grid_slots_bytes(packs, warps, 1);
  return static_cast<int>(slots < 0 ? 0 : slots < kMostGridSlots ? slots : kMostGridSlots);
}

struct GridShape {
  std::int32_t row_blocks = 0;  // 0: there is none
  std::int32_t teams = 0;       // of so many blocks, at once
};

constexpr std::int64_t most_grid_slabs(int accumulator_bytes) {
  return kMostRowPartBytes / part_bytes(accumulator_bytes);
}

// Whether a row is written when two more have been taken, so that nobody waits while a row's parts
// meet (grid_lagged.cuh): where a block has one slab, and a warp slots for two runs that wait and
// one that comes. With two slabs a block one row can lag, not two, and its parts are too many for
// one warp to merge in that time: 0.44 of copy speed at N = 2^22 in float32, without lagging 0.66.
constexpr int kLaggedRows = 2;
constexpr bool can_lag(std::int64_t slabs, std::int64_t row_blocks, int slots) {
  return slabs == row_blocks && slots > kLaggedRows;
}

// What takes the fewest steps, a step being a slab of every block; of equals, or nearly so, what
// has fewer slabs a block. Where blocks do not lag their steps take longer, since they wait for
// every row. What "nearly" is, 0.95 and 0.8, was not measured.
constexpr GridShape grid_shape(std::int64_t slabs, std::int64_t rows, int resident, int slots) {
  GridShape best;
  double best_steps = 0.0;
  bool best_lags = false;
  const std::int64_t least = ceil_div(slabs, resident);
  // Beyond `slots` runs some are read again: no choice, but where the row is so long.
  for (std::int64_t each = least; each <= kMostBlockSlabs && (each == least || each <= slots);
       ++each) {
    const std::int64_t blocks = ceil_div(slabs, each);
    const std::int64_t teams = resident / blocks;
    const double steps = double(ceil_div(rows, teams)) * double(each);
    const bool lags = can_lag(slabs, blocks, slots);
    if (best.row_blocks != 0 && steps > (best_lags && !lags ? 0.8 : 0.95) * best_steps) continue;
    best.row_blocks = static_cast<std::int32_t>(blocks);
    best.teams = static_cast<std::int32_t>(teams);
    best_steps = steps;
    best_lags = lags;
  }
  return best;
}

// ---- a warp's runs ----

// Of the first slabs of a block, how many runs find no slot to wait in.
SOFTMAX_HD constexpr int runs_read_again(int count, int slots) {
  return count > slots ? count - slots : 0;
}

// The slab, from the block's first on, of a row's copy number `step`, of count + again.
SOFTMAX_HD constexpr int slab_of_copy(int step, int count, int again) {
  return step < count ? step : count + again - 1 - step;
}

// Slots in some order, half a byte each: first in, first out for those that are being filled, and
// last in, first out for those whose runs wait.
class SlotQueue {
 public:
  SOFTMAX_HD void push(int slot) {
    slots_ |= static_cast<std::uint32_t>(slot) << (4 * count_);
    ++count_;
  }
  SOFTMAX_HD int pop() {
    const int slot = static_cast<int>(slots_ & 15);
    slots_ >>= 4;
    --count_;
    return slot;
  }
  SOFTMAX_HD int count() const { return count_; }

 private:
  std::uint32_t slots_ = 0;
  int count_ = 0;
};
class SlotStack {
 public:
  SOFTMAX_HD void push(int slot) { slots_ = slots_ << 4 | static_cast<std::uint32_t>(slot); }
  SOFTMAX_HD int pop() {
    const int slot = static_cast<int>(slots_ & 15);
    slots_ >>= 4;
    return slot;
  }

 private:
  std::uint32_t slots_ = 0;
};

// ---- the parts' messages ----

// Words of a part as it travels through global memory, of which each carries 32 bits of it and the
// number of the row; and how far apart the parts' equal words lie: whole lines.
constexpr int message_words(int accumulator_bytes) {
  return static_cast<int>(part_bytes(accumulator_bytes)) / 4;
}
SOFTMAX_HD constexpr std::int64_t message_pitch(std::int64_t slabs) {
  constexpr std::int64_t kLineWords = kLineBytes / 8;
  return (slabs + kLineWords - 1) / kLineWords * kLineWords;
}
// Of a team: so many rows' messages. See grid_lagged.cuh for why they are enough.
constexpr int kMessageRows = 8;
constexpr std::int64_t team_message_bytes(std::int64_t slabs, int accumulator_bytes) {
  return kMessageRows * message_words(accumulator_bytes) * message_pitch(slabs) * 8;
}

}  // namespace softmax
