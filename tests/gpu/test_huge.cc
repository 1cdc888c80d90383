// Tensors whose offsets and row counts do not fit 32 bits. Generated on the device by doubling a
// block of rows, checked at sampled rows.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "gpu/cuda_check.h"
#include "support/catch.h"
#include "support/problem.h"

namespace softmax_test {
namespace {

constexpr std::size_t kSlackBytes = std::size_t{1} << 30;  // left to everything else

// Rows around which 32-bit arithmetic would have gone wrong, and some between.
std::vector<std::int64_t> sampled_rows(std::int64_t rows, std::int64_t cols) {
  std::vector<std::int64_t> sampled = {0, 1, rows / 2, rows - 2, rows - 1};
  for (const std::int64_t offset : {std::int64_t{1} << 31, std::int64_t{1} << 32}) {
    for (std::int64_t row = offset / cols - 2; row <= offset / cols + 2; ++row) {
      if (row >= 0 && row < rows) sampled.push_back(row);
    }
  }
  for (std::uint64_t k = 0; k < 40; ++k) {
    sampled.push_back(static_cast<std::int64_t>(uniform(61, k) * static_cast<double>(rows)));
  }
  return sampled;
}

}  // namespace

TEST_CASE("offsets beyond 2^32 elements are right in every algorithm", "[huge][mistakes]") {
  // row * N in 32 bits. Every row of the block that is repeated differs, and the block's length
  // divides no power of two, so that an offset that wrapped meets another row.
  constexpr std::int64_t kCols = 1000;
  constexpr std::int64_t kRows = (std::int64_t{1} << 32) / kCols + 1000;
  constexpr std::int64_t kBlockRows = 4099;
  constexpr std::size_t kBytes = static_cast<std::size_t>(kRows) * kCols * 2;
  if (device().free_bytes() < 2 * kBytes + kSlackBytes) {
    SOFTMAX_SKIP("needs 18 GB of device memory");
  }
  const Elements block = make_input(SOFTMAX_DTYPE_BF16, kBlockRows, kCols, Pattern::kNormal3, 62);
  const Reference reference = make_reference(block, kBlockRows, kCols);
  auto *x = static_cast<unsigned char *>(device().allocate(kBytes));
  auto *y = static_cast<unsigned char *>(device().allocate(kBytes));
  REQUIRE((x != nullptr && y != nullptr));
  to_device(x, block.bytes.data(), block.bytes.size());
  repeat_on_device(x, block.bytes.size(), kBytes);

  const Bound bound = promised_bound(SOFTMAX_DTYPE_BF16);
  for (const softmax_algo_t algo : device().algorithms()) {
    Problem problem;
    problem.algo = algo;
    problem.types = kTypePairs[2];
    problem.rows = kRows;
    problem.cols = kCols;
    must(cudaMemset(y, 0x5a, kBytes));
    INFO(to_text(problem));
    CHECK(call(device().handle(), problem, x, y, nullptr) == SOFTMAX_SUCCESS);
    must(cudaDeviceSynchronize());
    for (const std::int64_t row : sampled_rows(kRows, kCols)) {
      Elements got(SOFTMAX_DTYPE_BF16, kCols);
      must(cudaMemcpy(got.bytes.data(), y + static_cast<std::size_t>(row) * kCols * 2,
                      got.bytes.size(), cudaMemcpyDeviceToHost));
      Reference expected;
      const auto first = reference.softmax.begin() + (row % kBlockRows) * kCols;
      expected.softmax.assign(first, first + kCols);
      INFO("row " << row);
      CHECK(compare(got, expected, false, kCols, bound).failure == "");
    }
  }
  device().release(x);
  device().release(y);
}

TEST_CASE("more than 2^31 rows are right in every algorithm", "[huge][mistakes]") {
  // More rows than a grid has blocks. N = 1: a finite element gives 1, a NaN or an infinity NaN.
  constexpr std::int64_t kRows = (std::int64_t{1} << 31) + 77;
  constexpr std::size_t kBytes = static_cast<std::size_t>(kRows) * 2;
  if (device().free_bytes() < 2 * kBytes + kSlackBytes) {
    SOFTMAX_SKIP("needs 10 GB of device memory");
  }
  auto *x = static_cast<unsigned char *>(device().allocate(kBytes));
  auto *y = static_cast<unsigned char *>(device().allocate(kBytes));
  REQUIRE((x != nullptr && y != nullptr));
  constexpr std::int64_t kWindow = 65536;
  Elements window(SOFTMAX_DTYPE_BF16, kWindow);
  for (std::int64_t j = 0; j < kWindow; ++j) window.set(j, static_cast<double>(j % 201 - 100));
  to_device(x, window.bytes.data(), window.bytes.size());
  repeat_on_device(x, window.bytes.size(), kBytes);
  const std::int64_t special[] = {3,
                                  kRows / 3,
                                  (std::int64_t{1} << 31) - 1,
                                  std::int64_t{1} << 31,
                                  (std::int64_t{1} << 31) + 1,
                                  kRows - 1};
  Elements one(SOFTMAX_DTYPE_BF16, 1);
  for (const std::int64_t row : special) {
    one.set(0, row % 2 == 0 ? HUGE_VAL : -HUGE_VAL);
    to_device(x + static_cast<std::size_t>(row) * 2, one.bytes.data(), 2);
  }

  for (const softmax_algo_t algo : device().algorithms()) {
    Problem problem;
    problem.algo = algo;
    problem.types = kTypePairs[2];
    problem.rows = kRows;
    problem.cols = 1;
    must(cudaMemset(y, 0x5a, kBytes));
    INFO(to_text(problem));
    CHECK(call(device().handle(), problem, x, y, nullptr) == SOFTMAX_SUCCESS);
    must(cudaDeviceSynchronize());
    std::vector<std::int64_t> starts = {0, kRows - kWindow};
    for (const std::int64_t row : special) {
      starts.push_back(std::min(std::max<std::int64_t>(row - kWindow / 2, 0), kRows - kWindow));
    }
    for (std::uint64_t k = 0; k < 20; ++k) {
      starts.push_back(
          static_cast<std::int64_t>(uniform(63, k) * static_cast<double>(kRows - kWindow)));
    }
    for (const std::int64_t start : starts) {
      must(cudaMemcpy(window.bytes.data(), y + static_cast<std::size_t>(start) * 2,
                      window.bytes.size(), cudaMemcpyDeviceToHost));
      std::int64_t wrong = 0;
      for (std::int64_t j = 0; j < kWindow; ++j) {
        const bool is_special =
            std::find(std::begin(special), std::end(special), start + j) != std::end(special);
        const bool is_right = is_special ? std::isnan(window[j]) : window[j] == 1;
        wrong += is_right ? 0 : 1;
      }
      INFO("rows from " << start);
      CHECK(wrong == 0);
    }
  }
  device().release(x);
  device().release(y);
}

TEST_CASE("a row of 2^32 columns is right, and what is -inf in it stays nothing",
          "[huge][mistakes]") {
  // N itself does not fit 32 bits. All elements are 0 but for some that are -inf.
  constexpr std::int64_t kCols = (std::int64_t{1} << 32) + 8;
  constexpr std::size_t kBytes = static_cast<std::size_t>(kCols) * 2;
  if (device().free_bytes() < kBytes + kSlackBytes) {
    SOFTMAX_SKIP("needs 10 GB of device memory");
  }
  auto *x = static_cast<unsigned char *>(device().allocate(kBytes));
  REQUIRE(x != nullptr);
  constexpr std::int64_t kWindow = 4096;
  Elements window(SOFTMAX_DTYPE_BF16, kWindow);
  Elements nothing(SOFTMAX_DTYPE_BF16, 1);
  nothing.set(0, -HUGE_VAL);
  const std::int64_t empty[] = {0, 1, 4095, kCols / 2, (std::int64_t{1} << 32) + 2, kCols - 1};
  for (const bool is_log : {false, true}) {
    must(cudaMemset(x, 0, kBytes));
    for (const std::int64_t col : empty) {
      to_device(x + static_cast<std::size_t>(col) * 2, nothing.bytes.data(), 2);
    }
    Problem problem;
    problem.algo = SOFTMAX_ALGO_AUTO;
    problem.types = kTypePairs[2];
    problem.is_log = is_log;
    problem.in_place = true;
    problem.rows = 1;
    problem.cols = kCols;
    INFO(to_text(problem));
    REQUIRE(call(device().handle(), problem, x, x, nullptr) == SOFTMAX_SUCCESS);
    must(cudaDeviceSynchronize());
    // ln(2^32) is 22.18, and bfloat16 has 22.125 and 22.25.
    const double expected = is_log ? -22.125 : 0x1p-32;
    for (const std::int64_t around : {std::int64_t{0}, kCols / 3, kCols / 2, kCols}) {
      const std::int64_t start =
          std::min(std::max<std::int64_t>(around - kWindow / 2, 0), kCols - kWindow);
      must(cudaMemcpy(window.bytes.data(), x + static_cast<std::size_t>(start) * 2,
                      window.bytes.size(), cudaMemcpyDeviceToHost));
      std::int64_t wrong = 0;
      for (std::int64_t j = 0; j < kWindow; ++j) {
        const bool is_empty =
            std::find(std::begin(empty), std::end(empty), start + j) != std::end(empty);
        const double right = !is_empty ? expected : is_log ? -HUGE_VAL : 0.0;
        wrong += window[j] == right ? 0 : 1;
      }
      INFO("columns from " << start);
      CHECK(wrong == 0);
    }
  }
  device().release(x);
}

}  // namespace softmax_test
