// How rows are cut into slabs and runs: every column once, the cut by N and the type alone, and
// room for what a slot must hold.
#include <algorithm>
#include <cstdint>
#include <set>

#include "core/held_rows.h"
#include "core/row_part.h"
#include "core/slabs.h"
#include "core/window.h"
#include "support/catch.h"

namespace softmax_test {
namespace {

using softmax::Slabs;

// A way to cut: what a thread holds, what a slab has at most.
struct Cut {
  int packs;
  std::int64_t slab_bytes;
};
constexpr Cut kCuts[] = {{4, 16384}, {4, 32768}, {8, 16384}, {8, 32768}, {8, 65536}};
constexpr int kElementBytes[] = {2, 4, 8};
constexpr std::int64_t kMostCols = std::int64_t{1} << 26;

std::int64_t next_cols(std::int64_t cols) { return cols + (cols < 20000 ? 1 : cols / 200); }

// Body(cols, element_bytes, cut, slabs) over everything a row may be.
template <typename Body>
void over_cuts(Body body) {
  for (const Cut &cut : kCuts) {
    for (const int element_bytes : kElementBytes) {
      for (std::int64_t cols = 1; cols <= kMostCols; cols = next_cols(cols)) {
        body(cols, element_bytes, cut,
             softmax::cut_row(cols, element_bytes, cut.packs, cut.slab_bytes));
      }
    }
  }
}

}  // namespace

TEST_CASE("slabs cover a row, each with columns of its own", "[slabs]") {
  std::int64_t cuts = 0, uncovered = 0, empty = 0;
  over_cuts([&](std::int64_t cols, int, const Cut &, const Slabs &s) {
    ++cuts;
    uncovered += s.count * s.cols >= cols ? 0 : 1;
    // The last one begins before the row's end.
    empty += s.count >= 1 && (s.count - 1) * s.cols < cols ? 0 : 1;
  });
  CHECK(cuts > 100000);
  CHECK(uncovered == 0);
  CHECK(empty == 0);
}

TEST_CASE("a row of as many columns as there can be has its number of slabs", "[slabs][mistakes]") {
  for (const Cut &cut : kCuts) {
    for (const int element_bytes : kElementBytes) {
      const std::int64_t cols = INT64_MAX / 16;
      const Slabs most = softmax::cut_row(cols, element_bytes, cut.packs, cut.slab_bytes);
      CHECK(most.count > INT32_MAX);
      CHECK(most.count == softmax::ceil_div(cols, most.cols));
    }
  }
}

TEST_CASE("a slab is one run a warp, as long as the warp's registers hold", "[slabs]") {
  std::int64_t other = 0, too_many_warps = 0, too_long = 0;
  over_cuts([&](std::int64_t cols, int element_bytes, const Cut &cut, const Slabs &s) {
    const std::int64_t slab_bytes = std::int64_t{s.cols} * element_bytes;
    other += s.cols == s.warps * softmax::run_cols_of(cols, element_bytes, cut.packs) ? 0 : 1;
    too_many_warps += s.warps >= 1 && s.warps <= 16 ? 0 : 1;
    too_long += slab_bytes <= cut.slab_bytes ? 0 : 1;
  });
  CHECK(softmax::run_bytes(8) == 32 * 8 * 16);
  CHECK(other == 0);
  CHECK(too_many_warps == 0);
  CHECK(too_long == 0);
}

TEST_CASE("slabs of a row begin alike: a whole number of 16-byte words apart", "[slabs]") {
  std::int64_t broken = 0;
  over_cuts([&](std::int64_t, int element_bytes, const Cut &, const Slabs &s) {
    broken += std::int64_t{s.cols} * element_bytes % softmax::kBulkBytes == 0 ? 0 : 1;
  });
  CHECK(broken == 0);
}

TEST_CASE("slabs of a row are as few as their length allows, and as short as that allows",
          "[slabs]") {
  std::int64_t too_many = 0, too_long = 0;
  over_cuts([&](std::int64_t cols, int element_bytes, const Cut &cut, const Slabs &s) {
    const std::int64_t run = softmax::run_cols_of(cols, element_bytes, cut.packs);
    const std::int64_t most_warps = cut.slab_bytes / softmax::run_bytes(cut.packs);
    const std::int64_t fewest = softmax::ceil_div(softmax::ceil_div(cols, run), most_warps);
    too_many += s.count <= fewest ? 0 : 1;
    // With a warp less a slab, that many slabs would not hold the row.
    too_long += (s.warps - 1) * run * fewest < cols ? 0 : 1;
  });
  CHECK(too_many == 0);
  CHECK(too_long == 0);
}

TEST_CASE("a slot holds a range at any offset, and slots follow on each other aligned", "[slabs]") {
  std::int64_t too_small = 0, crooked = 0;
  for (std::int64_t bytes = 1; bytes <= 70000; ++bytes) {
    const std::int64_t slot = softmax::slot_bytes(bytes);
    for (const std::int64_t offset : {0, 1, 15, 112, 127}) {
      // The whole words around it: that is what a bulk copy writes.
      too_small += softmax::round_up(offset + bytes, 16) <= slot ? 0 : 1;
    }
    crooked += slot % 128 == 0 ? 0 : 1;
  }
  CHECK(too_small == 0);
  CHECK(crooked == 0);
}

TEST_CASE("shared memory has room for slots and their barriers, the barriers aligned", "[slabs]") {
  for (int slots = 1; slots <= 64; ++slots) {
    const std::int64_t slot = softmax::slot_bytes(2048);
    CHECK(softmax::ring_bytes(slot, slots) >= slots * (slot + 8));
    CHECK(slots * slot % 8 == 0);
  }
}

TEST_CASE("a part of a row is as large on its way as the kernels' own", "[slabs]") {
  CHECK(softmax::part_bytes(4) == sizeof(softmax::RowPart<float>));
  CHECK(softmax::part_bytes(8) == sizeof(softmax::RowPart<double>));
}

TEST_CASE("rows that a warp takes together begin in different banks", "[slabs]") {
  // What a warp's lanes read at once, rows apart as row_spread_bits says. No distance helps rows of
  // a higher power of two of bytes than their lanes read, and none is further than the warps go.
  constexpr int kWarps = 4;
  std::int64_t meeting = 0, apart = 0, out_of_range = 0;
  for (const int size : {2, 4}) {
    for (std::int64_t row_bytes = size; row_bytes <= 2048; row_bytes += size) {
      for (const int lanes : {1, 2, 4, 8, 16, 32}) {
        const int bits = softmax::row_spread_bits(row_bytes, lanes * size, kWarps);
        out_of_range += bits >= 0 && (1 << bits) <= kWarps ? 0 : 1;
        const std::int64_t distance = row_bytes << bits;
        if ((distance & -distance) != lanes * size || size * 32 / lanes > 128) continue;
        // Bytes of 128 that lanes read, each once.
        std::set<std::int64_t> places;
        for (int row = 0; row < 32 / lanes; ++row) {
          for (int lane = 0; lane < lanes; ++lane) {
            places.insert((row * distance + lane * size) % 128);
          }
        }
        (places.size() == 32 ? apart : meeting) += 1;
      }
    }
  }
  CHECK(out_of_range == 0);
  CHECK(apart > 1000);
  CHECK(meeting == 0);
}

// Of eight lanes that shared memory serves together, the most that meet in one of its eight columns
// of words: rows of `words` words, 2^bits rows apart, each `lanes` lanes'.
int meeting_lanes(std::int64_t words, int lanes, int bits, int words_a_lane = 1) {
  int most = 0;
  for (int first = 0; first < 32; first += softmax::kBankWords) {
    for (int word = 0; word < words_a_lane; ++word) {
      int meeting[softmax::kBankWords] = {};
      for (int i = first; i < first + softmax::kBankWords; ++i) {
        const std::int64_t row = std::int64_t{i / lanes} << bits;
        const std::int64_t place = words_a_lane * (row * words + i % lanes) + word;
        most = std::max(most, ++meeting[place % softmax::kBankWords]);
      }
    }
  }
  return most;
}

TEST_CASE("a tile's rows of whole words are held whole, by few lanes, two of which may meet in a bank",
          "[slabs]") {
  for (const int size : {2, 4, 8}) {
    for (std::int64_t words = 1; words <= 256; ++words) {
      const std::int64_t cols = words * 16 / size;
      const softmax::RowShape shape = softmax::tile_shape(cols, size);
      const softmax::RowShape least = softmax::unit_shape(cols, size);
      INFO(words << " words of " << size << "-byte elements");
      CHECK((shape.lanes >= 1 && shape.lanes <= 32 && (shape.lanes & (shape.lanes - 1)) == 0));
      CHECK(shape.packs == least.packs);  // of which there are kernels
      CHECK(std::int64_t{shape.lanes} * shape.packs >= words);
      // More lanes than can be hold them only where all are busy.
      CHECK((shape.lanes == least.lanes || words % shape.lanes == 0));
      // Every word is one lane's.
      std::set<std::int64_t> held;
      const int packs = softmax::used_packs(cols, size, shape.lanes);
      for (int pack = 0; pack < packs; ++pack) {
        for (int lane = 0; lane < shape.lanes; ++lane) held.insert(pack * shape.lanes + lane);
      }
      CHECK((packs <= shape.packs && std::int64_t(held.size()) - words < shape.lanes &&
             *held.rbegin() >= words - 1));

      const int bits = softmax::row_spread_bits(
          words * 16, softmax::lanes_bytes(cols, size, shape.lanes), softmax::kTileThreads / 32);
      const int most = words == 4 ? 4 : 2;
      CHECK(meeting_lanes(words, shape.lanes, bits) <= most);
      // Results twice as wide: two words a lane, of which others' are every second.
      CHECK(meeting_lanes(words, shape.lanes, bits, 2) <= std::min(2 * most, 8));
    }
  }
  CHECK(softmax::tile_shape(2052, 2).packs == softmax::unit_shape(2052, 2).packs);  // too long
}

TEST_CASE("ragged rows leave lanes of WARP idle, and few of a tile's", "[slabs]") {
  int ragged = 0;
  for (std::int64_t words = 1; words <= 300; ++words) {
    const softmax::RowShape line = softmax::line_shape(words);
    if (!softmax::is_ragged(words)) {
      // Seven tenths of what there is room for, or all of it.
      CHECK((line.packs == 0 || 10 * words >= 7 * line.lanes * line.packs));
      continue;
    }
    ++ragged;
    INFO(words << " words");
    CHECK(words < line.lanes * line.packs);
    if (words > 128) continue;  // WARP's: a lane has eight packs, and empty ones cost nothing
    const softmax::RowShape tile = softmax::tile_shape(words * 4, 4);
    const std::int64_t used =
        std::int64_t{tile.lanes} * softmax::used_packs(words * 4, 4, tile.lanes);
    CHECK(10 * words >= 8 * used);
  }
  CHECK(ragged > 100);
  for (const std::int64_t words : {1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 257}) {
    CHECK_FALSE(softmax::is_ragged(words));
  }
  for (const std::int64_t words : {3, 5, 6, 7, 9, 11, 17, 22, 33, 44, 65, 89, 129, 179}) {
    CHECK(softmax::is_ragged(words));
  }
}

}  // namespace softmax_test
