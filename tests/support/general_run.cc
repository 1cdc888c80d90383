// Calls of general problems, in host memory and in a device's. See general.h.
#include <cstdlib>
#include <cstring>

#include "support/general.h"
#include "support/watchdog.h"

namespace softmax_test {
namespace {

constexpr std::size_t kGuard = 64;

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

GeneralResult run(Device *device, softmax_handle_t handle, const GeneralCase &c,
                  const GeneralValues &values, How how) {
  const Doing doing([&c] { return c.text(); });
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
  const bool has_stats_args = c.given_stats || (has_stats_out && !c.lse_alone);
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

}  // namespace

GeneralResult run_general(softmax_handle_t handle, const GeneralCase &c,
                          const GeneralValues &values) {
  return run(nullptr, handle, c, values, How::kTogether);
}

GeneralResult run_general(Device &device, const GeneralCase &c, const GeneralValues &values,
                          How how) {
  return run(&device, device.handle(), c, values, how);
}

}  // namespace softmax_test
