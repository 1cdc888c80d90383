// COLUMN at any alignment: a tensor that lies at a word's boundary is read and written by words,
// and one that begins an element further on by elements. Their bits are the same.
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "gpu/general_args.h"
#include "support/catch.h"
#include "support/compare.h"
#include "support/inputs.h"

namespace softmax_test {
namespace {

constexpr auto kF32 = SOFTMAX_DTYPE_F32;
constexpr auto kF16 = SOFTMAX_DTYPE_F16;
constexpr auto kBf16 = SOFTMAX_DTYPE_BF16;

constexpr std::int64_t kSpecialRows = 13;  // from one special row to the next

struct Tensor {
  std::int64_t outer, cols, inner;
  softmax_dtype_t x, y;
  double scale;
  std::int32_t op = SOFTMAX_OP_SOFTMAX;
  bool has_lse = false;

  std::int64_t count() const { return outer * cols * inner; }
  std::int64_t rows() const { return outer * inner; }
  std::string text() const {
    return std::to_string(outer) + " x " + std::to_string(cols) + " x " + std::to_string(inner) +
           " types " + std::to_string(x) + " " + std::to_string(y) + " scale " +
           std::to_string(scale) + " op " + std::to_string(op) + (has_lse ? " lse" : "");
  }
};

// Normal numbers, and rows that hold nothing but -inf, a NaN, an infinity, one value throughout,
// numbers that lie far below 0, that float32 arithmetic is not for, that end in the midst, and of
// which a part lies far below the rest.
Elements special_values(const Tensor &t) {
  Elements x = make_input(t.x, t.outer, t.cols * t.inner, Pattern::kNormal10, 17);
  const auto index = [&](std::int64_t row, std::int64_t col) {
    return (row / t.inner * t.cols + col) * t.inner + row % t.inner;
  };
  int kind = 0;
  for (std::int64_t row = 1; row < t.rows(); row += kSpecialRows) {
    switch (kind++ % 8) {
      case 0:
        for (std::int64_t c = 0; c < t.cols; ++c) x.set(index(row, c), -HUGE_VAL);
        break;
      case 1: x.set(index(row, t.cols - 1), std::nan("")); break;
      case 2: x.set(index(row, t.cols / 2), HUGE_VAL); break;
      case 3:
        for (std::int64_t c = 0; c < t.cols; ++c) x.set(index(row, c), 1.75);
        break;
      case 4:
        for (std::int64_t c = 0; c < t.cols; ++c) x.set(index(row, c), -900.0 + c % 7);
        break;
      case 5:
        for (std::int64_t c = 0; c < t.cols; ++c) x.set(index(row, c), c % 5 * 1e6);
        break;
      case 6:
        for (std::int64_t c = t.cols / 3; c < t.cols; ++c) x.set(index(row, c), -HUGE_VAL);
        break;
      default:
        for (std::int64_t c = t.cols / 2; c < t.cols; ++c) x.set(index(row, c), 150.0 - c % 3);
        break;
    }
  }
  return x;
}

std::size_t first_difference(const std::vector<unsigned char> &a,
                             const std::vector<unsigned char> &b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) return i;
  }
  return a.size();
}

void check(const Tensor &t) {
  const auto x_size = static_cast<std::size_t>(format_of(t.x).size_bytes);
  const auto y_size = static_cast<std::size_t>(format_of(t.y).size_bytes);
  const auto count = static_cast<std::size_t>(t.count());
  const Elements values = special_values(t);
  // Exact, so that what is read beyond the tensor is read beyond its allocation.
  Array<unsigned char> x(values.bytes), y(count * y_size, 0x5a);
  Array<unsigned char> other(count * y_size + y_size, 0xa5);
  Array<unsigned char> further(count * x_size + x_size, 0);
  to_device(further.data() + x_size, values.bytes.data(), values.bytes.size());

  softmax_desc_t desc = matrix(t.outer, t.cols);
  desc.op = t.op;
  desc.x_dtype = t.x;
  desc.y_dtype = t.y;
  desc.ndim = 3;
  desc.shape[0] = t.outer;
  desc.shape[1] = t.cols;
  desc.shape[2] = t.inner;
  desc.axis = 1;
  desc.scale = t.scale;
  softmax_args_t args = no_args();
  const auto rows = static_cast<std::size_t>(t.rows());
  Array<float> lse(rows, 1e30f), other_lse(rows, -1e30f);
  const bool has_y = t.op != SOFTMAX_OP_STATS;
  args.x = x.data();
  args.y = has_y ? y.data() : nullptr;
  args.lse = t.has_lse ? lse.data() : nullptr;
  INFO(t.text());
  REQUIRE(execute(desc, args, SOFTMAX_ALGO_COLUMN) == SOFTMAX_SUCCESS);
  args.x = further.data() + x_size;
  args.y = has_y ? other.data() + y_size : nullptr;
  args.lse = t.has_lse ? other_lse.data() : nullptr;
  REQUIRE(execute(desc, args, SOFTMAX_ALGO_COLUMN) == SOFTMAX_SUCCESS);
  if (t.has_lse) {
    const std::vector<float> one = lse.get(), two = other_lse.get();
    CHECK(std::memcmp(one.data(), two.data(), rows * sizeof(float)) == 0);
  }
  if (!has_y) return;
  std::vector<unsigned char> expected = other.get();
  CHECK(std::vector<unsigned char>(expected.begin(), expected.begin() + y_size) ==
        std::vector<unsigned char>(y_size, 0xa5));
  expected.erase(expected.begin(), expected.begin() + y_size);
  CHECK(first_difference(y.get(), expected) == expected.size());
  // That they are a softmax at all: of some plain rows.
  Elements result(t.y, t.count());
  result.bytes = expected;
  for (std::int64_t row = 0; row < t.rows(); row += (t.rows() / 40 + 1) * kSpecialRows) {
    double sum = 0.0;
    for (std::int64_t c = 0; c < t.cols; ++c) {
      const double value = result[(row / t.inner * t.cols + c) * t.inner + row % t.inner];
      sum += t.op == SOFTMAX_OP_LOGSOFTMAX ? std::exp(value) : value;
    }
    CHECK(std::fabs(sum - 1.0) < 0.01);
  }
  if (t.x != t.y) return;
  args.x = args.y = x.data();
  REQUIRE(execute(desc, args, SOFTMAX_ALGO_COLUMN) == SOFTMAX_SUCCESS);
  CHECK(first_difference(x.get(), expected) == expected.size());
}

}  // namespace

