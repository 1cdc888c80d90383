// How rows are cut into slabs and runs: every column once, the cut by N and the type alone, and
// room for what a slot must hold.
#include <cstdint>
#include <set>

#include "core/slabs.h"
#include "core/window.h"
#include "support/catch.h"

namespace softmax_test {
namespace {

using softmax::Slabs;

constexpr std::int64_t kSlabBytes[] = {2048, 16384, 32768};
constexpr int kElementBytes[] = {1, 2, 4, 8};
constexpr std::int64_t kMostCols = std::int64_t{1} << 26;

std::int64_t next_cols(std::int64_t cols) { return cols + (cols < 20000 ? 1 : cols / 200); }

// Body(cols, element_bytes, slab_bytes, slabs) over everything a row may be.
template <typename Body>
void over_cuts(Body body) {
  for (const std::int64_t slab_bytes : kSlabBytes) {
    for (const int element_bytes : kElementBytes) {
      for (std::int64_t cols = 1; cols <= kMostCols; cols = next_cols(cols)) {
        body(cols, element_bytes, slab_bytes, softmax::cut_row(cols, element_bytes, slab_bytes));
      }
    }
  }
}

}  // namespace

TEST_CASE("slabs cover a row, each with columns of its own", "[slabs]") {
  std::int64_t cuts = 0, uncovered = 0, empty = 0;
  over_cuts([&](std::int64_t cols, int, std::int64_t, const Slabs &s) {
    ++cuts;
    uncovered += std::int64_t{s.count} * s.cols >= cols ? 0 : 1;
    // The last one begins before the row's end.
    empty += s.count >= 1 && std::int64_t{s.count - 1} * s.cols < cols ? 0 : 1;
  });
  CHECK(cuts > 100000);
  CHECK(uncovered == 0);
  CHECK(empty == 0);
}

TEST_CASE("segments cover a slab, one a warp of a block, whole lines of lanes each", "[slabs]") {
  std::int64_t uncovered = 0, broken_lines = 0, too_many_warps = 0, too_long = 0;
  over_cuts([&](std::int64_t, int element_bytes, std::int64_t slab_bytes, const Slabs &s) {
    const std::int64_t line = element_bytes < 4 ? 128 / element_bytes : 32;
    uncovered += std::int64_t{s.warps} * s.segment_cols == s.cols ? 0 : 1;
    broken_lines += s.segment_cols % line == 0 && s.segment_cols > 0 ? 0 : 1;
    too_many_warps += s.warps >= 1 && s.warps <= 32 ? 0 : 1;
    // A lane's registers hold kHeldBytes of it.
    too_long += std::int64_t{s.segment_cols} * element_bytes <= softmax::kSegmentBytes ? 0 : 1;
    // A little more than was asked for: rounding to lines.
    const std::int64_t most = slab_bytes + s.warps * line * element_bytes;
    too_long += std::int64_t{s.cols} * element_bytes <= most ? 0 : 1;
  });
  CHECK(uncovered == 0);
  CHECK(broken_lines == 0);
  CHECK(too_many_warps == 0);
  CHECK(too_long == 0);
}

TEST_CASE("slabs of a row begin alike: a whole number of 16-byte words apart", "[slabs]") {
  std::int64_t broken = 0;
  over_cuts([&](std::int64_t, int element_bytes, std::int64_t, const Slabs &s) {
    broken += std::int64_t{s.cols} * element_bytes % softmax::kBulkBytes == 0 ? 0 : 1;
  });
  CHECK(broken == 0);
}

TEST_CASE("slabs of a row are as equal as lines allow", "[slabs]") {
  std::int64_t unequal = 0;
  over_cuts([&](std::int64_t cols, int element_bytes, std::int64_t slab_bytes, const Slabs &s) {
    const std::int64_t fewest = softmax::ceil_div(cols * element_bytes, slab_bytes);
    unequal += s.count <= fewest ? 0 : 1;
  });
  CHECK(unequal == 0);
}

TEST_CASE("a slot holds a range at any offset, and slots follow on each other aligned", "[slabs]") {
  std::int64_t too_small = 0, crooked = 0;
  for (std::int64_t bytes = 1; bytes <= 70000; ++bytes) {
    const std::int64_t slot = softmax::slot_bytes(bytes);
    for (const std::int64_t offset : {0, 1, 8, 15}) {
      // The whole words around it: that is what a bulk copy writes.
      too_small += softmax::round_up(offset + bytes, 16) <= slot ? 0 : 1;
    }
    crooked += slot % 128 == 0 ? 0 : 1;
  }
  CHECK(too_small == 0);
  CHECK(crooked == 0);
}

TEST_CASE("shared memory has room for slots, barriers and sums, the sums aligned", "[slabs]") {
  for (int slots = 1; slots <= 64; ++slots) {
    for (const std::int64_t parts : {0, 512, 4096}) {
      const std::int64_t all = softmax::slab_smem_bytes(2048, slots, parts);
      CHECK(all - parts - 2048 * slots >= 8 * (slots + 2));
      CHECK((all - parts) % 32 == 0);
    }
  }
}

TEST_CASE("a run of rows is one at least, fills its bytes, and suits the block", "[slabs]") {
  std::int64_t none = 0, too_long = 0, uneven = 0, too_short = 0;
  for (std::int64_t row_bytes = 1; row_bytes <= 70000; row_bytes += row_bytes < 5000 ? 1 : 61) {
    for (const int at_once : {8, 16, 64, 256}) {
      constexpr std::int64_t kTileBytes = 16384;
      const std::int64_t rows = softmax::tile_rows(row_bytes, kTileBytes, at_once);
      none += rows >= 1 ? 0 : 1;
      too_long += rows == 1 || rows * row_bytes <= kTileBytes ? 0 : 1;
      uneven += rows < at_once || rows % at_once == 0 ? 0 : 1;
      // Another round of rows would not fit.
      too_short += rows >= at_once && (rows + at_once) * row_bytes <= kTileBytes ? 1 : 0;
    }
  }
  CHECK(none == 0);
  CHECK(too_long == 0);
  CHECK(uneven == 0);
  CHECK(too_short == 0);
}

TEST_CASE("rows that a warp takes together begin in different banks", "[slabs]") {
  // The words that a warp's lanes read at once, rows apart as row_spread says. No distance helps
  // rows of a higher power of two of bytes than their lanes read.
  std::int64_t meeting = 0, apart = 0, out_of_range = 0;
  for (std::int64_t row_bytes = 4; row_bytes <= 2048; row_bytes += 4) {
    for (const int lanes : {1, 2, 4, 8, 16, 32}) {
      const std::int64_t spread = softmax::row_spread(row_bytes, lanes);
      out_of_range += spread >= 1 && spread <= 32 ? 0 : 1;
      std::set<std::int64_t> banks;
      for (int row = 0; row < 32 / lanes; ++row) {
        for (int lane = 0; lane < lanes; ++lane) {
          banks.insert((row * spread * row_bytes / 4 + lane) % 32);
        }
      }
      if ((row_bytes & -row_bytes) > 4 * lanes) continue;
      (banks.size() == 32 ? apart : meeting) += 1;
    }
  }
  CHECK(out_of_range == 0);
  CHECK(apart > 1000);
  CHECK(meeting == 0);
}

}  // namespace softmax_test
