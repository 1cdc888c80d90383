// What all devices share, and the CPU as a device.
#include "device.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

namespace reports {
namespace {

constexpr std::size_t kBoundary = 256;

std::size_t rounded_up(std::size_t bytes) {
  return (bytes + kBoundary - 1) / kBoundary * kBoundary;
}

class CpuDevice : public Device {
 public:
  CpuDevice() {
    if (softmax_create(&handle_, SOFTMAX_DEVICE_CPU) != SOFTMAX_SUCCESS) {
      throw std::runtime_error("softmax_create refuses the CPU");
    }
  }
  ~CpuDevice() override { softmax_destroy(handle_); }

  const char *name() const override { return "cpu"; }
  bool is_cuda() const override { return false; }
  std::int32_t ordinal() const override { return SOFTMAX_DEVICE_CPU; }
  softmax_stream_t stream() const override { return nullptr; }
  std::int64_t limit_for(const Entry &entry) const override {
    const bool asked_for = !entry.needs_word("gpu") || entry.needs_word("cpu");
    return std::int64_t{1} << (asked_for ? 23 : 18);
  }

  void *allocate(std::size_t bytes) override {
    void *memory = std::aligned_alloc(kBoundary, rounded_up(bytes));
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }
  void release(void *memory) override { std::free(memory); }
  void write(void *to, const void *from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void read(void *to, const void *from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void fill(void *to, int byte, std::size_t bytes) override { std::memset(to, byte, bytes); }
  std::string finish(softmax_stream_t) override { return ""; }
  softmax_stream_t open_stream() override { return nullptr; }
  void close_stream(softmax_stream_t) override {}
  void generate(void *to, const Input &input) override {
    const std::vector<unsigned char> encoded = encode_all(input);
    std::memcpy(to, encoded.data(), encoded.size());
  }
  void compare(const void *a, const void *b, std::size_t bytes) override {
    const auto *left = static_cast<const unsigned char *>(a);
    const auto *right = static_cast<const unsigned char *>(b);
    for (std::size_t n = 0; n < bytes; ++n) differences_ += left[n] != right[n];
  }
  std::int64_t differences() override {
    const std::int64_t count = differences_;
    differences_ = 0;
    return count;
  }
  void disturb() override {}

 private:
  std::int64_t differences_ = 0;
};

}  // namespace

std::vector<softmax_algo_t> Device::algos_for(std::int32_t x_dtype, std::int32_t y_dtype,
                                              std::int64_t columns) const {
  std::vector<softmax_algo_t> taking = algos();
  if (!is_cuda()) return taking;
  softmax_desc_t desc;
  if (softmax_desc_init(&desc, sizeof desc, SOFTMAX_OP_SOFTMAX, x_dtype, 1, columns) !=
      SOFTMAX_SUCCESS) {
    throw std::runtime_error("softmax_desc_init refuses the rows");
  }
  desc.y_dtype = y_dtype;
  for (const softmax_algo_t algo : {SOFTMAX_ALGO_WARP, SOFTMAX_ALGO_BLOCK, SOFTMAX_ALGO_TILE,
                                    SOFTMAX_ALGO_CLUSTER, SOFTMAX_ALGO_GRID}) {
    softmax_choice_t choice = {};
    choice.struct_size = sizeof choice;
    if (softmax_select(handle_, algo, &desc, &choice) == SOFTMAX_SUCCESS) taking.push_back(algo);
  }
  return taking;
}

std::unique_ptr<Device> make_cpu_device() { return std::make_unique<CpuDevice>(); }

Guarded::Guarded(Device *device, std::size_t bytes, std::size_t guard_bytes, std::size_t offset)
    : device_(device),
      before_(rounded_up(guard_bytes) + offset),
      bytes_(bytes),
      after_(rounded_up(guard_bytes)),
      memory_(device->allocate(before_ + bytes_ + after_)) {
  poison();
}

std::vector<unsigned char> Guarded::read() const {
  std::vector<unsigned char> bytes(bytes_);
  device_->read(bytes.data(), data(), bytes_);
  return bytes;
}

bool Guarded::guards_untouched() const {
  const auto untouched = [&](std::size_t from, std::size_t count) {
    std::vector<unsigned char> guard(count);
    device_->read(guard.data(), static_cast<unsigned char *>(memory_) + from, count);
    for (const unsigned char byte : guard) {
      if (byte != 0xff) return false;
    }
    return true;
  };
  return untouched(0, before_) && untouched(before_ + bytes_, after_);
}

std::string algo_label(softmax_algo_t algo) {
  const char *name = softmax_algo_name(algo);
  return name != nullptr ? name : std::to_string(algo);
}

softmax_status_t make_call(const Call &c, softmax_handle_t handle, softmax_stream_t stream) {
  if (c.x == c.y && c.x_dtype == SOFTMAX_DTYPE_F32 && c.y_dtype == SOFTMAX_DTYPE_F32) {
    const auto function = c.is_log ? logsoftmax_forward : softmax_forward;
    return function(handle, c.algo, static_cast<float *>(c.y), c.rows, c.columns, stream);
  }
  const auto function = c.is_log ? logsoftmax_forward_to : softmax_forward_to;
  return function(handle, c.algo, c.x, c.x_dtype, c.y, c.y_dtype, c.rows, c.columns, stream);
}

}  // namespace reports
