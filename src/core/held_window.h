// Rows in registers as memory's own aligned words: which elements of which words are a run's, and
// sums of its coarse terms whose order is the columns' wherever the run begins.
//
// A run of `cols` columns begins `shift` elements past a 16-byte boundary. Its window is words of
// memory from that boundary on: word w is held by member w % lanes as its pack w / lanes, and has
// column j at element (j + shift) % kCols. Were shift 0, column j would be at element j % kCols of
// member j / kCols % lanes: its canonical place, which is what the order of additions follows.
//
// From there a window is `shift` elements further on. So a member's first elements are canonically
// the end of the member before, and member 0's those of the last member's pack before. Where the
// window overflows by that, member 0 has one pack more, the tail, of fewer than `shift` elements.
#pragma once

#include <cstdint>

#include "core/numerics.h"

namespace softmax {

// ---- which elements ----

// [from, to) of a word's elements; none where to <= from.
struct WordCols {
  int from;
  int to;

  SOFTMAX_HD bool any() const { return from < to; }
  SOFTMAX_HD bool all(int word_cols) const { return from == 0 && to == word_cols; }
};

// Those of a run in the word whose first element is element `at` of the window. `end` is
// shift + cols, or less than `at` where there is no run.
SOFTMAX_HD WordCols word_cols_of(int at, int word_cols, int shift, int end) {
  const int from = shift - at;
  const int to = end - at;
  return {from > 0 ? from : 0, to < word_cols ? to : word_cols};
}

// Whether the run has a tail: it fills all packs, but for fewer elements than it is shifted.
SOFTMAX_HD bool window_has_tail(int shift, int cols, int capacity) {
  return shift + cols > capacity;
}
// The same for some shift.
SOFTMAX_HD bool window_may_have_tail(int cols, int capacity, int word_cols) {
  return window_has_tail(word_cols - 1, cols, capacity);
}

// What of a window may be read as whole words: those that lie in the tensor, which has `before`
// elements before the run and `after` from its first on. Only a run's first and its last word can
// reach out of it.
struct WindowReads {
  bool first_reaches_out;
  int limit;  // words whose first element is at or past this are not read whole, if at all
};
SOFTMAX_HD WindowReads window_reads(int shift, int cols, int before, int after, int word_cols) {
  const int end = shift + cols;
  const int whole_end = after + shift - (word_cols - 1);
  return {before < shift, whole_end < end ? whole_end : end};
}
// False where that must be asked: for every run of `cols` among `before` and `after` elements.
SOFTMAX_HD bool window_is_inside(int cols, int before, int after, int word_cols) {
  return before >= word_cols && after >= cols + word_cols;
}

// ---- sums ----

// The coarse terms at each position of a member's packs, added pack after pack. (Exact terms have
// sums without an order: GridSum.) Packs are added in order.
template <typename T, int kCols, int kPacks>
struct PositionSums {
  T sum[kCols];

  // Of a run that is whole words.
  SOFTMAX_HD void add_words(int pack, const T (&term)[kCols]) {
    SOFTMAX_UNROLL
    for (int i = 0; i < kCols; ++i) sum[i] = pack == 0 ? term[i] : sum[i] + term[i];
  }
  // The same by halves of packs, from the first on as far as there are any: `sum` begins at 0.
  template <int kHalf>
  SOFTMAX_HD void add_half(int pack, int half, const T (&term)[kHalf]) {
    SOFTMAX_UNROLL
    for (int i = 0; i < kHalf; ++i) {
      T &to = sum[half * kHalf + i];
      to = pack == 0 ? term[i] : to + term[i];
    }
  }
  // Of a window, whose pack kPacks is the tail. The first `foreign` elements of a pack are
  // canonically the pack before's: `shift` in member 0, none in others. Starting from 0 instead of
  // the first term changes nothing, and nor does adding 0: terms are not negative.
  SOFTMAX_HD void add_window(int pack, int foreign, const T (&term)[kCols]) {
    SOFTMAX_UNROLL
    for (int i = 0; i < kCols; ++i) {
      if (pack == 0) {
        sum[i] = i < foreign ? T(0) : term[i];
      } else if (pack == kPacks) {
        sum[i] += i < foreign ? term[i] : T(0);
      } else {
        sum[i] += term[i];
      }
    }
  }

  // What is in canonical places, to `total`, by a tree.
  template <typename Sum>
  SOFTMAX_HD void add_to(Sum &total) {
    add_terms<kCols>(total, sum);
  }
};

// One step of bringing position sums to canonical places: every position takes the one kStep after
// it, the last ones the first ones of the next member, the last member those of member 0. The steps
// kCols / 2, ..., 2, 1 that make up the shift do all of it.
template <int kStep, typename T, int kCols>
SOFTMAX_HD void step_positions(T (&own)[kCols], const T (&next)[kStep], bool taken) {
  SOFTMAX_UNROLL
  for (int i = 0; i < kCols; ++i) {
    const T after =
        i + kStep < kCols ? own[(i + kStep) % kCols] : next[(i + kStep) % kCols % kStep];
    own[i] = taken ? after : own[i];
  }
}

}  // namespace softmax
