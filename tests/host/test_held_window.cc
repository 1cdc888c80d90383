// Rows in registers as words of memory: core/held_window.h, and which rows go so
// (core/held_rows.h).
#include <vector>

#include "core/held_rows.h"
#include "core/held_window.h"
#include "core/row_part.h"
#include "support/catch.h"

namespace softmax_test {
namespace {

using softmax::RowAccess;
using softmax::WindowReads;
using softmax::WordCols;

// The columns that a sum has, in the order in which they were added; one that is no column adds
// nothing.
struct Terms {
  std::vector<int> cols;

  Terms() = default;
  explicit Terms(int zero) { REQUIRE(zero == 0); }
  static Terms of(int col, int all) {
    Terms terms;
    if (col >= 0 && col < all) terms.cols.push_back(col);
    return terms;
  }
  Terms &operator+=(const Terms &other) {
    REQUIRE(other.cols.size() <= 1);  // one term after another
    cols.insert(cols.end(), other.cols.begin(), other.cols.end());
    return *this;
  }
  friend Terms operator+(Terms a, const Terms &b) { return a += b; }
  bool operator==(const Terms &other) const { return cols == other.cols; }
};

// The position sums of every member of a row, in their canonical places. Elements that are not the
// row's have terms too, of -inf: 0.
template <int kCols, int kPacks>
class Row {
 public:
  using Sums = softmax::PositionSums<Terms, kCols, kPacks>;

  Row(int lanes, int cols) : lanes_(lanes), cols_(cols), member_(static_cast<std::size_t>(lanes)) {}

  // What the order is: canonical places, pack after pack.
  void add_in_order() {
    for (int m = 0; m < lanes_; ++m) {
      for (int p = 0; p < kPacks; ++p) {
        for (int i = 0; i < kCols; ++i) {
          Terms &sum = at(m).sum[i];
          sum += Terms::of((p * lanes_ + m) * kCols + i, cols_);
        }
      }
    }
  }

  void add_window(int shift) {
    const int capacity = lanes_ * kPacks * kCols;
    const bool has_tail = softmax::window_has_tail(shift, cols_, capacity);
    for (int m = 0; m < lanes_; ++m) {
      for (int p = 0; p < kPacks + (has_tail ? 1 : 0); ++p) {
        Terms term[kCols];
        const int first = (p * lanes_ + m) * kCols;
        const WordCols own = softmax::word_cols_of(first, kCols, shift, shift + cols_);
        for (int i = own.from; i < own.to; ++i) term[i] = Terms::of(first + i - shift, cols_);
        at(m).add_window(p, m == 0 ? shift : 0, term);
      }
    }
    step<kCols / 2>(shift);
  }

  bool operator==(const Row &other) const {
    for (std::size_t m = 0; m < member_.size(); ++m) {
      for (int i = 0; i < kCols; ++i) {
        if (!(member_[m].sum[i] == other.member_[m].sum[i])) return false;
      }
    }
    return true;
  }
  std::size_t terms() const {
    std::size_t count = 0;
    for (const Sums &sums : member_) {
      for (const Terms &terms : sums.sum) count += terms.cols.size();
    }
    return count;
  }

 private:
  Sums &at(int member) { return member_[static_cast<std::size_t>(member)]; }

  template <int kStep>
  void step(int shift) {
    const std::vector<Sums> before = member_;
    for (int m = 0; m < lanes_; ++m) {
      const Sums &from = before[static_cast<std::size_t>((m + 1) % lanes_)];
      Terms next[kStep];
      for (int i = 0; i < kStep; ++i) next[i] = from.sum[i];
      softmax::step_positions<kStep>(at(m).sum, next, (shift & kStep) != 0);
    }
    if constexpr (kStep > 1) step<kStep / 2>(shift);
  }

