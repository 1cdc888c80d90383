// softmax_merge_stats: its arithmetic, its edge parts, its refusals, and a row that is computed in
// slices as one that is computed as a whole.
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/merge_stats.h"
#include "host/api.h"
#include "support/catch.h"
#include "support/compare.h"
#include "support/inputs.h"

namespace softmax_test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

double float_ulps(float got, long double expected) {
  return error_ulps(format_of(SOFTMAX_DTYPE_F32), got, expected);
}

}  // namespace

TEST_CASE("the logarithm of merging is within an ulp", "[merge]") {
  double worst = 0;
  for (std::uint64_t i = 0; i < 200000; ++i) {
    const double x = i < 100000 ? 1 + std::ldexp(uniform(1, i), -static_cast<int>(i % 50))
                                : std::ldexp(0.5 + uniform(2, i), static_cast<int>(i % 400) - 200);
    const double error =
        error_ulps(format_of(SOFTMAX_DTYPE_F64), softmax::log_of(x), std::log((long double)x));
    worst = error > worst ? error : worst;
  }
  CHECK(worst < 1);
  CHECK(softmax::log_of(1.0) == 0.0);
}

TEST_CASE("merged statistics are the formula's, rounded once", "[merge]") {
  const CpuHandle handle;
  for (const std::int64_t parts : {1, 2, 3, 8, 100}) {
    constexpr std::int64_t kRows = 60;
    const auto count = static_cast<std::size_t>(parts * kRows);
    std::vector<float> part_max(count), part_sum(count), max(kRows), sum(kRows), lse(kRows);
    for (std::size_t i = 0; i < count; ++i) {
      part_max[i] = static_cast<float>((i % kRows < 30 ? 1 : 40) * normal(7, i));
      part_sum[i] = static_cast<float>(1 + 100 * uniform(8, i));
      // Among others a part may be empty.
      if (parts > 2 && i % 7 == 3) part_max[i] = -kInf, part_sum[i] = i % 2 == 0 ? 0.0f : NAN;
    }
    REQUIRE(softmax_merge_stats(handle, parts, kRows, part_max.data(), part_sum.data(), max.data(),
                                sum.data(), lse.data(), nullptr) == SOFTMAX_SUCCESS);
    for (std::int64_t r = 0; r < kRows; ++r) {
      float top = -kInf;
      for (std::int64_t p = 0; p < parts; ++p) top = std::fmax(top, part_max[p * kRows + r]);
      long double total = 0;
      for (std::int64_t p = 0; p < parts; ++p) {
        const auto at = static_cast<std::size_t>(p * kRows + r);
        if (part_max[at] == -kInf) continue;
        total += part_sum[at] * std::exp((long double)part_max[at] - top);
      }
      INFO(parts << " parts, row " << r);
      CHECK(max[r] == top);
      CHECK(float_ulps(sum[r], total) < 0.5001);
      CHECK(float_ulps(lse[r], top + std::log(total)) < 0.501);
      if (parts == 1) CHECK(sum[r] == part_sum[r]);
    }
  }
}

TEST_CASE("empty parts never poison, and NaN and +inf always do", "[merge]") {
  const auto merged = [](std::vector<float> max, std::vector<float> sum) {
    return softmax::merge_stats(max.data(), sum.data(), static_cast<std::int64_t>(max.size()), 1);
  };
  const softmax::MergedStats empty = merged({-kInf, -kInf}, {0, 0});
  CHECK((empty.max == -kInf && empty.sum == 0 && empty.lse == -kInf));
  const softmax::MergedStats half = merged({-kInf, 2}, {0, 3});
  CHECK((half.max == 2 && half.sum == 3));
  CHECK(float_ulps(half.lse, 2 + std::log(3.0L)) < 0.501);
  for (const softmax::MergedStats &bad :
       {merged({NAN, 2}, {1, 3}), merged({2, 1}, {3, NAN}), merged({kInf, 2}, {1, 3}),
        merged({2, NAN, -kInf}, {1, 1, 0})}) {
    CHECK((std::isnan(bad.max) && std::isnan(bad.sum) && std::isnan(bad.lse)));
  }
  // However many parts there are: one alone too.
  for (const softmax::MergedStats &bad :
       {merged({kInf}, {0}), merged({NAN}, {1}), merged({2}, {NAN})}) {
    CHECK((std::isnan(bad.max) && std::isnan(bad.sum) && std::isnan(bad.lse)));
  }
  const softmax::MergedStats none = merged({-kInf}, {NAN});
  CHECK((none.max == -kInf && none.sum == 0 && none.lse == -kInf));
  const softmax::MergedStats infinite = merged({2}, {kInf});
  CHECK((infinite.sum == kInf && infinite.lse == kInf));
}

