// So many rows that blocks and clusters take one after another, in several batches: statistics
// alone, and results alone, which kernels of their own make, have the bits of both together.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gpu/general_args.h"
#include "support/catch.h"
#include "support/inputs.h"

namespace softmax_test {
namespace {

constexpr std::int64_t kBlockRows = 97;  // that are repeated

struct Rows {
  softmax_algo_t algo;
  softmax_dtype_t dtype;
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t pitch;
  std::int64_t offset;  // of the first element from an aligned address
};

// Rows of many sizes of numbers, with some that hold a NaN, an infinity, nothing but -inf, or one
// value throughout.
Elements special_rows(softmax_dtype_t dtype, std::int64_t pitch) {
  Elements x = make_input(dtype, kBlockRows, pitch, Pattern::kNormal10, 91);
  for (std::int64_t j = 0; j < pitch; ++j) {
    x.set(3 * pitch + j, -HUGE_VAL);
    x.set(5 * pitch + j, 1.75);
    x.set(11 * pitch + j, x[11 * pitch + j] - 1e6);
    if (j % 3 == 0) x.set(13 * pitch + j, -HUGE_VAL);
  }
  x.set(7 * pitch + 17, std::nan(""));
  x.set(9 * pitch + 23, HUGE_VAL);
  x.set(15 * pitch + 1, 3e4);
  return x;
}

// Temperatures, among them those that the kernels' float32 arithmetic is not for.
std::vector<float> scales(std::int64_t rows) {
  constexpr float kScales[] = {1.0f, 0.7f, -1.3f, 0.0f, 1e-3f, 1e33f, 3.0f, -0.0f, 1.0f, 2.5f};
  std::vector<float> all(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = kScales[i / 5 % 10];
  all[static_cast<std::size_t>(rows) / 2] = std::numeric_limits<float>::quiet_NaN();
  return all;
}

struct Stats {
  explicit Stats(std::int64_t rows)
      : max(static_cast<std::size_t>(rows), 7.0f), sum(max.get()), lse(max.get()) {}
  void give(softmax_args_t *args) const {
    args->row_max = max.data();
    args->row_sum = sum.data();
    args->lse = lse.data();
  }
  Array<float> max, sum, lse;
};

// Rows of which a log-sum-exp alone is further from the other than its bound, or is no number where
// that is one.
std::int64_t distant(const Array<float> &alone, const Array<float> &other) {
  const std::vector<float> left = alone.get(), right = other.get();
  std::int64_t count = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (std::isnan(right[i]) ? std::isnan(left[i]) : left[i] == right[i]) continue;
    const double ulp = std::fabs(double(std::nextafter(right[i], 1e30f)) - double(right[i]));
    count += !(std::fabs(double(left[i]) - double(right[i])) <= 0x1p-21 + 2 * ulp);
  }
  return count;
}

// How many of the `count` parts of two arrays differ in a bit.
std::int64_t different_parts(const Array<unsigned char> &a, const Array<unsigned char> &b,
                             std::size_t count) {
  const std::vector<unsigned char> left = a.get(), right = b.get();
  const std::size_t bytes = left.size() / count;
  std::int64_t different = 0;
  for (std::size_t i = 0; i < count; ++i) {
    different += std::memcmp(&left[i * bytes], &right[i * bytes], bytes) != 0;
  }
  return different;
}
// Rows of which the bits differ.
std::int64_t different(const Array<float> &a, const Array<float> &b) {
  const std::vector<float> left = a.get(), right = b.get();
  std::int64_t count = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    count += std::memcmp(&left[i], &right[i], sizeof(float)) != 0;
  }
  return count;
}

void check_rows(const Rows &r) {
  const auto size = static_cast<std::size_t>(format_of(r.dtype).size_bytes);
  const std::size_t bytes = static_cast<std::size_t>(r.rows * r.pitch) * size;
  const Elements block = special_rows(r.dtype, r.pitch);
  Array<unsigned char> x_memory(bytes + 256, 0), y_memory(bytes, 0);
  unsigned char *const x = x_memory.data() + static_cast<std::size_t>(r.offset) * size;
  to_device(x, block.bytes.data(), block.bytes.size());
  repeat_on_device(x, block.bytes.size(), bytes);
  const Array<float> row_scale(scales(r.rows));

  for (const bool has_scales : {false, true}) {
    softmax_desc_t desc = matrix(r.rows, r.cols, SOFTMAX_OP_LOGSOFTMAX);
    desc.x_dtype = desc.y_dtype = r.dtype;
    desc.x_stride[0] = r.pitch;
    desc.x_stride[1] = 1;
    desc.scale = has_scales ? -0.6 : 1.0;
    softmax_args_t args = no_args();
    args.x = x;
    args.y = y_memory.data();
    if (has_scales) args.row_scale = row_scale.data();
    const Stats beside(r.rows), alone(r.rows);
    beside.give(&args);
    INFO(softmax_algo_name(r.algo) << " " << r.rows << " x " << r.cols << " scales " << has_scales);
    REQUIRE(execute(desc, args, r.algo) == SOFTMAX_SUCCESS);
    desc.op = SOFTMAX_OP_STATS;
    args.y = nullptr;
    alone.give(&args);
    REQUIRE(execute(desc, args, r.algo) == SOFTMAX_SUCCESS);
    CHECK(different(alone.max, beside.max) == 0);
    CHECK(different(alone.sum, beside.sum) == 0);
    CHECK(different(alone.lse, beside.lse) == 0);
    // That something was written, of every row.
    const std::vector<float> sums = alone.sum.get();
    CHECK(std::count(sums.begin(), sums.end(), 7.0f) == 0);
    const Stats lse(r.rows);
    args.row_max = args.row_sum = nullptr;
    args.lse = lse.lse.data();
    REQUIRE(execute(desc, args, r.algo) == SOFTMAX_SUCCESS);
    CHECK(distant(lse.lse, beside.lse) == 0);
  }
}

// Bytes of a mask, two of three of them set.
std::vector<unsigned char> keeps(std::size_t count) {
  std::vector<unsigned char> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = i * 40503 % 1009 % 3 != 0 ? 2 : 0;
  return all;
}

// Softmax, alone and with statistics beside it, out of place and in place.
void check_results(const Rows &r, softmax_dtype_t y_dtype) {
  const auto count = static_cast<std::size_t>(r.rows);
  const auto in_row = static_cast<std::size_t>(r.pitch);
  const std::size_t x_bytes = count * in_row * format_of(r.dtype).size_bytes;
  const std::size_t y_bytes = count * in_row * format_of(y_dtype).size_bytes;
  const Elements block = special_rows(r.dtype, r.pitch);
  Array<unsigned char> x(x_bytes, 0), own(y_bytes, 1), beside(y_bytes, 1);
  Array<unsigned char> mask(count * in_row, 0);
  const auto fill = [&](const Array<unsigned char> &memory) {
    const std::size_t first = std::min(block.bytes.size(), x_bytes);
    to_device(memory.data(), block.bytes.data(), first);
    repeat_on_device(memory.data(), first, x_bytes);
  };
  fill(x);
  const std::vector<unsigned char> keep = keeps(kBlockRows * in_row);
  to_device(mask.data(), keep.data(), std::min(keep.size(), count * in_row));
  repeat_on_device(mask.data(), keep.size(), count * in_row);
  const Array<float> row_scale(scales(r.rows));
  const Stats stats(r.rows);

  for (const bool has_mask : {false, true}) {
    for (const bool has_scales : {false, true}) {
      softmax_desc_t desc = matrix(r.rows, r.cols);
      desc.x_dtype = r.dtype;
      desc.y_dtype = y_dtype;
      desc.x_stride[0] = desc.y_stride[0] = r.pitch;
      desc.x_stride[1] = desc.y_stride[1] = 1;
      desc.scale = has_scales ? -0.6 : 0.9;
      softmax_args_t args = no_args();
      args.x = x.data();
      args.y = beside.data();
      if (has_scales) args.row_scale = row_scale.data();
      if (has_mask) {
        desc.mask_kind = SOFTMAX_MASK_BOOL_KEEP;
        desc.mask_stride[0] = r.pitch;
        desc.mask_stride[1] = 1;
        args.mask = mask.data();
      }
      const softmax_args_t alone = args;
      stats.give(&args);
      INFO(r.rows << " x " << r.cols << " mask " << has_mask << " scales " << has_scales
                  << " types " << r.dtype << " " << y_dtype);
      REQUIRE(execute(desc, args, r.algo) == SOFTMAX_SUCCESS);
      args = alone;
      args.y = own.data();
      REQUIRE(execute(desc, args, r.algo) == SOFTMAX_SUCCESS);
      CHECK(different_parts(own, beside, count) == 0);
      if (r.dtype != y_dtype) continue;
      fill(own);
      fill(beside);
      args.x = args.y = own.data();
      REQUIRE(execute(desc, args, r.algo) == SOFTMAX_SUCCESS);
      stats.give(&args);
      args.x = args.y = beside.data();
      REQUIRE(execute(desc, args, r.algo) == SOFTMAX_SUCCESS);
      CHECK(different_parts(own, beside, count) == 0);
    }
  }
}

}  // namespace

