// Problems of the general call. See general.h.
#include "support/general.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include "support/inputs.h"

namespace softmax_test {
namespace {

constexpr std::size_t kGuard = 64;

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

// A tensor in memory between guards, everything that is no element 0xa5.
class Tensor {
 public:
  Tensor(const GeneralCase &c, softmax_dtype_t dtype, int size, Lie lie)
      : c_(c), dtype_(dtype), size_(size), stride_(strides_for(c.shape, lie)) {
    std::int64_t reach = 1;
    for (std::size_t i = 0; i < c.shape.size(); ++i) reach += (c.shape[i] - 1) * stride_[i];
    bytes_.assign(2 * kGuard + static_cast<std::size_t>(reach * size), 0xa5);
  }
  void *data() { return bytes_.data() + kGuard; }
  // Row r, column j.
  std::int64_t at(std::int64_t r, std::int64_t j) const {
    std::int64_t offset = 0;
    for (int i = static_cast<int>(c_.shape.size()) - 1; i >= 0; --i) {
      if (i == c_.axis_index()) {
        offset += j * stride_[i];
      } else {
        offset += r % c_.shape[i] * stride_[i];
        r /= c_.shape[i];
      }
    }
    return offset;
  }
  template <typename Put>
  void fill(const Put &put) {
    for (std::int64_t r = 0; r < c_.rows(); ++r) {
      for (std::int64_t j = 0; j < c_.cols(); ++j) put(r * c_.cols() + j, at(r, j));
    }
  }
  void put(const std::vector<double> &values) {
    fill([&](std::int64_t i, std::int64_t to) {
      encode(dtype_, values[static_cast<std::size_t>(i)], data(), to);
    });
  }
  Elements get() {
    Elements result(dtype_, c_.rows() * c_.cols());
    fill([&](std::int64_t i, std::int64_t from) {
      std::memcpy(result.bytes.data() + i * size_, bytes_.data() + kGuard + from * size_,
                  static_cast<std::size_t>(size_));
    });
    return result;
  }
  // Everything but the elements is as it was.
  bool is_whole() {
    std::vector<bool> own(bytes_.size(), false);
    fill([&](std::int64_t, std::int64_t from) {
      for (int b = 0; b < size_; ++b)
        own[kGuard + static_cast<std::size_t>(from * size_ + b)] = true;
    });
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      if (!own[i] && bytes_[i] != 0xa5) return false;
    }
    return true;
  }
  void set_strides(int64_t *stride, Lie lie) const {
    for (std::size_t i = 0; i < stride_.size(); ++i) {
      stride[i] = lie == Lie::kContiguous ? 0 : stride_[i];
    }
  }
  const std::vector<unsigned char> &bytes() const { return bytes_; }

 private:
  const GeneralCase &c_;
  softmax_dtype_t dtype_;
  int size_;
  std::vector<std::int64_t> stride_;
  std::vector<unsigned char> bytes_;
};

std::vector<double> rounded(softmax_dtype_t dtype, std::vector<double> values) {
  double cell;
  for (double &v : values) {
    encode(dtype, v, &cell, 0);
    v = decode(dtype, &cell, 0);
  }
  return values;
}

double y_scale_of(const GeneralCase &c) {
  return c.y_scale == 0 || format_of(c.y_dtype).size_bytes != 1 ? 1.0 : c.y_scale;
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
  d.mask_kind = c.mask_kind;
  d.empty_row = c.empty_row;
  d.causal_offset = c.causal_offset;
  d.scale = c.scale;
  d.softcap = c.softcap;
  d.y_scale = c.y_scale;
  if (c.given_stats) d.flags |= SOFTMAX_FLAG_GIVEN_STATS;
  return d;
}

}  // namespace

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
      << (has_stats ? " stats" : "") << (given_stats ? " given" : "")
      << (in_place ? " in place" : "") << " seed " << seed;
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
  for (std::size_t i = 0; i < count; ++i) {
    v.x[i] = c.spread * normal(c.seed, i);
    v.dy[i] = normal(c.seed + 1000, i);
    v.keep[i] = uniform(c.seed + 2000, i) < 0.6 ? static_cast<unsigned char>(1 + i % 255) : 0;
    const double u = uniform(c.seed + 3000, i);
    v.additive[i] = u < 0.3 ? -HUGE_VAL : static_cast<float>(4 * u - 2);
  }
  v.x = rounded(c.x_dtype, v.x);
  v.dy = rounded(c.dy_dtype == 0 ? c.x_dtype : c.dy_dtype, v.dy);
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
  GeneralCase forward = c;
  forward.direction = SOFTMAX_DIRECTION_FORWARD;
  forward.given_stats = false;
  const GeneralReference reference = make_general_reference(forward, v);
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto row = static_cast<std::size_t>(r);
    // By way of float64, which v is: exactly what op STATS returns.
    v.row_max.push_back(static_cast<float>(static_cast<double>(reference.row_max[row])));
    v.row_sum.push_back(static_cast<float>(reference.row_sum_against(row, v.row_max[row])));
  }
  if (c.is_backward() && !c.given_stats) {
    for (const long double y : reference.y) v.y.push_back(static_cast<double>(y) * y_scale_of(c));
    v.y = rounded(c.y_dtype, v.y);
    for (double &y : v.y) y /= y_scale_of(c);
  }
  return v;
}

