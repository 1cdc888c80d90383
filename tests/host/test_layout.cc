// core/layout.h: shapes and strides reduced to rows, against offsets counted one by one; and which
// strides keep elements, and tensors, apart.
#include <set>
#include <vector>

#include "core/general.h"
#include "core/layout.h"
#include "support/catch.h"
#include "support/inputs.h"

namespace softmax_test {
namespace {

using softmax::Footprint;
using softmax::Layout;
using softmax::LayoutKind;
using softmax::LayoutStrides;
using softmax::Steps;

using Dims = std::vector<std::int64_t>;

Dims contiguous(const Dims &shape) {
  Dims stride(shape.size(), 1);
  for (int i = static_cast<int>(shape.size()) - 2; i >= 0; --i) {
    stride[i] = stride[i + 1] * shape[i + 1];
  }
  return stride;
}

Layout layout_of(const Dims &shape, int axis, const Dims &x, const Dims &y) {
  LayoutStrides parts[softmax::kTensors];
  parts[softmax::kTensorX].stride = x.data();
  parts[softmax::kTensorY].stride = y.data();
  return softmax::make_layout(static_cast<int>(shape.size()), axis, shape.data(), parts);
}

// The offset of row `row`, by taking its number apart dimension by dimension.
std::int64_t counted_offset(const Dims &shape, int axis, const Dims &stride, std::int64_t row) {
  std::int64_t at = 0;
  for (int i = static_cast<int>(shape.size()) - 1; i >= 0; --i) {
    if (i == axis) continue;
    at += row % shape[i] * stride[i];
    row /= shape[i];
  }
  return at;
}

LayoutKind kind(const Dims &shape, int axis, const Dims &stride) {
  return softmax::kind_of(layout_of(shape, axis, stride, stride), softmax::kTensorX);
}

Footprint footprint(std::uintptr_t first, int size, const Dims &extent, const Dims &stride) {
  Footprint f;
  f.first = first;
  f.size = size;
  for (std::size_t i = 0; i < extent.size(); ++i) f.steps.add(extent[i], stride[i]);
  return f;
}

std::set<std::uintptr_t> bytes_of(const Footprint &f) {
  std::set<std::uintptr_t> at = {f.first};
  for (int i = 0; i < f.steps.count; ++i) {
    std::set<std::uintptr_t> more;
    for (const std::uintptr_t a : at) {
      for (std::int64_t k = 0; k < f.steps.step[i].count; ++k) {
        more.insert(a + static_cast<std::uintptr_t>(k * f.steps.step[i].stride * f.size));
      }
    }
    at = more;
  }
  std::set<std::uintptr_t> bytes;
  for (const std::uintptr_t a : at) {
    for (std::int64_t b = 0; b < f.size; ++b) bytes.insert(a + static_cast<std::uintptr_t>(b));
  }
  return bytes;
}

std::int64_t pick(std::uint64_t seed, std::uint64_t index, std::int64_t from, std::int64_t to) {
  return from + static_cast<std::int64_t>(uniform(seed, index) * double(to - from + 1));
}

}  // namespace

TEST_CASE("every row of random layouts begins where counting says", "[layout]") {
  int collapsed = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const int ndim = static_cast<int>(pick(seed, 0, 1, 8));
    const int axis = static_cast<int>(pick(seed, 1, 0, ndim - 1));
    Dims shape(ndim), x(ndim), y(ndim);
    for (int i = 0; i < ndim; ++i) {
      shape[i] = pick(seed, 10 + i, 1, 3);
      x[i] = pick(seed, 20 + i, 0, 40);
      y[i] = pick(seed, 30 + i, 0, 40);
    }
    if (seed % 3 == 0) x = contiguous(shape);
    if (seed % 2 == 0) y = contiguous(shape);
    const Layout layout = layout_of(shape, axis, x, y);
    std::int64_t rows = 1;
    for (int i = 0; i < ndim; ++i) rows *= i == axis ? 1 : shape[i];
    REQUIRE(layout.rows == rows);
    REQUIRE(layout.cols == shape[axis]);
    CHECK(layout.axis_stride[softmax::kTensorX] == x[axis]);
    CHECK(layout.axis_stride[softmax::kTensorY] == y[axis]);
    for (std::int64_t r = 0; r < rows; ++r) {
      INFO("seed " << seed << " row " << r);
      CHECK(layout.offset(softmax::kTensorX, r) == counted_offset(shape, axis, x, r));
      CHECK(layout.offset(softmax::kTensorY, r) == counted_offset(shape, axis, y, r));
      CHECK(layout.offset(softmax::kTensorDy, r) == 0);
    }
    collapsed += layout.dims < ndim - 1;
  }
  CHECK(collapsed > 100);
}