TEST_CASE("general: aligned tensors along another axis have the bits of those that are not",
          "[general][bits]") {
  if (!device().has_bulk_copies()) SOFTMAX_SKIP("this device has no clusters for so many columns");
  for (const Tensor &t : {
           // Clusters of 16, 4, 2 and 1 blocks; parts of the axis and groups of rows that are whole
           // and such that end early.
           Tensor{1, 8192, 1600, kF32, kF32, 1.0},
           Tensor{1, 8192, 2112, kBf16, kBf16, -0.7},
           Tensor{1, 5000, 1060, kF32, kBf16, 0.3},
           Tensor{7, 4097, 200, kF16, kF16, 1.0},
           Tensor{16, 1000, 784, kF32, kF32, 1.0},
           Tensor{9, 1000, 784, kBf16, kBf16, 2.0},
           Tensor{32, 700, 784, kBf16, kF16, 1.0},
           Tensor{64, 512, 512, kF32, kF32, -1.0},
           Tensor{64, 512, 512, kF16, kF16, 1.0},
           Tensor{64, 300, 516, kF32, kF16, 1.0},
           Tensor{100, 200, 520, kBf16, kBf16, 1.0},
           Tensor{300, 100, 512, kF32, kF32, 1.0},
           Tensor{2000, 300, 64, kF32, kF32, 1.0},
           Tensor{3000, 256, 64, kBf16, kBf16, 1.0},
           // Few columns: runs of whole words through shared memory, each of a column as long as
           // the others or the last of them shorter; and such that are none.
           Tensor{8, 21, 4096, kF32, kF32, 1.0},
           Tensor{3, 32, 1000, kBf16, kBf16, 0.3},
           Tensor{40, 17, 784, kF32, kF32, 2.0},
           Tensor{9, 2, 260, kF32, kF32, 1.0},
           Tensor{7, 3, 512, kF16, kF16, 1.0},
           Tensor{3, 31, 600, kF16, kF16, 1.0},
           Tensor{1, 5, 100000, kBf16, kBf16, 1.0},
           Tensor{5, 19, 1000, kBf16, kBf16, -1.0},
           Tensor{5, 19, 1002, kF32, kF32, 1.0},
           Tensor{8, 21, 4096, kF32, kF32, 1.0, SOFTMAX_OP_LOGSOFTMAX},
           Tensor{3, 31, 1000, kBf16, kBf16, 0.3, SOFTMAX_OP_LOGSOFTMAX, true},
           Tensor{4, 2, 600, kF16, kF16, 1.0, SOFTMAX_OP_SOFTMAX, true},
           Tensor{4, 11, 784, kF32, kF32, 2.0, SOFTMAX_OP_SOFTMAX, true},
           Tensor{4, 13, 528, kBf16, kBf16, 1.0, SOFTMAX_OP_STATS, true},
           Tensor{2, 32, 1040, kF32, kF32, 1.0, SOFTMAX_OP_STATS, true},
           // Few rows side by side.
           Tensor{20, 128256, 2, kF32, kF32, 1.0},
           Tensor{40, 100000, 2, kBf16, kBf16, -1.0},
           Tensor{70, 50260, 2, kF16, kF16, 0.5},
           Tensor{20, 40000, 4, kF32, kBf16, 1.0},
           Tensor{30, 20004, 4, kBf16, kBf16, 1.0},
       }) {
    check(t);
  }
}

TEST_CASE("tensors along another axis are read to their end and no further", "[sanitizer]") {
  if (!device().has_bulk_copies()) SOFTMAX_SKIP("this device has no clusters for so many columns");
  // Few clusters of sixteen blocks: CUDA 13.0's synccheck reported a missing wait, at the first use
  // of a barrier, in blocks that lie seven clusters apart.
  check({3, 1000, 1060, kF32, kF32, 1.0});
  check({1, 4100, 72, kBf16, kBf16, 1.0});
  check({5, 8196, 2, kF32, kF32, 1.0});
  check({3, 21, 1000, kF32, kF32, 1.0});
  check({2, 9, 520, kBf16, kBf16, 1.0});
  check({2, 10, 400, kF32, kF32, 1.0, SOFTMAX_OP_LOGSOFTMAX, true});
}

}  // namespace softmax_test