GeneralResult run_general(softmax_handle_t handle, const GeneralCase &c,
                          const GeneralValues &values) {
  GeneralResult result;
  const auto rows = static_cast<std::size_t>(c.rows());
  softmax_desc_t desc = desc_of(c);
  softmax_args_t args = {};
  args.struct_size = sizeof args;
  const softmax_dtype_t dy_dtype = c.dy_dtype == 0 ? c.x_dtype : c.dy_dtype;
  const bool from_y = c.is_backward() && !c.given_stats;

  Tensor x(c, c.x_dtype, format_of(c.x_dtype).size_bytes, c.x_lie);
  Tensor y(c, c.y_dtype, format_of(c.y_dtype).size_bytes, c.y_lie);
  Tensor dy(c, dy_dtype, format_of(dy_dtype).size_bytes, c.dy_lie);
  Tensor dx(c, c.x_dtype, format_of(c.x_dtype).size_bytes, c.x_lie);
  x.put(values.x);
  dy.put(values.dy);
  if (from_y) {
    std::vector<double> stored = values.y;
    for (double &v : stored) v *= y_scale_of(c);
    y.put(stored);
  }
  x.set_strides(desc.x_stride, c.x_lie);
  y.set_strides(desc.y_stride, c.y_lie);
  dy.set_strides(desc.dy_stride, c.dy_lie);
  const std::vector<unsigned char> x_before = x.bytes(), dy_before = dy.bytes(),
                                   y_before = y.bytes();

  const bool additive = c.mask_kind == SOFTMAX_MASK_ADDITIVE;
  Tensor mask(c, SOFTMAX_DTYPE_F32, additive ? 4 : 1, c.mask_lie);
  if (additive) mask.put(values.additive);
  if (c.mask_kind == SOFTMAX_MASK_BOOL_KEEP) {
    mask.fill([&](std::int64_t i, std::int64_t to) {
      static_cast<unsigned char *>(mask.data())[to] = values.keep[static_cast<std::size_t>(i)];
    });
  }
  if (c.mask_kind == SOFTMAX_MASK_ROW_LENGTH) {
    args.mask = values.length.data();
  } else if (additive || c.mask_kind == SOFTMAX_MASK_BOOL_KEEP) {
    mask.set_strides(desc.mask_stride, c.mask_lie);
    args.mask = mask.data();
  }

  Tensor *output = &y;
  if (!from_y) args.x = x.data();
  if (c.is_backward()) {
    args.dy = dy.data();
    if (from_y) args.y = y.data();
    output = c.in_place ? &dy : &dx;
    args.dx = output->data();
  } else if (c.op != SOFTMAX_OP_STATS) {
    output = c.in_place ? &x : &y;
    args.y = output->data();
  }
  if (c.has_row_scale) args.row_scale = values.row_scale.data();
  if (c.has_sink) args.sink = values.sink.data();
  std::vector<float> row_max(rows, 7.0f), row_sum = row_max, lse = row_max;
  if (c.given_stats) {
    row_max = values.row_max;
    row_sum = values.row_sum;
    args.row_max = row_max.data();
    args.row_sum = row_sum.data();
    if (c.has_stats) args.lse = lse.data();
  } else if (c.has_stats) {
    args.row_max = row_max.data();
    args.row_sum = row_sum.data();
    args.lse = lse.data();
  }

  result.status = softmax_execute(handle, c.algo, &desc, &args, nullptr);
  result.y = output->get();
  result.row_max = row_max;
  result.row_sum = row_sum;
  result.lse = lse;
  if (!output->is_whole()) result.damage = "bytes between output elements were written";
  if (output != &x && x.bytes() != x_before) result.damage = "x was written";
  if (output != &dy && dy.bytes() != dy_before) result.damage = "dy was written";
  if (output != &y && y.bytes() != y_before) result.damage = "y was written";
  return result;
}

