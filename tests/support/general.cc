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

// More elements than this are worth more than one thread.
constexpr std::int64_t kMany = 32768;

// A tensor in memory between guards, everything that is no element c.gap. One that the call has no
// use for has no memory.
class Tensor {
 public:
  Tensor(const GeneralCase &c, softmax_dtype_t dtype, int size, Lie lie, bool is_used)
      : c_(c), dtype_(dtype), size_(size), stride_(strides_for(c.shape, lie)) {
    if (!is_used) return;
    first_ = kGuard + static_cast<std::size_t>(c.offset * size);
    reach_ = 1;
    for (std::size_t i = 0; i < c.shape.size(); ++i) reach_ += (c.shape[i] - 1) * stride_[i];
    bytes_.assign(kGuard + first_ + static_cast<std::size_t>(reach_ * size),
                  static_cast<unsigned char>(c.gap));
  }
  bool is_used() const { return !bytes_.empty(); }
  void *data() { return bytes_.data() + first_; }
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
    const std::int64_t rows = c_.rows(), cols = c_.cols();
    const std::int64_t step = stride_[static_cast<std::size_t>(c_.axis_index())];
#pragma omp parallel for schedule(static) if (rows * cols > kMany)
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t first = at(r, 0);
      for (std::int64_t j = 0; j < cols; ++j) put(r * cols + j, first + j * step);
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
      std::memcpy(result.bytes.data() + i * size_, bytes_.data() + first_ + from * size_,
                  static_cast<std::size_t>(size_));
    });
    return result;
  }
  // Everything but the elements is as it was.
  bool is_whole() {
    std::vector<char> own(bytes_.size(), 0);
    if (reach_ == c_.rows() * c_.cols()) {
      std::fill_n(own.begin() + static_cast<std::ptrdiff_t>(first_), reach_ * size_, 1);
    } else {
      fill([&](std::int64_t, std::int64_t from) {
        for (int b = 0; b < size_; ++b)
          own[first_ + static_cast<std::size_t>(from * size_ + b)] = 1;
      });
    }
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      if (own[i] == 0 && bytes_[i] != c_.gap) return false;
    }
    return true;
  }
  std::size_t reach_bytes() const { return static_cast<std::size_t>(reach_ * size_); }
  std::size_t bytes_before() const { return first_ - kGuard; }  // an aligned address and data()
  std::vector<unsigned char> &bytes() { return bytes_; }

 private:
  const GeneralCase &c_;
  softmax_dtype_t dtype_;
  int size_;
  std::vector<std::int64_t> stride_;
  std::size_t first_ = 0;
  std::int64_t reach_ = 0;
  std::vector<unsigned char> bytes_;
};

// A call's buffers while they are in a device's memory: all of them in one block, each at an
// address of its own remainder, so that a call costs one copy there and one back; or each in an
// allocation of its own. Without a device they stay where they are.
class Carrier {
 public:
  Carrier(Device *device, int gap, bool exactly)
      : device_(device), gap_(static_cast<unsigned char>(gap)), exactly_(exactly) {}
  ~Carrier() {
    for (void *memory : own_) device_->release(memory);
  }
  Carrier(const Carrier &) = delete;
  Carrier &operator=(const Carrier &) = delete;

  void add(Tensor &t) {
    if (!t.is_used()) return;
    if (exactly_) {
      add(t.data(), t.reach_bytes(), t.bytes_before(), true);
    } else {
      add(t.bytes().data(), t.bytes().size(), kGuard, true);
    }
  }
  void add(std::vector<float> &rows) { add(rows.data(), rows.size() * 4, 0, true); }
  template <typename T>
  void add_input(const std::vector<T> &rows) {
    add(const_cast<T *>(rows.data()), rows.size() * sizeof(T), 0, false);
  }

