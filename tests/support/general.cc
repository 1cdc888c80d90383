// Problems of the general call. See general.h.
#include "support/general.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "support/inputs.h"

namespace softmax_test {
namespace {

// More elements than this are worth more than one thread.
constexpr std::int64_t kMany = 32768;

void set_strides(const GeneralCase &c, Lie lie, int64_t *stride) {
  if (lie == Lie::kContiguous) return;
  const std::vector<std::int64_t> strides = strides_for(c.shape, lie);
  std::copy(strides.begin(), strides.end(), stride);
}

}  // namespace

std::vector<std::int64_t> strides_for(const std::vector<std::int64_t> &shape, Lie lie) {
  const int ndim = static_cast<int>(shape.size());
  std::vector<std::int64_t> stride(shape.size());
  std::int64_t next = lie == Lie::kSpread ? 2 : 1;
  for (int k = 0; k < ndim; ++k) {
    const int i = lie == Lie::kReversed ? k : ndim - 1 - k;
    stride[i] = next;
    next = next * shape[i] + (lie == Lie::kPadded && k == 0 ? 3 : 0);
  }
  return stride;
}

double y_scale_of(const GeneralCase &c) {
  return c.y_scale == 0 || format_of(c.y_dtype).size_bytes != 1 ? 1.0 : c.y_scale;
}

std::vector<double> rounded_to(softmax_dtype_t dtype, std::vector<double> values) {
  const auto count = static_cast<std::int64_t>(values.size());
#pragma omp parallel for schedule(static) if (count > kMany)
  for (std::int64_t i = 0; i < count; ++i) {
    double cell, &v = values[static_cast<std::size_t>(i)];
    encode(dtype, v, &cell, 0);
    v = decode(dtype, &cell, 0);
  }
  return values;
}

softmax_desc_t desc_of(const GeneralCase &c) {
  softmax_desc_t d;
  softmax_desc_init(&d, sizeof d, c.op, c.x_dtype, 1, 1);
  d.direction = c.direction;
  d.y_dtype = c.y_dtype;
  d.dy_dtype = c.dy_dtype;
  d.ndim = static_cast<int32_t>(c.shape.size());
  d.axis = c.axis;
  for (std::size_t i = 0; i < c.shape.size(); ++i) d.shape[i] = c.shape[i];
  set_strides(c, c.x_lie, d.x_stride);
  set_strides(c, c.y_lie, d.y_stride);
  set_strides(c, c.dy_lie, d.dy_stride);
  if (c.mask_kind == SOFTMAX_MASK_BOOL_KEEP || c.mask_kind == SOFTMAX_MASK_ADDITIVE) {
    set_strides(c, c.mask_lie, d.mask_stride);
  }
  d.mask_kind = c.mask_kind;
  d.empty_row = c.empty_row;
  d.causal_offset = c.causal_offset;
  d.scale = c.scale;
  d.softcap = c.softcap;
  d.y_scale = c.y_scale;
  d.flags = c.flags | (c.given_stats ? SOFTMAX_FLAG_GIVEN_STATS : 0);
  return d;
}

std::int64_t GeneralCase::rows() const {
  std::int64_t rows = 1;
  for (int i = 0; i < static_cast<int>(shape.size()); ++i) rows *= i == axis_index() ? 1 : shape[i];
  return rows;
}

std::string GeneralCase::text() const {
  std::ostringstream out;
  out << "shape";
  for (const std::int64_t n : shape) out << ' ' << n;
  out << " axis " << axis << " lies " << int(x_lie) << int(y_lie) << int(mask_lie) << int(dy_lie)
      << ' ' << format_of(x_dtype).name << "->" << format_of(y_dtype).name << " dy " << dy_dtype
      << " algo " << softmax_algo_name(algo) << " op " << op << (is_backward() ? " backward" : "")
      << " mask " << mask_kind << " empty " << empty_row << " offset " << causal_offset << " scale "
      << scale << " cap " << softcap << " y_scale " << y_scale
      << (has_row_scale ? " row_scale" : "") << (has_sink ? " sink" : "")
      << (has_stats ? lse_alone ? " lse" : " stats" : "") << (given_stats ? " given" : "")
      << (in_place ? " in place" : "") << " spread " << spread << " at " << offset << " seed "
      << seed;
  return out.str();
}

GeneralValues make_values(const GeneralCase &c) {
  GeneralValues v;
  const std::int64_t rows = c.rows(), cols = c.cols();
  const auto count = static_cast<std::size_t>(rows * cols);
  v.x.resize(count);
  v.dy.resize(count);
  v.additive.assign(count, 0.0);
  v.keep.resize(count);
#pragma omp parallel for schedule(static) if (rows * cols > kMany)
  for (std::size_t i = 0; i < count; ++i) {
    v.x[i] = c.spread * normal(c.seed, i);
    v.dy[i] = normal(c.seed + 1000, i);
    v.keep[i] = uniform(c.seed + 2000, i) < 0.6 ? static_cast<unsigned char>(1 + i % 255) : 0;
    const double u = uniform(c.seed + 3000, i);
    v.additive[i] = u < 0.3 ? -HUGE_VAL : static_cast<float>(4 * u - 2);
  }
  v.x = rounded_to(c.x_dtype, v.x);
  v.dy = rounded_to(c.dy_dtype == 0 ? c.x_dtype : c.dy_dtype, v.dy);
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto seed = static_cast<std::uint64_t>(r);
    // Every fifth row has nothing left.
    if (r % 5 == 4) {
      for (std::int64_t j = 0; j < cols; ++j) {
        v.keep[static_cast<std::size_t>(r * cols + j)] = 0;
        v.additive[static_cast<std::size_t>(r * cols + j)] = -HUGE_VAL;
      }
    }
    const double u = uniform(c.seed + 4000, seed);
    v.length.push_back(r % 5 == 4   ? (r % 2 == 0 ? 0 : -3)
                       : r % 5 == 3 ? static_cast<std::int32_t>(cols + r)
                                    : static_cast<std::int32_t>(1 + u * double(cols)));
    v.row_scale.push_back(r % 4 == 3 ? 0.0f : static_cast<float>(0.25 + 1.5 * u));
    v.sink.push_back(static_cast<float>(2 * normal(c.seed + 5000, seed)));
  }
  if (!c.given_stats && !c.is_from_y()) return v;
  GeneralCase forward = c;
  forward.direction = SOFTMAX_DIRECTION_FORWARD;
  forward.given_stats = false;
  forward.every = 1;
  const GeneralReference reference = make_general_reference(forward, v);
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto row = static_cast<std::size_t>(r);
    // By way of float64, which v is: exactly what op STATS returns.
    v.row_max.push_back(static_cast<float>(static_cast<double>(reference.row_max[row])));
    v.row_sum.push_back(static_cast<float>(reference.row_sum_against(row, v.row_max[row])));
  }
  if (c.is_from_y()) {
    for (const long double y : reference.y) v.y.push_back(static_cast<double>(y) * y_scale_of(c));
    v.y = rounded_to(c.y_dtype, v.y);
    for (double &y : v.y) y /= y_scale_of(c);
  }
  return v;
}

}  // namespace softmax_test