TEST_CASE("general: softmax of many rows has the bits of softmax with statistics beside it",
          "[general][bits]") {
  if (!device().has_bulk_copies()) SOFTMAX_SKIP("this device has no bulk copies");
  constexpr auto kF32 = SOFTMAX_DTYPE_F32;
  constexpr auto kBf16 = SOFTMAX_DTYPE_BF16;
  constexpr auto kF16 = SOFTMAX_DTYPE_F16;
  constexpr auto kCluster = SOFTMAX_ALGO_CLUSTER;
  // Whole parts, parts that end in the midst of a warp, and rows apart. Of 2200 rows of this length
  // an H200's 33 clusters have more than 64 each, which are another batch.
  check_results({kCluster, kF32, 3001, 16384, 16384, 0}, kF32);
  check_results({kCluster, kF32, 700, 50260, 50264, 0}, kBf16);
  check_results({kCluster, kBf16, 2200, 131072, 131072, 0}, kBf16);
  check_results({kCluster, kBf16, 2200, 100008, 100008, 0}, kF32);
  check_results({kCluster, kF32, 2200, 100004, 100004, 0}, kF32);
  check_results({kCluster, kF16, 900, 16400, 16416, 0}, kF16);
}

TEST_CASE("clusters that take several rows leave their buffers alone and do not race",
          "[sanitizer]") {
  if (!device().has_bulk_copies()) SOFTMAX_SKIP("this device has no bulk copies");
  // Clusters of eight: under CUDA 13.0's synccheck kernels that wait for what st.async brings end
  // in an illegal access where clusters of sixteen blocks are many, and so does one of forty lines
  // with no part of this library in it: 7 clusters pass, 14 do not. memcheck finds nothing here.
  check_results({SOFTMAX_ALGO_CLUSTER, SOFTMAX_DTYPE_BF16, 70, 65536, 65536, 0}, SOFTMAX_DTYPE_F32);
  check_results({SOFTMAX_ALGO_CLUSTER, SOFTMAX_DTYPE_F32, 900, 8200, 8200, 0}, SOFTMAX_DTYPE_F32);
  check_rows({SOFTMAX_ALGO_CLUSTER, SOFTMAX_DTYPE_F32, 900, 8201, 8204, 0});
  check_rows({SOFTMAX_ALGO_CLUSTER, SOFTMAX_DTYPE_BF16, 300, 8184, 8184, 0});
}

