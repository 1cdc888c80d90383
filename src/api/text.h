// Copying a string out to a caller's buffer, the way every text-returning call does it.
#pragma once

#include <cstddef>
#include <cstring>

namespace softmax {

// Copies at most cap - 1 characters and a NUL; returns the whole length, so that a caller can see
// that it was cut.
inline std::size_t copy_out(const char *text, char *buf, std::size_t cap) {
  const std::size_t length = std::strlen(text);
  if (buf != nullptr && cap > 0) {
    const std::size_t copied = length < cap - 1 ? length : cap - 1;
    std::memcpy(buf, text, copied);
    buf[copied] = '\0';
  }
  return length;
}

}  // namespace softmax
