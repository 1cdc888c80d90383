// Scratch memory of one thread: on the stack where it is small.
#pragma once

#include <cstddef>
#include <cstdlib>

namespace softmax {

// Fresh pages from the system cost about as much as computing a few rows of terms again.
constexpr std::size_t kStackScratchBytes = 16384;

class Scratch {
 public:
  explicit Scratch(std::size_t bytes) {
    if (bytes > kStackScratchBytes) {
      owned_ = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
      data_ = owned_;
    }
  }
  ~Scratch() { std::free(owned_); }
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;
  void *data() const { return data_; }  // null where memory ran out

 private:
  alignas(64) unsigned char stack_[kStackScratchBytes];
  void *owned_ = nullptr;
  void *data_ = stack_;
};

}  // namespace softmax