  // To and from the device, with all that was added.
  void upload() {
    if (device_ == nullptr) return;
    if (exactly_) {
      for (Part &part : parts_) {
        own_.push_back(device_->allocate(part.at + part.bytes));
        if (own_.back() == nullptr) std::abort();
        part.there = static_cast<unsigned char *>(own_.back()) + part.at;
        device_->upload(part.there, part.host, part.bytes);
      }
      return;
    }
    before_.assign(end_ + kGuard, gap_);
    unsigned char *base = memory(before_.size());
    for (Part &part : parts_) {
      std::memcpy(before_.data() + part.at, part.host, part.bytes);
      part.there = base + part.at;
    }
    base_ = base;
    device_->upload(base_, before_.data(), before_.size());
  }
  // What a pointer into a buffer is on the device.
  template <typename T>
  T *operator()(T *host) const {
    if (device_ == nullptr || host == nullptr) return host;
    const auto *address = reinterpret_cast<const unsigned char *>(host);
    for (const Part &part : parts_) {
      if (address >= part.host && address < part.host + part.bytes) {
        return reinterpret_cast<T *>(part.there + (address - part.host));
      }
    }
    std::abort();
  }
  void download(std::string *damage) {
    if (device_ == nullptr) return;
    if (exactly_) {
      for (const Part &part : parts_) {
        std::vector<unsigned char> after(part.bytes);
        device_->download(after.data(), part.there, part.bytes);
        take(part, after.data(), damage);
      }
      return;
    }
    std::vector<unsigned char> after(before_.size());
    device_->download(after.data(), base_, after.size());
    std::size_t from = 0;
    const auto look_between = [&](std::size_t end) {
      if (std::memcmp(after.data() + from, before_.data() + from, end - from) != 0) {
        *damage = "bytes between buffers were written";
      }
    };
    for (const Part &part : parts_) {
      look_between(part.at);
      take(part, after.data() + part.at, damage);
      from = part.at + part.bytes;
    }
    look_between(after.size());
  }

 private:
  struct Part {
    unsigned char *host;
    std::size_t bytes;
    std::size_t at;  // in the block, or in an allocation of its own
    bool comes_back;
    unsigned char *there;
  };
  // What comes after the first `before` bytes is aligned to 256; of an allocation of its own those
  // are bytes that nothing initialises.
  void add(void *host, std::size_t bytes, std::size_t before, bool comes_back) {
    if (device_ == nullptr || bytes == 0) return;
    const std::size_t at = exactly_ ? before : (end_ + kGuard + before + 255) / 256 * 256 - before;
    parts_.push_back({static_cast<unsigned char *>(host), bytes, at, comes_back, nullptr});
    end_ = at + bytes;
  }
  static void take(const Part &part, const unsigned char *after, std::string *damage) {
    if (part.comes_back) {
      std::memcpy(part.host, after, part.bytes);
    } else if (std::memcmp(part.host, after, part.bytes) != 0) {
      *damage = "an input of one value a row was written";
    }
  }
  // One block for all calls: allocating one for each would be most of the time.
  unsigned char *memory(std::size_t bytes) {
    static void *block = nullptr;
    static std::size_t size = 0;
    if (size < bytes) {
      if (block != nullptr) device_->release(block);
      size = bytes + bytes / 2 + (std::size_t{1} << 20);
      block = device_->allocate(size);
      if (block == nullptr) std::abort();
    }
    return static_cast<unsigned char *>(block);
  }

  Device *device_;
  unsigned char gap_;
  bool exactly_;
  std::vector<Part> parts_;
  std::size_t end_ = 0;
  std::vector<unsigned char> before_;
  unsigned char *base_ = nullptr;
  std::vector<void *> own_;
};

double y_scale_of(const GeneralCase &c) {
  return c.y_scale == 0 || format_of(c.y_dtype).size_bytes != 1 ? 1.0 : c.y_scale;
}

void set_strides(const GeneralCase &c, Lie lie, int64_t *stride) {
  if (lie == Lie::kContiguous) return;
  const std::vector<std::int64_t> strides = strides_for(c.shape, lie);
  std::copy(strides.begin(), strides.end(), stride);
}

}  // namespace

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
      << (has_stats ? " stats" : "") << (given_stats ? " given" : "")
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