TEST_CASE("contiguous dimensions collapse to one distance between rows", "[layout]") {
  const Dims shape = {2, 3, 1, 4, 5};
  const Layout last = layout_of(shape, 4, contiguous(shape), contiguous(shape));
  CHECK(last.dims == 1);
  CHECK(last.rows == 24);
  CHECK(last.pitch(softmax::kTensorX) == 5);
  const Layout middle = layout_of(shape, 1, contiguous(shape), contiguous(shape));
  CHECK(middle.dims == 2);  // 2, and 4 x 5 inside the axis
  CHECK(middle.extent[0] == 2);
  CHECK(middle.extent[1] == 20);
  // A tensor that does not permit it keeps the dimensions apart for all.
  const Layout apart = layout_of(shape, 4, contiguous(shape), {60, 20, 20, 100, 1});
  CHECK(apart.dims == 2);
}

TEST_CASE("a layout is recognised as what it is", "[layout]") {
  CHECK(kind({4, 25}, 1, {25, 1}) == LayoutKind::kContiguous);
  CHECK(kind({4, 25}, 1, {32, 1}) == LayoutKind::kRows);
  CHECK(kind({4, 25}, 1, {0, 1}) == LayoutKind::kRows);
  CHECK(kind({1, 25}, 1, {99, 1}) == LayoutKind::kContiguous);
  CHECK(kind({25}, 0, {1}) == LayoutKind::kContiguous);
  CHECK(kind({25}, 0, {2}) == LayoutKind::kGeneral);
  CHECK(kind({4, 25}, 1, {50, 2}) == LayoutKind::kGeneral);
  CHECK(kind({4, 25}, 0, {25, 1}) == LayoutKind::kInner);
  CHECK(kind({3, 4, 25}, 1, {100, 25, 1}) == LayoutKind::kInner);
  CHECK(kind({3, 4, 5, 5}, 1, {100, 25, 5, 1}) == LayoutKind::kInner);
  CHECK(kind({3, 4, 25}, 1, {128, 25, 1}) == LayoutKind::kInner);
  CHECK(kind({3, 4, 25}, 1, {128, 30, 1}) == LayoutKind::kInner);
  CHECK(kind({3, 4, 25}, 1, {250, 50, 2}) == LayoutKind::kGeneral);
  CHECK(kind({3, 4, 25}, 1, {100, 1, 4}) == LayoutKind::kContiguous);  // transposed back
  CHECK(kind({3, 4, 25}, 1, {100, 1, 5}) == LayoutKind::kRows);
  CHECK(kind({3, 4, 25}, 2, {25, 75, 1}) == LayoutKind::kRows);  // rows in another order
  CHECK(kind({3, 4, 1}, 2, {4, 1, 1}) == LayoutKind::kContiguous);
}

TEST_CASE("strides are apart exactly where no two elements could meet in any order", "[layout]") {
  const auto apart = [](const Dims &extent, const Dims &stride) {
    return footprint(0, 1, extent, stride).steps.are_apart();
  };
  CHECK(apart({4, 25}, {25, 1}));
  CHECK(apart({4, 25}, {1, 4}));
  CHECK(apart({4, 25}, {30, 1}));
  CHECK_FALSE(apart({4, 25}, {24, 1}));
  CHECK_FALSE(apart({4, 25}, {1, 3}));
  CHECK_FALSE(apart({2, 2}, {0, 1}));
  CHECK(apart({1, 2}, {0, 1}));
  CHECK_FALSE(apart({2, 2, 2}, {1, 2, 3}));
  // Whatever is accepted keeps its elements apart in fact.
  int accepted = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Dims extent(3), stride(3);
    std::int64_t elements = 1;
    for (int i = 0; i < 3; ++i) {
      extent[i] = pick(seed, i, 1, 4);
      stride[i] = pick(seed, 5 + i, 0, 20);
      elements *= extent[i];
    }
    if (!apart(extent, stride)) continue;
    ++accepted;
    CHECK(static_cast<std::int64_t>(bytes_of(footprint(0, 1, extent, stride)).size()) == elements);
  }
  CHECK(accepted > 100);
}

