// Bits of the general call, for tests: one algorithm's, and those of the same rows in every way
// that must not matter.
#pragma once

#include <cstring>
#include <vector>

#include "support/catch.h"
#include "support/general_calls.h"

namespace softmax_test {

inline bool same_bits(const std::vector<float> &a, const std::vector<float> &b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}
inline bool same_stats(const GeneralResult &a, const GeneralResult &b) {
  return same_bits(a.row_max, b.row_max) && same_bits(a.row_sum, b.row_sum) &&
         same_bits(a.lse, b.lse);
}

// Runs cases by an algorithm that may refuse some, and counts what it has served.
class Bits {
 public:
  explicit Bits(softmax_algo_t algo) : algo_(algo) {}

  // False where the algorithm does not take the case.
  bool run(GeneralCase c, const GeneralValues &values, GeneralResult *result,
           How how = How::kTogether) {
    c.algo = algo_;
    *result = run_general(device(), c, values, how);
    if (result->status == SOFTMAX_STATUS_NOT_SUPPORTED_ALGO && calls_.may_refuse(algo_)) {
      return false;
    }
    if (result->status != SOFTMAX_SUCCESS || !result->damage.empty()) {
      INFO(c.text() << ": " << result->damage);
      CHECK(result->damage == "");
      CHECK(result->status == SOFTMAX_SUCCESS);
      return false;
    }
    ++served_;
    return true;
  }
  // The same bits as before, where the algorithm takes the case; so many calls agreed.
  void same(const GeneralCase &c, const GeneralValues &values, const Elements &expected,
            const char *what, How how = How::kTogether) {
    GeneralResult result;
    if (!run(c, values, &result, how)) return;
    if (result.y.bytes == expected.bytes) {
      ++compared_;
      return;
    }
    GeneralCase named = c;
    named.algo = algo_;
    INFO(named.text() << ": " << what);
    CHECK(result.y.bytes == expected.bytes);
  }
  softmax_algo_t algo() const { return algo_; }
  std::int64_t served() const { return served_; }
  std::int64_t compared() const { return compared_; }

 private:
  softmax_algo_t algo_;
  GeneralCalls calls_{device()};
  std::int64_t served_ = 0, compared_ = 0;
};

// Row r of a case, alone.
inline GeneralValues row_of(const GeneralCase &c, const GeneralValues &values, std::int64_t r) {
  GeneralValues row;
  const auto part = [&](auto &to, const auto &from, std::int64_t count) {
    if (from.empty()) return;
    to.assign(from.begin() + r * count, from.begin() + (r + 1) * count);
  };
  part(row.x, values.x, c.cols());
  part(row.dy, values.dy, c.cols());
  part(row.y, values.y, c.cols());
  part(row.additive, values.additive, c.cols());
  part(row.keep, values.keep, c.cols());
  part(row.length, values.length, 1);
  part(row.row_scale, values.row_scale, 1);
  part(row.sink, values.sink, 1);
  part(row.row_max, values.row_max, 1);
  part(row.row_sum, values.row_sum, 1);
  return row;
}

// Contiguous, such rows have kernels of their own: see section 10 of softmax.h.
inline bool is_plain(const GeneralCase &c) {
  return c.mask_kind == SOFTMAX_MASK_NONE && c.scale == 1 && !c.has_row_scale && !c.has_sink &&
         !c.is_backward();
}

// The matrix for one case: the same rows in every way that must not matter.
inline void check_bits(Bits *bits, GeneralCase c, const GeneralValues &values) {
  GeneralResult result;
  if (!bits->run(c, values, &result)) return;
  const Elements expected = result.y;
  bits->same(c, values, expected, "again");
  bits->same(c, values, expected, "in a graph", How::kOtherwise);
  for (const int offset : {1, 3}) {
    c.offset = offset;
    bits->same(c, values, expected, "at another address");
  }
  c.offset = 0;
  c.x_lie = c.y_lie = c.dy_lie = c.mask_lie = Lie::kPadded;
  if (!is_plain(c)) bits->same(c, values, expected, "padded");
  c.x_lie = c.y_lie = c.dy_lie = c.mask_lie = Lie::kContiguous;
  c.in_place = true;
  bits->same(c, values, expected, "in place");
  c.in_place = false;

  if (c.mask_kind == SOFTMAX_MASK_CAUSAL) return;  // whose row knows its number
  const auto row_bytes = static_cast<std::size_t>(
      c.cols() * format_of(c.is_backward() ? c.x_dtype : c.y_dtype).size_bytes);
  for (const std::int64_t r : {std::int64_t{0}, c.rows() / 2, c.rows() - 1}) {
    GeneralCase one = c;
    one.shape = {1, c.cols()};
    one.offset = 1;
    Elements part = expected;
    const auto first = expected.bytes.begin() + static_cast<std::ptrdiff_t>(r * row_bytes);
    part.bytes.assign(first, first + static_cast<std::ptrdiff_t>(row_bytes));
    bits->same(one, row_of(c, values, r), part, "a row alone");
  }
}

}  // namespace softmax_test