namespace {

GeneralResult run(Device *device, softmax_handle_t handle, const GeneralCase &c,
                  const GeneralValues &values, How how) {
  GeneralResult result;
  const auto rows = static_cast<std::size_t>(c.rows());
  const softmax_desc_t desc = desc_of(c);
  softmax_args_t args = {};
  args.struct_size = sizeof args;
  const softmax_dtype_t dy_dtype = c.dy_dtype == 0 ? c.x_dtype : c.dy_dtype;
  const bool stats = c.op == SOFTMAX_OP_STATS, backward = c.is_backward();
  const bool additive = c.mask_kind == SOFTMAX_MASK_ADDITIVE;
  const bool keep = c.mask_kind == SOFTMAX_MASK_BOOL_KEEP;
  const auto size_of = [](softmax_dtype_t dtype) { return format_of(dtype).size_bytes; };

  Tensor x(c, c.x_dtype, size_of(c.x_dtype), c.x_lie, !c.is_from_y());
  Tensor y(c, c.y_dtype, size_of(c.y_dtype), c.y_lie,
           backward ? c.is_from_y() : !stats && !c.in_place);
  Tensor dy(c, dy_dtype, size_of(dy_dtype), c.dy_lie, backward);
  Tensor dx(c, c.x_dtype, size_of(c.x_dtype), c.x_lie, backward && !c.in_place);
  Tensor mask(c, SOFTMAX_DTYPE_F32, additive ? 4 : 1, c.mask_lie, additive || keep);
  if (x.is_used()) x.put(values.x);
  if (dy.is_used()) dy.put(values.dy);
  if (c.is_from_y()) {
    std::vector<double> stored = values.y;
    for (double &v : stored) v *= y_scale_of(c);
    y.put(stored);
  }
  if (additive) mask.put(values.additive);
  if (keep) {
    mask.fill([&](std::int64_t i, std::int64_t to) {
      static_cast<unsigned char *>(mask.data())[to] = values.keep[static_cast<std::size_t>(i)];
    });
  }
  std::vector<float> row_max(rows, 7.0f), row_sum = row_max, lse = row_max;
  if (c.given_stats) {
    row_max = values.row_max;
    row_sum = values.row_sum;
  }
  Tensor *const tensors[] = {&x, &y, &dy, &dx, &mask};
  std::vector<std::vector<unsigned char>> before;
  for (Tensor *tensor : tensors) before.push_back(tensor->bytes());
  const std::vector<float> row_max_before = row_max, row_sum_before = row_sum, lse_before = lse;

  const bool has_stats_out = c.has_stats && !c.given_stats;
  const bool has_stats_args = c.given_stats || has_stats_out;
  const bool has_sink = c.has_sink && !c.is_from_y();
  const bool has_length = c.mask_kind == SOFTMAX_MASK_ROW_LENGTH;
  Carrier carry(device, c.gap, how == How::kExactly);
  for (Tensor *tensor : tensors) carry.add(*tensor);
  if (has_length) carry.add_input(values.length);
  if (c.has_row_scale) carry.add_input(values.row_scale);
  if (has_sink) carry.add_input(values.sink);
  if (has_stats_args) carry.add(row_max);
  if (has_stats_args) carry.add(row_sum);
  if (c.has_stats) carry.add(lse);
  carry.upload();

  Tensor *output = stats ? nullptr : &y;
  if (x.is_used()) args.x = carry(x.data());
  if (backward) {
    args.dy = carry(dy.data());
    if (c.is_from_y()) args.y = carry(y.data());
    output = c.in_place ? &dy : &dx;
    args.dx = carry(output->data());
  } else if (!stats) {
    output = c.in_place ? &x : &y;
    args.y = carry(output->data());
  }
  if (has_length) args.mask = carry(values.length.data());
  if (mask.is_used()) args.mask = carry(mask.data());
  if (c.has_row_scale) args.row_scale = carry(values.row_scale.data());
  if (has_sink) args.sink = carry(values.sink.data());
  if (has_stats_args) args.row_max = carry(row_max.data());
  if (has_stats_args) args.row_sum = carry(row_sum.data());
  if (c.has_stats) args.lse = carry(lse.data());

  const softmax_stream_t stream = device != nullptr ? device->stream() : nullptr;
  const auto call = [&] { return softmax_execute(handle, c.algo, &desc, &args, stream); };
  result.status = how == How::kOtherwise ? device->run_otherwise(call) : call();
  carry.download(&result.damage);

  const auto same = [](const std::vector<float> &a, const std::vector<float> &b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  };
  result.is_untouched = result.damage.empty() && same(row_max, row_max_before) &&
                        same(row_sum, row_sum_before) && same(lse, lse_before);
  const char *const names[] = {"x", "y", "dy", "dx", "the mask"};
  for (std::size_t i = 0; i < 5; ++i) {
    if (tensors[i]->bytes() == before[i]) continue;
    result.is_untouched = false;
    if (tensors[i] != output) result.damage = std::string(names[i]) + " was written";
  }
  if (c.given_stats && !(same(row_max, row_max_before) && same(row_sum, row_sum_before))) {
    result.damage = "given statistics were written";
  }
  if (output != nullptr) {
    result.y = output->get();
    if (!output->is_whole()) result.damage = "bytes between output elements were written";
  }
  result.row_max = row_max;
  result.row_sum = row_sum;
  result.lse = lse;
  return result;
}

// Element i of an output, against the reference.
class Judge {
 public:
  Judge(const GeneralCase &c, const GeneralReference &reference, const GeneralResult &result)
      : c_(c),
        reference_(reference),
        result_(result),
        dtype_(c.is_backward() ? c.x_dtype : c.y_dtype),
        format_(format_of(dtype_)),
        bound_(c.is_backward() ? Bound{0.51, 0.51} : promised_bound(dtype_)),
        scale_(c.is_backward() ? 1.0 : y_scale_of(c)) {}

  long double expected(std::int64_t i) const {
    return reference_.y[static_cast<std::size_t>(i)] * scale_;
  }
  double got(std::int64_t i) const { return result_.y[i]; }
  double error(std::int64_t i) const { return error_ulps(format_, got(i), expected(i)); }