TEST_CASE("a reach past 63 bits is seen", "[layout]") {
  CHECK(footprint(0, 1, {3}, {INT64_MAX}).steps.reach() == -1);
  CHECK(footprint(0, 1, {2, 2}, {INT64_MAX, 1}).steps.reach() == -1);
  CHECK(footprint(0, 1, {2, 2}, {INT64_MAX - 1, 1}).steps.reach() == INT64_MAX);
}

TEST_CASE("views of one matrix that share no column are apart", "[layout]") {
  const Footprint left = footprint(1024, 4, {8, 16}, {32, 1});
  CHECK(provably_apart(left, footprint(1024 + 16 * 4, 4, {8, 16}, {32, 1})));
  CHECK_FALSE(provably_apart(left, footprint(1024 + 15 * 4, 4, {8, 16}, {32, 1})));
  CHECK_FALSE(provably_apart(left, footprint(1024 + 16 * 4, 4, {8, 17}, {32, 1})));
  CHECK(provably_apart(left, footprint(1024 + 16 * 4, 2, {8, 32}, {64, 1})));
  CHECK(provably_apart(footprint(0, 4, {50}, {2}), footprint(4, 4, {50}, {2})));
  CHECK_FALSE(provably_apart(footprint(0, 4, {50}, {2}), footprint(0, 4, {50}, {2})));
  CHECK(provably_apart(footprint(0, 4, {10}, {1}), footprint(40, 4, {10}, {1})));
}

TEST_CASE("two tensors that are called apart share no byte", "[layout]") {
  int met = 0, told = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Footprint f[2];
    for (int t = 0; t < 2; ++t) {
      Dims extent(2), stride(2);
      for (int i = 0; i < 2; ++i) {
        extent[i] = pick(seed, 10 * t + i, 1, 4);
        stride[i] = seed % 2 == 0 && i == 0 ? 12 : pick(seed, 10 * t + 5 + i, 0, 12);
      }
      const auto size = static_cast<int>(std::int64_t{1} << pick(seed, 10 * t + 8, 0, 2));
      f[t] = footprint(static_cast<std::uintptr_t>(pick(seed, 10 * t + 9, 0, 30)), size, extent,
                       stride);
    }
    if (!provably_apart(f[0], f[1])) continue;
    const bool ranges_meet = f[0].first < f[1].end() && f[1].first < f[0].end();
    told += ranges_meet;
    const std::set<std::uintptr_t> a = bytes_of(f[0]);
    bool shared = false;
    for (const std::uintptr_t byte : bytes_of(f[1])) shared = shared || a.count(byte) != 0;
    INFO("seed " << seed);
    CHECK_FALSE(shared);
    met += shared;
  }
  CHECK(told > 50);
}

TEST_CASE("causal rows keep as many columns as counting says, without overflow", "[layout]") {
  softmax::General general;
  general.mask_kind = SOFTMAX_MASK_CAUSAL;
  general.layout.cols = 7;
  general.causal_inner = 2;
  general.causal_extent = 5;
  for (const std::int64_t offset :
       {std::int64_t{-9}, std::int64_t{-5}, std::int64_t{-1}, std::int64_t{0}, std::int64_t{3},
        std::int64_t{9}, INT64_MAX, INT64_MIN}) {
    general.causal_offset = offset;
    for (std::int64_t row = 0; row < 30; ++row) {
      const std::int64_t index = row / 2 % 5;
      std::int64_t kept = 0;
      for (std::int64_t j = 0; j < 7; ++j) kept += double(j) <= double(index) + double(offset);
      INFO("offset " << offset << " row " << row);
      CHECK(general.row_length(nullptr, row) == kept);
    }
  }
}

}  // namespace softmax_test
