// GRID for many rows: how a row is shared out, and the order in which a warp's runs take their
// turns in its slots.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/grid_schedule.h"
#include "core/slabs.h"
#include "support/catch.h"

namespace softmax_test {
namespace {

using softmax::GridShape;

constexpr int kMultiprocessors[] = {1, 2, 24, 114, 132, 148};
constexpr int kRows[] = {1, 5, 12, 13, 128, 4096};

// Every block's slabs, as the kernel shares them out.
int slabs_of(std::int64_t slabs, int rank, int blocks) {
  return static_cast<int>(slabs * (rank + 1) / blocks - slabs * rank / blocks);
}

// A team that lags, with nothing in it but how far its blocks are. Each does what it may, in an
// order made of `seed`. Returns by how many rows, at most, one is sent before another block has
// read it: so many rows' messages are on their way.
int most_rows_on_their_way(int blocks, int rows, std::uint32_t seed) {
  struct Block {
    int posted = 0, sent = 0, read = 0, written = 0;
    std::vector<int> of;  // of the row that is read: the other blocks' parts
  };
  std::vector<Block> team(blocks);
  for (Block &block : team) block.of.assign(blocks, 0);
  int most = 0;
  for (int done = 0; done < blocks;) {
    seed = seed * 1664525u + 1013904223u;
    const int who = static_cast<int>(seed >> 16) % blocks;
    const int other = static_cast<int>(seed >> 8 & 0xff) % blocks;
    Block &block = team[who];
    switch (seed >> 28 & 3) {
      case 0:  // the workers take a row when they have written the last one that may not wait
        if (block.posted < rows && block.posted - block.written <= softmax::kLaggedRows) {
          ++block.posted;
        }
        break;
      case 1:  // the last warp sends the row that it reads, and those that are posted meanwhile
        if (block.sent < block.posted && block.sent - block.read <= softmax::kLaggedRows) {
          for (const Block &reader : team) {
            const int behind = block.sent - reader.of[who] + 1;
            if (behind > most) most = behind;
          }
          ++block.sent;
        }
        break;
      case 2:  // and reads a part of it
        if (block.read < block.sent && block.of[other] == block.read &&
            team[other].sent > block.read) {
          ++block.of[other];
        }
        if (block.read < rows && std::all_of(block.of.begin(), block.of.end(),
                                             [&](int parts) { return parts > block.read; })) {
          ++block.read;
        }
        break;
      default:
        if (block.written < block.read &&
            (block.posted > block.written + softmax::kLaggedRows || block.posted == rows)) {
          if (++block.written == rows) ++done;
        }
    }
  }
  return most;
}

// What a slot holds, and what a copy brings.
struct Run {
  int row = -1;
  int slab = -1;
  bool operator==(const Run &other) const { return row == other.row && slab == other.slab; }
};

// The kernel's order of things with nothing in it but which run is where.
class Warp {
 public:
  Warp(int slabs, int slots, int rows)
      : slabs_(slabs), again_(softmax::runs_read_again(slabs, slots)), rows_(rows), held_(slots) {
    for (int slot = 0; slot < slots; ++slot) refill(slot);
  }

  // Where it goes wrong, or nothing.
  std::string run() {
    for (int row = 0; row < rows_; ++row) {
      for (int slab = 0; slab < slabs_; ++slab) {
        const int slot = next_copy();
        if (slot < 0 || !(held_[slot] == Run{row, slab})) return "another run than the part's";
        if (slab < again_ || slab == slabs_ - 1) {
          refill(slot);
        } else {
          waiting_.push(slot);
        }
      }
      // While the row's parts meet, something is on its way: the last row has nothing to come.
      if (row + 1 < rows_ && filling_.count() == 0) return "no copy under way";
      for (int slab = slabs_ - 2; slab >= 0; --slab) {
        const int slot = slab >= again_ ? waiting_.pop() : next_copy();
        if (slot < 0 || !(held_[slot] == Run{row, slab})) return "another run than the output's";
        refill(slot);
      }
    }
    return filling_.count() == 0 && copies_ == rows_ * (slabs_ + again_) ? "" : "copies left over";
  }

 private:
  void refill(int slot) {
    held_[slot] = Run();
    if (copies_ == rows_ * (slabs_ + again_)) return;
    const int row = copies_ / (slabs_ + again_);
    const int step = copies_ % (slabs_ + again_);
    ++copies_;
    held_[slot] = {row, softmax::slab_of_copy(step, slabs_, again_)};
    filling_.push(slot);
  }
  int next_copy() { return filling_.count() == 0 ? -1 : filling_.pop(); }

