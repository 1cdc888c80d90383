// A device that the reports run on: a handle, its algorithms, and memory that it can reach.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "input.h"
#include "softmax.h"

namespace reports {

class Device {
 public:
  virtual ~Device() = default;

  virtual const char *name() const = 0;
  virtual bool is_cuda() const = 0;
  virtual std::int32_t ordinal() const = 0;  // as softmax_create takes it
  virtual softmax_stream_t stream() const = 0;
  // Matrices of more elements than this are not run here: an entry that needs a GPU is run on the
  // CPU as well where it is cheap.
  virtual std::int64_t limit_for(const Entry &entry) const = 0;
  // The same where the host does not look at every element.
  virtual std::int64_t unchecked_limit_for(const Entry &entry) const { return limit_for(entry); }
  // Whether an algorithm ends in reasonable time on rows of so many columns.
  virtual bool affords(softmax_algo_t, std::int64_t) const { return true; }

  // Throws std::bad_alloc.
  virtual void *allocate(std::size_t bytes) = 0;
  virtual void release(void *memory) = 0;
  virtual void write(void *to, const void *from, std::size_t bytes) = 0;
  virtual void read(void *to, const void *from, std::size_t bytes) = 0;
  virtual void fill(void *to, int byte, std::size_t bytes) = 0;

  // Waits for the stream. What went wrong since the last call, pending errors included, or "".
  virtual std::string finish(softmax_stream_t stream) = 0;
  std::string finish() { return finish(stream()); }

  // More streams for more threads; the CPU has none, and null stands for it.
  virtual softmax_stream_t open_stream() = 0;
  virtual void close_stream(softmax_stream_t stream) = 0;

  // Makes an input in the device's memory.
  virtual void generate(void *to, const Input &input) = 0;

  // Counts the bytes at which a and b differ, in the order of the stream, on top of what was
  // counted before; differences() waits, tells the count and begins anew.
  virtual void compare(const void *a, const void *b, std::size_t bytes) = 0;
  virtual std::int64_t differences() = 0;

  // Keeps the device busy beside the stream for a moment.
  virtual void disturb() = 0;

  softmax_handle_t handle() const { return handle_; }

  // The algorithms that take every problem, AUTO first.
  std::vector<softmax_algo_t> algos() const {
    if (is_cuda()) {
      return {SOFTMAX_ALGO_AUTO,        SOFTMAX_ALGO_NAIVE,    SOFTMAX_ALGO_SHARED,
              SOFTMAX_ALGO_SHUFFLE,     SOFTMAX_ALGO_VECTOR,   SOFTMAX_ALGO_ONLINE,
              SOFTMAX_ALGO_WARP_ONLINE, SOFTMAX_ALGO_REFERENCE};
    }
    return {SOFTMAX_ALGO_AUTO, SOFTMAX_ALGO_NAIVE, SOFTMAX_ALGO_VECTOR, SOFTMAX_ALGO_ONLINE,
            SOFTMAX_ALGO_REFERENCE};
  }
  // These and, of those that hold a row on chip, the ones that softmax_select names for rows of so
  // many columns. (What they must take, the GPU tests say.)
  std::vector<softmax_algo_t> algos_for(std::int32_t x_dtype, std::int32_t y_dtype,
                                        std::int64_t columns) const;

 protected:
  softmax_handle_t handle_ = nullptr;
};

std::unique_ptr<Device> make_cpu_device();
// Throws std::runtime_error with the reason where softmax_create refuses.
std::unique_ptr<Device> make_cuda_device(std::int32_t ordinal);

// A device buffer between two guards that must stay as they are. The guards, and the elements until
// they are written, are all-ones bytes: a NaN in every type, so that a read beyond the edge shows
// in the result as well.
class Guarded {
 public:
  // `data` is at `offset` bytes from a 256-byte boundary.
  Guarded(Device *device, std::size_t bytes, std::size_t guard_bytes, std::size_t offset);
  ~Guarded() { device_->release(memory_); }
  Guarded(const Guarded &) = delete;
  Guarded &operator=(const Guarded &) = delete;

  void *data() const { return static_cast<unsigned char *>(memory_) + before_; }
  std::size_t bytes() const { return bytes_; }
  void poison() { device_->fill(memory_, 0xff, before_ + bytes_ + after_); }
  void write(const std::vector<unsigned char> &from) {
    device_->write(data(), from.data(), from.size());
  }
  std::vector<unsigned char> read() const;
  bool guards_untouched() const;

 private:
  Device *device_;
  std::size_t before_;
  std::size_t bytes_;
  std::size_t after_;
  void *memory_;
};

// The name of an algorithm, or its number.
std::string algo_label(softmax_algo_t algo);

// A call as plain values.
struct Call {
  softmax_algo_t algo = SOFTMAX_ALGO_AUTO;
  bool is_log = false;
  const void *x = nullptr;
  std::int32_t x_dtype = SOFTMAX_DTYPE_F32;
  void *y = nullptr;
  std::int32_t y_dtype = SOFTMAX_DTYPE_F32;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

// Makes the call: by the headline function where it can be.
softmax_status_t make_call(const Call &call, softmax_handle_t handle, softmax_stream_t stream);
inline softmax_status_t make_call(const Call &call, const Device &device) {
  return make_call(call, device.handle(), device.stream());
}

}  // namespace reports