TEST_CASE("general: statistics alone of many rows have the bits of those beside a result",
          "[general][bits]") {
  constexpr auto kF32 = SOFTMAX_DTYPE_F32;
  constexpr auto kBf16 = SOFTMAX_DTYPE_BF16;
  constexpr auto kF16 = SOFTMAX_DTYPE_F16;
  // Whole parts, parts of whole words, odd ones, and rows that begin anywhere.
  for (const Rows &r : {Rows{SOFTMAX_ALGO_BLOCK, kF32, 60001, 1056, 1056, 0},
                        Rows{SOFTMAX_ALGO_BLOCK, kBf16, 60000, 1029, 1032, 3},
                        Rows{SOFTMAX_ALGO_BLOCK, kF16, 27001, 4096, 4096, 0}}) {
    check_rows(r);
  }
  if (!device().has_bulk_copies()) return;
  for (const Rows &r : {Rows{SOFTMAX_ALGO_CLUSTER, kF32, 3401, 16400, 16400, 0},
                        Rows{SOFTMAX_ALGO_CLUSTER, kF32, 900, 50257, 50257, 1},
                        Rows{SOFTMAX_ALGO_CLUSTER, kBf16, 1100, 100000, 100000, 0},
                        Rows{SOFTMAX_ALGO_CLUSTER, kBf16, 1700, 65000, 65000, 0}}) {
    check_rows(r);
  }
}

}  // namespace softmax_test
