// Device memory for one matrix at any element offset, between guards that are checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/device.h"
#include "support/element.h"

namespace softmax_test {

// Holds its memory from one use to the next and grows as needed. Around the elements every byte is
// 0xff: a NaN in every type, so that a value read from there shows in the result, and one written
// there shows when the guards are checked.
class Buffer {
 public:
  explicit Buffer(Device &device) : device_(device) {}
  ~Buffer() { device_.release(memory_); }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;

  // Lays out `count` elements, the first of them `offset` elements past an aligned address, and
  // fills them: with the elements given, or with poison that is no result of any softmax.
  void put(const Elements &elements, int offset);
  void poison(softmax_dtype_t dtype, std::int64_t count, int offset);

  void *data() const { return static_cast<unsigned char *>(memory_) + first_byte_; }

  // Reads everything back: the elements, and in *damage a sentence where a guard was changed, or
  // nothing.
  Elements get(std::string *damage);

 private:
  void lay_out(softmax_dtype_t dtype, std::int64_t count, int offset);

  Device &device_;
  void *memory_ = nullptr;
  std::size_t capacity_bytes_ = 0;
  std::size_t first_byte_ = 0;
  std::size_t element_bytes_ = 0;
  softmax_dtype_t dtype_ = SOFTMAX_DTYPE_F32;
  std::vector<unsigned char> image_;  // guards and elements, as on the device
};

}  // namespace softmax_test