  int slabs_, again_, rows_;
  int copies_ = 0;
  std::vector<Run> held_;
  softmax::SlotQueue filling_;
  softmax::SlotStack waiting_;
};

}  // namespace

TEST_CASE("a warp of GRID finds every run in the slot that it looks in", "[slabs]") {
  for (int slots = 2; slots <= softmax::kMostGridSlots; ++slots) {
    for (int slabs = 1; slabs <= softmax::kMostBlockSlabs; ++slabs) {
      for (const int rows : {1, 2, 3, 20}) {
        INFO(slots << " slots, " << slabs << " slabs, " << rows << " rows");
        CHECK(Warp(slabs, slots, rows).run() == "");
      }
    }
  }
}

TEST_CASE("runs of GRID are read again only where they find no slot", "[slabs]") {
  CHECK(softmax::runs_read_again(1, 3) == 0);
  CHECK(softmax::runs_read_again(3, 3) == 0);
  CHECK(softmax::runs_read_again(4, 3) == 1);
  CHECK(softmax::runs_read_again(8, 3) == 5);
}

TEST_CASE("blocks of GRID share a row as evenly as its slabs allow and all find room", "[slabs]") {
  for (const int multiprocessors : kMultiprocessors) {
    for (std::int64_t slabs = 2; slabs <= 1024; ++slabs) {
      for (const int rows : kRows) {
        const GridShape shape =
            softmax::grid_shape(slabs, rows, multiprocessors, slabs % 2 == 0 ? 3 : 2);
        INFO(slabs << " slabs, " << rows << " rows, " << multiprocessors << " multiprocessors");
        const bool is_too_long = slabs > std::int64_t{multiprocessors} * softmax::kMostBlockSlabs;
        CHECK((shape.row_blocks == 0) == is_too_long);
        if (is_too_long) continue;
        CHECK((shape.teams >= 1 && shape.teams * shape.row_blocks <= multiprocessors));
        int most = 0, least = softmax::kMostBlockSlabs;
        for (int rank = 0; rank < shape.row_blocks; ++rank) {
          const int own = slabs_of(slabs, rank, shape.row_blocks);
          if (own > most) most = own;
          if (own < least) least = own;
        }
        CHECK((least >= 1 && most <= softmax::kMostBlockSlabs && most - least <= 1));
        // None is read again that need not be.
        const int slots = slabs % 2 == 0 ? 3 : 2;
        CHECK((most <= slots || most == softmax::ceil_div(slabs, multiprocessors)));
      }
    }
  }
}

TEST_CASE("rows of GRID keep as many multiprocessors at work as they can", "[slabs]") {
  // With slots for two rows none lags.
  const auto shape = [](std::int64_t slabs, int slots = 3) {
    return softmax::grid_shape(slabs, 1000, 132, slots);
  };
  // Teams that leave next to nothing over.
  CHECK((shape(64).row_blocks == 64 && shape(64).teams == 2));
  CHECK((shape(32).row_blocks == 32 && shape(32).teams == 4));
  CHECK((shape(128).row_blocks == 128 && shape(128).teams == 1));
  // Two slabs a block: 13 teams of 10 instead of 6 of 19, but not if those need not wait; or the
  // one team that there is room for.
  CHECK((shape(19, 2).row_blocks == 10 && shape(19, 2).teams == 13));
  CHECK((shape(19).row_blocks == 19 && shape(19).teams == 6));
  CHECK((shape(256).row_blocks == 128 && shape(256).teams == 1));
  // Three, and more than find slots to wait in.
  CHECK((shape(70).row_blocks == 24 && shape(70).teams == 5));
  CHECK((shape(512).row_blocks == 128 && shape(512).teams == 1));
}

TEST_CASE("a block of GRID has room for its slots and its meeting", "[slabs]") {
  constexpr std::int64_t kBlockBytes = 232448;  // compute capability 9.0
  for (const int accumulator : {4, 8}) {
    for (const int packs : {4, 8}) {
      for (int warps = 1; warps <= softmax::kGridStreamWarps; ++warps) {
        constexpr std::int64_t kSlabs = 128;
        const int slots = softmax::grid_slots(kBlockBytes, kSlabs, accumulator, packs, warps);
        CHECK((slots >= 3 && slots <= softmax::kMostGridSlots));
        CHECK(softmax::grid_meeting_bytes(accumulator) +
                  softmax::grid_row_bytes(kSlabs, accumulator) +
                  softmax::grid_slots_bytes(packs, warps, slots) <=
              kBlockBytes);
      }
    }
  }
  CHECK(softmax::grid_slots(48 << 10, 128, 4, 8, 16) == 0);
  CHECK(softmax::grid_slots(1024, 128, 4, 8, 16) == 0);
}

TEST_CASE("messages of some rows' parts fill whole lines", "[slabs]") {
  for (const int accumulator : {4, 8}) {
    for (std::int64_t slabs = 2; slabs <= 1024; ++slabs) {
      const std::int64_t bytes = softmax::team_message_bytes(slabs, accumulator);
      CHECK(bytes % 128 == 0);
      CHECK(bytes >= softmax::kMessageRows * 2 * slabs * softmax::part_bytes(accumulator));
    }
  }
}

TEST_CASE("no row of GRID's messages is written over before all have read it", "[slabs]") {
  int most = 0;
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    for (const int blocks : {2, 3, 5}) {
      most = std::max(most, most_rows_on_their_way(blocks, 40, seed));
    }
  }
  // And as many are on their way as grid_lagged.cuh says.
  CHECK(most == 6);
  CHECK(most <= softmax::kMessageRows);
}

}  // namespace softmax_test
