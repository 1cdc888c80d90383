// The words that bulk copies move: never beyond the tensor, and every byte of a range once.
#include <cstdint>
#include <initializer_list>

#include "core/window.h"
#include "support/catch.h"

namespace softmax_test {
namespace {

using softmax::ByteRange;
using softmax::kBulkBytes;
using softmax::Window;

constexpr std::uint64_t kBase = 0x7f0000001000;  // a multiple of 256, as allocations are

// Head, bulk and tail follow on each other; empty ones lie anywhere.
bool is_bulk_whole_words(const Window &w) {
  return w.bulk.begin % kBulkBytes == 0 && w.bulk.size() % kBulkBytes == 0;
}

bool is_empty(const ByteRange &range) { return range.begin == range.end; }

// How often the three parts have the byte at `address`.
int times_in(const Window &w, std::uint64_t address) {
  int times = 0;
  for (const ByteRange &part : {w.head, w.bulk, w.tail}) {
    times += address >= part.begin && address < part.end ? 1 : 0;
  }
  return times;
}

bool is_inside(const ByteRange &part, const ByteRange &whole) {
  return is_empty(part) || (part.begin >= whole.begin && part.end <= whole.end);
}

// Body(range, tensor) for every range within tensors that begin and end anywhere in a word.
template <typename Body>
void over_ranges(Body body) {
  for (std::uint64_t first = 0; first < 16; ++first) {
    for (std::uint64_t length = 1; length <= 70; ++length) {
      const ByteRange tensor{kBase + first, kBase + first + length};
      for (std::uint64_t begin = tensor.begin; begin < tensor.end; ++begin) {
        for (std::uint64_t end = begin + 1; end <= tensor.end; ++end) {
          body(ByteRange{begin, end}, tensor);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("what is loaded lies in the tensor and has every byte of the range", "[window]") {
  std::int64_t ranges = 0, outside = 0, broken_words = 0, lost = 0, doubled = 0, long_ends = 0;
  over_ranges([&](const ByteRange &range, const ByteRange &tensor) {
    const Window w = softmax::load_window(range, tensor);
    ++ranges;
    outside +=
        is_inside(w.bulk, tensor) && is_inside(w.head, range) && is_inside(w.tail, range) ? 0 : 1;
    broken_words += is_empty(w.bulk) || is_bulk_whole_words(w) ? 0 : 1;
    for (std::uint64_t address = range.begin; address < range.end; ++address) {
      lost += times_in(w, address) < 1 ? 1 : 0;
      doubled += times_in(w, address) > 1 ? 1 : 0;
    }
    // By element go what a warp takes in one step of 1-byte elements at most.
    long_ends += w.head.size() + w.tail.size() > 2 * (kBulkBytes - 1) ? 1 : 0;
  });
  CHECK(ranges > 100000);
  CHECK(outside == 0);
  CHECK(broken_words == 0);
  CHECK(lost == 0);
  CHECK(doubled == 0);
  CHECK(long_ends == 0);
}

TEST_CASE("away from the tensor's ends a range is loaded in whole words alone", "[window]") {
  std::int64_t with_ends = 0, too_many = 0;
  over_ranges([&](const ByteRange &range, const ByteRange &) {
    const Window w = softmax::load_window(range, {range.begin - 16, range.end + 16});
    with_ends += is_empty(w.head) && is_empty(w.tail) ? 0 : 1;
    too_many += w.bulk.size() >= range.size() + 2 * kBulkBytes ? 1 : 0;
  });
  CHECK(with_ends == 0);
  CHECK(too_many == 0);
}

TEST_CASE("what is stored is the range, its whole words in bulk, and no byte besides", "[window]") {
  std::int64_t outside = 0, broken_words = 0, lost = 0, doubled = 0, left_words = 0;
  for (std::uint64_t first = 0; first < 16; ++first) {
    for (std::uint64_t length = 1; length <= 100; ++length) {
      const ByteRange range{kBase + first, kBase + first + length};
      const Window w = softmax::store_window(range);
      for (const ByteRange &part : {w.head, w.bulk, w.tail}) {
        outside += is_inside(part, range) ? 0 : 1;
      }
      broken_words += is_empty(w.bulk) || is_bulk_whole_words(w) ? 0 : 1;
      for (std::uint64_t address = range.begin; address < range.end; ++address) {
        lost += times_in(w, address) < 1 ? 1 : 0;
        doubled += times_in(w, address) > 1 ? 1 : 0;
      }
      // 31 bytes or more have a whole word in them, wherever they begin.
      left_words += length >= 31 && w.head.size() + w.tail.size() > 30 ? 1 : 0;
    }
  }
  CHECK(outside == 0);
  CHECK(broken_words == 0);
  CHECK(lost == 0);
  CHECK(doubled == 0);
  CHECK(left_words == 0);
}

TEST_CASE("a range lies in its slot as far from a word's beginning as in memory", "[window]") {
  for (std::uint64_t first = 0; first < 32; ++first) {
    CHECK(softmax::bulk_shift(kBase + first) == first % 16);
    CHECK(softmax::bulk_floor(kBase + first) == kBase + first / 16 * 16);
    CHECK(softmax::bulk_ceil(kBase + first) == kBase + (first + 15) / 16 * 16);
  }
}

}  // namespace softmax_test