std::string check_general(softmax_handle_t handle, const GeneralCase &c) {
  return check_general(handle, c, make_values(c));
}

std::string check_general(softmax_handle_t handle, const GeneralCase &c,
                          const GeneralValues &values) {
  const GeneralResult result = run_general(handle, c, values);
  std::ostringstream wrong;
  if (result.status != SOFTMAX_SUCCESS) {
    char text[512];
    softmax_last_error(text, sizeof text);
    wrong << c.text() << ": status " << result.status << ": " << text;
    return wrong.str();
  }
  if (!result.damage.empty()) return c.text() + ": " + result.damage;
  const GeneralReference reference = make_general_reference(c, values);
  const std::int64_t cols = c.cols();

  const auto float_is = [&](const char *what, float got, long double expected, double slack) {
    const double error = error_ulps(format_of(SOFTMAX_DTYPE_F32), got, expected);
    if (error <= 0.51 || std::fabs(got - expected) <= slack) return;
    if (wrong.tellp() == 0) wrong << c.text() << ": " << what << " " << got << " for " << expected;
  };
  for (std::size_t r = 0; c.has_stats && r < reference.row_max.size(); ++r) {
    const long double scale = std::fabs(reference.row_max[r]) + 1;
    if (!c.given_stats) {
      float_is("row_max", result.row_max[r], reference.row_max[r], 0);
      const long double sum = reference.row_sum_against(r, result.row_max[r]);
      float_is("row_sum", result.row_sum[r], sum, static_cast<double>(1e-14L * scale * sum));
    }
    float_is("lse", result.lse[r], reference.lse[r], static_cast<double>(1e-14L * scale));
  }
  if (c.op == SOFTMAX_OP_STATS) return wrong.str();

  const softmax_dtype_t dtype = c.is_backward() ? c.x_dtype : c.y_dtype;
  const Format &format = format_of(dtype);
  const bool is_f8 = format.size_bytes == 1;
  Bound bound = promised_bound(dtype);
  if (c.is_backward()) bound = {0.51, 0.51};
  const double scale = c.is_backward() ? 1.0 : y_scale_of(c);
  for (std::int64_t i = 0; i < result.y.count() && wrong.tellp() == 0; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const long double expected = reference.y[at] * scale;
    const double got = result.y[i];
    double cell = 0;
    if (is_f8) {  // what saturation makes of it
      encode(dtype, static_cast<double>(expected), &cell, 0);
      cell = decode(dtype, &cell, 0);
    }
    const bool subnormal = std::fabs(expected) < std::ldexp(1.0L, format.min_exponent);
    const double allowed = subnormal ? std::max(bound.subnormal_steps, bound.ulps) : bound.ulps;
    const bool near = error_ulps(format, got, expected) <= allowed;
    const bool saturated = is_f8 && (cell == got || (std::isnan(cell) && std::isnan(got)));
    long double slack = 0;
    // What is left where v - row_max and log(row_sum) cancel.
    if (c.given_stats && c.is_log()) slack = 1e-15L;
    if (c.is_backward()) {
      // The slack, and the rounding to the type from wherever it has led.
      const int exponent =
          std::max(expected == 0 ? format.min_exponent : std::ilogb(expected), format.min_exponent);
      slack = reference.slack[at] + std::ldexp(0.51L, exponent - format.precision + 1);
    }
    if (near || saturated || std::fabs(got - expected) <= slack) continue;
    wrong << c.text() << ": row " << i / cols << " column " << i % cols << ": got " << got
          << " expected " << static_cast<double>(expected) << ", "
          << error_ulps(format, got, expected) << " ulp apart";
  }
  return wrong.str();
}

}  // namespace softmax_test
