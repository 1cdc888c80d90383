// Bits of the general call: a row's do not depend on strides, M, position, threads, in or out of
// place, nor on whether statistics are asked for.
#include <omp.h>

#include <cstring>

#include "host/api.h"
#include "support/catch.h"
#include "support/general.h"

namespace softmax_test {
namespace {

// The rows of a case as a contiguous matrix, through the plain call.
Elements plain_call(softmax_handle_t handle, const GeneralCase &c, const GeneralValues &values) {
  Elements x(c.x_dtype, c.rows() * c.cols()), y(c.y_dtype, c.rows() * c.cols());
  for (std::int64_t i = 0; i < x.count(); ++i) x.set(i, values.x[static_cast<std::size_t>(i)]);
  const auto call = c.is_log() ? logsoftmax_forward_to : softmax_forward_to;
  REQUIRE(call(handle, c.algo, x.bytes.data(), c.x_dtype, y.bytes.data(), c.y_dtype, c.rows(),
               c.cols(), nullptr) == SOFTMAX_SUCCESS);
  return y;
}

GeneralResult run(softmax_handle_t handle, const GeneralCase &c, const GeneralValues &values) {
  GeneralResult result = run_general(handle, c, values);
  INFO(c.text() << last_error());
  REQUIRE(result.status == SOFTMAX_SUCCESS);
  return result;
}

// Cases that between them take every way through the drivers.
std::vector<GeneralCase> every_way() {
  std::vector<GeneralCase> cases;
  for (const std::vector<std::int64_t> &shape :
       {std::vector<std::int64_t>{90, 5}, {90, 40}, {7, 3000}, {2, 9000}, {1, 70000}}) {
    for (const softmax_dtype_t dtype : {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_BF16, SOFTMAX_DTYPE_F64}) {
      for (const int kind : {0, 1, 2, 3, 4}) {
        for (const int op : {0, 1}) {
          for (const bool values : {false, true}) {
            GeneralCase c;
            c.shape = shape;
            c.x_dtype = c.y_dtype = dtype;
            c.x_lie = c.y_lie = Lie::kPadded;
            c.mask_kind = kind;
            c.causal_offset = 3;
            c.op = op;
            if (values) c.scale = 0.3, c.has_row_scale = true, c.has_sink = true;
            cases.push_back(c);
          }
        }
      }
    }
  }
  return cases;
}

bool same_bits(const std::vector<float> &a, const std::vector<float> &b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("rows of any layout have the bits of contiguous rows", "[general][bits]") {
  const CpuHandle handle;
  int compared = 0;
  for (const softmax_algo_t algo :
       {SOFTMAX_ALGO_AUTO, SOFTMAX_ALGO_VECTOR, SOFTMAX_ALGO_ONLINE, SOFTMAX_ALGO_REFERENCE}) {
    for (const TypePair &types : kTypePairs) {
      for (const std::vector<std::int64_t> &shape :
           {std::vector<std::int64_t>{70, 1}, {70, 7}, {5, 33}, {3, 1000}, {2, 10000}}) {
        for (const int axis : {0, 1}) {
          GeneralCase c;
          c.algo = algo;
          c.shape = axis == 1 ? shape : std::vector<std::int64_t>{shape[1], shape[0]};
          c.axis = axis;
          c.x_dtype = types.x;
          c.y_dtype = types.y;
          c.op = static_cast<int32_t>(shape[1] % 2);
          const GeneralValues values = make_values(c);
          const Elements expected = plain_call(handle, c, values);
          for (const Lie x_lie : kLies) {
            for (const Lie y_lie : kLies) {
              c.x_lie = x_lie;
              c.y_lie = y_lie;
              CHECK(run(handle, c, values).y.bytes == expected.bytes);
              ++compared;
            }
          }
          c.in_place = c.x_dtype == c.y_dtype;
          c.y_lie = c.x_lie;
          CHECK(run(handle, c, values).y.bytes == expected.bytes);
        }
      }
    }
  }
  CHECK(compared == 4 * 6 * 5 * 2 * 16);
}

TEST_CASE("very long rows of any layout have AUTO's bits of contiguous rows", "[general][bits]") {
  const CpuHandle handle;
  GeneralCase c;
  c.shape = {2, 300000};  // where AUTO takes ONLINE
  for (const int op : {0, 1}) {
    c.op = op;
    const GeneralValues values = make_values(c);
    const Elements expected = plain_call(handle, c, values);
    for (const Lie lie : {Lie::kPadded, Lie::kReversed, Lie::kSpread}) {
      c.x_lie = lie;
      CHECK(run(handle, c, values).y.bytes == expected.bytes);
    }
    c.x_lie = Lie::kContiguous;
  }
}

TEST_CASE("a row that ends at its length has the bits of a row of that length", "[general][bits]") {
  const CpuHandle handle;
  for (const std::int64_t cols : {6, 60, 5000, 40000}) {
    for (const softmax_dtype_t dtype : {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F16}) {
      for (const int op : {0, 1}) {
        GeneralCase c;
        c.shape = {4, cols};
        c.x_dtype = c.y_dtype = dtype;
        c.op = op;
        c.mask_kind = SOFTMAX_MASK_ROW_LENGTH;
        const GeneralValues values = make_values(c);
        const Elements together = run(handle, c, values).y;
        const auto size = static_cast<std::size_t>(format_of(dtype).size_bytes);
        for (std::int64_t r = 0; r < 4; ++r) {
          GeneralCase one;
          one.shape = {1, std::min<std::int64_t>(values.length[static_cast<std::size_t>(r)], cols)};
          one.x_dtype = one.y_dtype = dtype;
          one.op = op;
          GeneralValues row;
          row.x.assign(values.x.begin() + r * cols, values.x.begin() + r * cols + one.cols());
          const Elements expected = plain_call(handle, one, row);
          INFO(c.text() << " row " << r);
          CHECK(std::memcmp(expected.bytes.data(), together.bytes.data() + r * cols * size,
                            expected.bytes.size()) == 0);
        }
      }
    }
  }
}

TEST_CASE("threads, statistics and place change no bit of a general call", "[general][bits]") {
  const CpuHandle handle;
  const int threads_before = omp_get_max_threads();
  for (GeneralCase c : every_way()) {
    const GeneralValues values = make_values(c);
    omp_set_num_threads(1);
    const Elements expected = run(handle, c, values).y;
    INFO(c.text());
    omp_set_num_threads(5);
    CHECK(run(handle, c, values).y.bytes == expected.bytes);
    c.has_stats = true;
    const GeneralResult with_stats = run(handle, c, values);
    CHECK(with_stats.y.bytes == expected.bytes);
    c.in_place = true;
    const GeneralResult in_place = run(handle, c, values);
    CHECK(in_place.y.bytes == expected.bytes);
    CHECK(same_bits(in_place.row_sum, with_stats.row_sum));
    // Statistics are the same alone and beside either operation.
    c.in_place = false;
    c.op = SOFTMAX_OP_STATS;
    omp_set_num_threads(2);
    const GeneralResult alone = run(handle, c, values);
    CHECK(same_bits(alone.row_max, with_stats.row_max));
    CHECK(same_bits(alone.row_sum, with_stats.row_sum));
    CHECK(same_bits(alone.lse, with_stats.lse));
  }
  omp_set_num_threads(threads_before);
}

TEST_CASE("a row alone has the bits that it has among others", "[general][bits]") {
  const CpuHandle handle;
  for (const GeneralCase &c : every_way()) {
    if (c.mask_kind == SOFTMAX_MASK_CAUSAL) continue;  // whose row knows its number
    const GeneralValues values = make_values(c);
    const Elements together = run(handle, c, values).y;
    const std::int64_t cols = c.cols();
    const auto size = static_cast<std::size_t>(format_of(c.y_dtype).size_bytes);
    for (const std::int64_t r : {std::int64_t{0}, c.rows() / 2, c.rows() - 1}) {
      GeneralCase one = c;
      one.shape = {1, cols};
      one.x_lie = Lie::kSpread;
      GeneralValues row;
      const auto part = [&](auto &to, const auto &from, std::int64_t count) {
        to.assign(from.begin() + r * count, from.begin() + (r + 1) * count);
      };
      part(row.x, values.x, cols);
      part(row.dy, values.dy, cols);
      part(row.additive, values.additive, cols);
      part(row.keep, values.keep, cols);
      part(row.length, values.length, 1);
      part(row.row_scale, values.row_scale, 1);
      part(row.sink, values.sink, 1);
      const Elements alone = run(handle, one, row).y;
      INFO(c.text() << " row " << r);
      CHECK(std::memcmp(alone.bytes.data(), together.bytes.data() + r * cols * size,
                        alone.bytes.size()) == 0);
    }
  }
}

}  // namespace softmax_test
