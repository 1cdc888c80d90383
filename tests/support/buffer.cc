// Guarded buffers. See buffer.h.
#include "support/buffer.h"

#include <cstring>
#include <new>

namespace softmax_test {
namespace {

// More than one block of 256 threads reaches with 16 bytes each.
constexpr std::size_t kGuardBytes = 4352;
constexpr unsigned char kGuard = 0xff;
// As f32 and bf16 about 1.5e16, as f16 203, as f64 2e127: finite, and no softmax or log-softmax.
constexpr unsigned char kPoison = 0x5a;

}  // namespace

void Buffer::lay_out(softmax_dtype_t dtype, std::int64_t count, int offset) {
  const auto size = static_cast<std::size_t>(format_of(dtype).size_bytes);
  dtype_ = dtype;
  first_byte_ = kGuardBytes + static_cast<std::size_t>(offset) * size;
  element_bytes_ = static_cast<std::size_t>(count) * size;
  const std::size_t bytes = first_byte_ + element_bytes_ + kGuardBytes;
  if (bytes > capacity_bytes_) {
    device_.release(memory_);
    capacity_bytes_ = 0;
    memory_ = device_.allocate(bytes + bytes / 2);
    if (memory_ == nullptr) throw std::bad_alloc();
    capacity_bytes_ = bytes + bytes / 2;
  }
  image_.resize(bytes);
  std::memset(image_.data(), kGuard, first_byte_);
  std::memset(image_.data() + first_byte_ + element_bytes_, kGuard, kGuardBytes);
}

void Buffer::put(const Elements &elements, int offset) {
  lay_out(elements.dtype, elements.count(), offset);
  std::memcpy(image_.data() + first_byte_, elements.bytes.data(), element_bytes_);
  device_.upload(memory_, image_.data(), image_.size());
}

void Buffer::poison(softmax_dtype_t dtype, std::int64_t count, int offset) {
  lay_out(dtype, count, offset);
  std::memset(image_.data() + first_byte_, kPoison, element_bytes_);
  device_.upload(memory_, image_.data(), image_.size());
}

Elements Buffer::get(std::string *damage) {
  device_.download(image_.data(), memory_, image_.size());
  damage->clear();
  const std::size_t end = first_byte_ + element_bytes_;
  for (std::size_t i = 0; i < image_.size(); ++i) {
    if (i == first_byte_) i = end;
    if (image_[i] != kGuard) {
      *damage = i < first_byte_
                    ? "byte " + std::to_string(first_byte_ - i) + " before the buffer was written"
                    : "byte " + std::to_string(i - end) + " after the buffer was written";
      break;
    }
  }
  Elements elements;
  elements.dtype = dtype_;
  elements.bytes.assign(image_.begin() + static_cast<std::ptrdiff_t>(first_byte_),
                        image_.begin() + static_cast<std::ptrdiff_t>(end));
  return elements;
}

}  // namespace softmax_test