TEST_CASE("a row in slices, merged, is the row as a whole", "[merge]") {
  const CpuHandle handle;
  constexpr std::int64_t kRows = 5, kCols = 900, kParts = 3, kSlice = kCols / kParts;
  std::vector<float> x(kRows * kCols), y(kRows * kCols);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(5 * normal(9, i));
  // Row 1 has a slice without anything, row 2 nothing at all.
  for (std::size_t j = 0; j < kCols; ++j) {
    if (j < kSlice) x[kCols + j] = -kInf;
    x[2 * kCols + j] = -kInf;
  }
  std::vector<float> part_max(kParts * kRows), part_sum(kParts * kRows), max(kRows), sum(kRows),
      lse(kRows), whole_lse(kRows);
  const auto slice_desc = [&](int32_t op, std::int64_t cols) {
    softmax_desc_t desc = make_desc(kRows, cols, op);
    desc.x_stride[0] = desc.y_stride[0] = kCols;
    desc.x_stride[1] = desc.y_stride[1] = 1;
    desc.empty_row = SOFTMAX_EMPTY_ROW_ZERO;
    return desc;
  };
  const softmax_desc_t stats = slice_desc(SOFTMAX_OP_STATS, kSlice);
  for (std::int64_t p = 0; p < kParts; ++p) {
    softmax_args_t args = make_args(x.data() + p * kSlice, nullptr);
    args.row_max = part_max.data() + p * kRows;
    args.row_sum = part_sum.data() + p * kRows;
    REQUIRE(softmax_execute(handle, 0, &stats, &args, nullptr) == SOFTMAX_SUCCESS);
  }
  REQUIRE(softmax_merge_stats(handle, kParts, kRows, part_max.data(), part_sum.data(), max.data(),
                              sum.data(), lse.data(), nullptr) == SOFTMAX_SUCCESS);
  softmax_args_t whole = make_args(x.data(), nullptr);
  whole.lse = whole_lse.data();
  const softmax_desc_t whole_stats = slice_desc(SOFTMAX_OP_STATS, kCols);
  REQUIRE(softmax_execute(handle, 0, &whole_stats, &whole, nullptr) == SOFTMAX_SUCCESS);
  for (int r = 0; r < kRows; ++r) {
    INFO("row " << r);
    if (r == 2) {
      CHECK((lse[r] == -kInf && whole_lse[r] == -kInf));
    } else {
      CHECK(std::fabs(lse[r] - whole_lse[r]) <= 1e-6f * std::fabs(whole_lse[r]));
    }
  }
  softmax_desc_t last = slice_desc(SOFTMAX_OP_SOFTMAX, kSlice);
  last.flags = SOFTMAX_FLAG_GIVEN_STATS;
  for (std::int64_t p = 0; p < kParts; ++p) {
    softmax_args_t args = make_args(x.data() + p * kSlice, y.data() + p * kSlice);
    args.row_max = max.data();
    args.row_sum = sum.data();
    REQUIRE(softmax_execute(handle, 0, &last, &args, nullptr) == SOFTMAX_SUCCESS);
  }
  std::vector<float> expected(x);
  const softmax_desc_t plain = slice_desc(SOFTMAX_OP_SOFTMAX, kCols);
  const softmax_args_t args = make_args(x.data(), expected.data());
  REQUIRE(softmax_execute(handle, 0, &plain, &args, nullptr) == SOFTMAX_SUCCESS);
  for (std::size_t i = 0; i < y.size(); ++i) {
    CHECK(std::fabs(y[i] - expected[i]) <= 4e-7f * expected[i]);
  }
}

TEST_CASE("softmax_merge_stats refuses what is wrong and takes no rows", "[merge]") {
  const CpuHandle handle;
  std::vector<float> m(12, 1.0f), s(12, 1.0f), out(12, 7.0f);
  const auto call = [&](std::int64_t parts, std::int64_t rows, const float *part_max,
                        float *row_max, softmax_stream_t stream = nullptr) {
    return softmax_merge_stats(handle, parts, rows, part_max, s.data(), row_max, nullptr, nullptr,
                               stream);
  };
  CHECK(call(3, 4, m.data(), out.data()) == SOFTMAX_SUCCESS);
  CHECK(out[3] == 1.0f);
  CHECK(out[4] == 7.0f);
  CHECK(call(0, 4, m.data(), out.data()) == SOFTMAX_STATUS_BAD_SHAPE);
  CHECK(call(3, -1, m.data(), out.data()) == SOFTMAX_STATUS_BAD_SHAPE);
  CHECK(call(INT64_MAX / 2, 4, m.data(), out.data()) == SOFTMAX_STATUS_BAD_SHAPE);
  CHECK(call(3, 0, nullptr, nullptr) == SOFTMAX_SUCCESS);
  CHECK(call(3, 4, nullptr, out.data()) == SOFTMAX_STATUS_NULL_POINTER);
  CHECK(call(3, 4, m.data(), nullptr) == SOFTMAX_STATUS_NULL_POINTER);
  CHECK(call(3, 4, m.data(), m.data() + 4) == SOFTMAX_STATUS_OVERLAP);
  CHECK(call(3, 4, m.data(), s.data()) == SOFTMAX_STATUS_OVERLAP);
  CHECK(call(3, 4, reinterpret_cast<float *>(reinterpret_cast<char *>(m.data()) + 1), out.data()) ==
        SOFTMAX_STATUS_INVALID_ARGUMENT);
  CHECK(call(3, 4, m.data(), out.data(), reinterpret_cast<softmax_stream_t>(std::uintptr_t{1})) ==
        SOFTMAX_STATUS_WRONG_DEVICE);
  CHECK(softmax_merge_stats(nullptr, 1, 1, m.data(), s.data(), out.data(), nullptr, nullptr,
                            nullptr) == SOFTMAX_STATUS_BAD_HANDLE);
}

}  // namespace softmax_test
