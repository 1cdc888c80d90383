// What the driver has been asked once, and need not be asked for every call.
#pragma once

#include <atomic>
#include <cstdint>

namespace softmax {

// Answers of 16 bits by key, both in one word. A slot lost to a collision is only asked for again.
class KnownAnswers {
 public:
  static constexpr int kBits = 16;

  bool find(std::uint64_t key, std::uint32_t *answer) const {
    const std::uint64_t word = slot(key).load(std::memory_order_relaxed);
    if (word == 0 || word >> kBits != key >> kBits) return false;
    *answer = static_cast<std::uint32_t>(word & ((1u << kBits) - 1));
    return true;
  }
  void insert(std::uint64_t key, std::uint32_t answer) {
    slot(key).store(key >> kBits << kBits | answer, std::memory_order_relaxed);
  }

  // Of a kernel, two numbers that say what it is launched for, and a device.
  static std::uint64_t key(const void *kernel, std::uint64_t a, std::uint64_t b, int device) {
    // Mixed before the first number joins: kernels' addresses differ by no more than such numbers.
    std::uint64_t hash = 0;
    const std::uint64_t parts[] = {reinterpret_cast<std::uintptr_t>(kernel), a, b,
                                   static_cast<std::uint64_t>(device)};
    for (const std::uint64_t part : parts) {
      hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    }
    return hash;
  }

 private:
  std::atomic<std::uint64_t> &slot(std::uint64_t key) const { return slots_[key >> 56]; }
  mutable std::atomic<std::uint64_t> slots_[256] = {};
};

}  // namespace softmax