  bool is_right(std::int64_t i) const {
    const long double expected = this->expected(i);
    const double got = this->got(i);
    const bool subnormal = std::fabs(expected) < std::ldexp(1.0L, format_.min_exponent);
    const double allowed = subnormal ? std::max(bound_.subnormal_steps, bound_.ulps) : bound_.ulps;
    if (error(i) <= allowed) return true;
    if (format_.size_bytes == 1) {  // what saturation makes of it
      double cell = 0;
      encode(dtype_, static_cast<double>(expected), &cell, 0);
      cell = decode(dtype_, &cell, 0);
      if (cell == got || (std::isnan(cell) && std::isnan(got))) return true;
    }
    long double slack = 0;
    // What is left where v - row_max and log(row_sum) cancel.
    if (c_.given_stats && c_.is_log()) slack = 1e-15L;
    if (c_.is_backward()) {
      // The slack, and the rounding to the type from wherever it has led.
      const int exponent = std::max(expected == 0 ? format_.min_exponent : std::ilogb(expected),
                                    format_.min_exponent);
      slack = reference_.slack[static_cast<std::size_t>(i)] +
              std::ldexp(0.51L, exponent - format_.precision + 1);
    }
    return std::fabs(got - expected) <= slack;
  }

 private:
  const GeneralCase &c_;
  const GeneralReference &reference_;
  const GeneralResult &result_;
  const softmax_dtype_t dtype_;
  const Format &format_;
  const Bound bound_;
  const double scale_;
};

}  // namespace

GeneralResult run_general(softmax_handle_t handle, const GeneralCase &c,
                          const GeneralValues &values) {
  return run(nullptr, handle, c, values, How::kTogether);
}

GeneralResult run_general(Device &device, const GeneralCase &c, const GeneralValues &values,
                          How how) {
  return run(&device, device.handle(), c, values, how);
}

std::string judge_general(const GeneralCase &c, const GeneralReference &reference,
                          const GeneralResult &result) {
  std::ostringstream wrong;
  if (result.status != SOFTMAX_SUCCESS) {
    char text[512];
    softmax_last_error(text, sizeof text);
    wrong << c.text() << ": status " << result.status << ": " << text;
    return wrong.str();
  }
  if (!result.damage.empty()) return c.text() + ": " + result.damage;

  const auto float_is = [&](const char *what, std::size_t row, float got, long double expected,
                            double slack) {
    const double error = error_ulps(format_of(SOFTMAX_DTYPE_F32), got, expected);
    if (error <= 0.51 || std::fabs(got - expected) <= slack || wrong.tellp() != 0) return;
    wrong << c.text() << ": row " << row << ": " << what << " " << got << " for " << expected
          << ", " << error << " ulp apart";
  };
  const auto every = static_cast<std::size_t>(c.every);
  for (std::size_t r = 0; c.has_stats && r < reference.row_max.size(); r += every) {
    const long double scale = std::fabs(reference.row_max[r]) + 1;
    if (!c.given_stats) {
      float_is("row_max", r, result.row_max[r], reference.row_max[r], 0);
      const long double sum = reference.row_sum_against(r, result.row_max[r]);
      float_is("row_sum", r, result.row_sum[r], sum, static_cast<double>(1e-14L * scale * sum));
    }
    float_is("lse", r, result.lse[r], reference.lse[r], static_cast<double>(1e-14L * scale));
  }
  if (c.op == SOFTMAX_OP_STATS || wrong.tellp() != 0) return wrong.str();

  const Judge judge(c, reference, result);
  const std::int64_t rows = c.rows(), cols = c.cols();
  std::int64_t bad = INT64_MAX, bad_count = 0;
#pragma omp parallel for schedule(static) reduction(min : bad) \
    reduction(+ : bad_count) if (rows / c.every * cols > kMany)
  for (std::int64_t r = 0; r < rows; r += c.every) {
    for (std::int64_t i = r * cols; i < (r + 1) * cols; ++i) {
      if (judge.is_right(i)) continue;
      ++bad_count;
      bad = std::min(bad, i);
    }
  }
  if (bad_count > 0) {
    wrong << c.text() << ": " << bad_count << " wrong, the first in row " << bad / cols
          << " column " << bad % cols << ": got " << judge.got(bad) << " expected "
          << static_cast<double>(judge.expected(bad)) << ", " << judge.error(bad) << " ulp apart";
  }
  return wrong.str();
}

std::string check_general(softmax_handle_t handle, const GeneralCase &c) {
  return check_general(handle, c, make_values(c));
}

std::string check_general(softmax_handle_t handle, const GeneralCase &c,
                          const GeneralValues &values) {
  const GeneralResult result = run_general(handle, c, values);
  return judge_general(c, make_general_reference(c, values), result);
}

}  // namespace softmax_test