  int lanes_;
  int cols_;
  std::vector<Sums> member_;
};

template <int kCols, int kPacks>
void check_order() {
  for (int lanes = 1; lanes <= 32; lanes *= 2) {
    const int capacity = lanes * kPacks * kCols;
    for (int cols = 1; cols <= capacity; ++cols) {
      // A few in the middle, all where a window begins to overflow.
      if (cols > 2 * kCols && cols < capacity - 2 * kCols && cols % 37 != 0) continue;
      Row<kCols, kPacks> in_order(lanes, cols);
      in_order.add_in_order();
      REQUIRE(in_order.terms() == static_cast<std::size_t>(cols));
      for (int shift = 0; shift < kCols; ++shift) {
        Row<kCols, kPacks> window(lanes, cols);
        window.add_window(shift);
        INFO(lanes << " lanes, " << kPacks << " packs of " << kCols << ", " << cols
                   << " columns, shift " << shift);
        REQUIRE(window == in_order);
      }
    }
  }
}

}  // namespace

TEST_CASE("a window's terms are added in the order of columns at every shift", "[held]") {
  check_order<8, 1>();
  check_order<8, 2>();
  check_order<8, 4>();
  check_order<8, 8>();
  check_order<4, 4>();
}

TEST_CASE("position sums are the same as words and as a window that is not shifted", "[held]") {
  // Floats that show what was added before what.
  const float term[4] = {0x1p23f, 1.0f, 0x1p23f, 1.0f};
  softmax::PositionSums<float, 4, 8> words = {}, window = {};
  for (int p = 0; p < 8; ++p) {
    words.add_words(p, term);
    window.add_window(p, 0, term);
  }
  softmax::WideSum<float> sum, again;
  words.add_to(sum);
  window.add_to(again);
  CHECK(sum.value == 0x1p27 + 16);
  CHECK(again.value == sum.value);
}

TEST_CASE("every column of a window is one element of one word", "[held]") {
  for (const int word_cols : {2, 4, 8}) {
    for (int shift = 0; shift < word_cols; ++shift) {
      for (int cols = 0; cols <= 5 * word_cols; ++cols) {
        const int end = cols == 0 ? 0 : shift + cols;
        int found = 0;
        for (int at = 0; at < 8 * word_cols; at += word_cols) {
          const WordCols own = softmax::word_cols_of(at, word_cols, shift, end);
          for (int i = own.from; i < own.to; ++i) {
            REQUIRE((i >= 0 && i < word_cols));
            REQUIRE(at + i - shift == found);
            ++found;
          }
          REQUIRE(own.all(word_cols) == (own.to - own.from == word_cols));
          REQUIRE(own.any() == (own.to > own.from));
        }
        REQUIRE(found == cols);
      }
    }
  }
}

TEST_CASE("a run has a tail where its window overflows", "[held]") {
  for (const int word_cols : {2, 4, 8}) {
    const int capacity = 4 * word_cols;
    for (int cols = 1; cols <= capacity; ++cols) {
      bool some = false;
      for (int shift = 0; shift < word_cols; ++shift) {
        const WordCols tail = softmax::word_cols_of(capacity, word_cols, shift, shift + cols);
        CHECK(softmax::window_has_tail(shift, cols, capacity) == tail.any());
        CHECK((!tail.any() || tail.to - tail.from < (shift == 0 ? 1 : shift + 1)));
        some = some || tail.any();
      }
      CHECK(softmax::window_may_have_tail(cols, capacity, word_cols) == some);
    }
  }
}

TEST_CASE("a window's words are read whole where they are the tensor's, and the ends otherwise",
          "[held]") {
  for (const int word_cols : {2, 4, 8}) {
    for (int base = 0; base < word_cols; ++base) {
      for (int rows = 1; rows <= 9; ++rows) {
        for (int cols = 1; cols <= 3 * word_cols + 1; ++cols) {
          const int tensor_end = base + rows * cols;  // element numbers; a word begins at 0
          for (int row = 0; row < rows; ++row) {
            const int begin = base + row * cols;
            const int shift = begin % word_cols;
            const int before = row * cols;
            const int after = (rows - row) * cols;
            const WindowReads reads = softmax::window_reads(shift, cols, before, after, word_cols);
            const int last = (shift + cols - 1) / word_cols;
            for (int word = 0; word <= last; ++word) {
              const int at = word * word_cols;
              const int address = begin - shift + at;
              const bool is_in = address >= base && address + word_cols <= tensor_end;
              const bool is_whole = at < reads.limit && (word > 0 || !reads.first_reaches_out);
              REQUIRE(is_whole == is_in);
              // What is not read whole is the first or the last word, and asked for as such.
              const bool is_end =
                  (word == 0 && reads.first_reaches_out) || (word == last && at >= reads.limit);
              REQUIRE((is_whole || is_end));
            }
            if (softmax::window_is_inside(cols, before, after, word_cols)) {
              REQUIRE(!reads.first_reaches_out);
              REQUIRE(reads.limit == shift + cols);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("rows of whole words at whole words go as words, all others in windows", "[held]") {
  for (const int size : {2, 4, 8}) {
    for (std::int64_t cols = 1; cols <= 40; ++cols) {
      for (std::uintptr_t x = 0; x < 16; x += 2) {
        for (std::uintptr_t y = 0; y < 16; y += 2) {
          const bool is_whole = cols * size % 16 == 0 && x == 0 && y == 0;
          CHECK((softmax::row_access(cols, size, 4096 + x, 8192 + y) == RowAccess::kWords) ==
                is_whole);
        }
      }
    }
  }
}

}  // namespace softmax_test
