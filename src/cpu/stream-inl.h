// Writing past the caches. Compiled once for each SIMD target.
#if defined(SOFTMAX_CPU_STREAM_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SOFTMAX_CPU_STREAM_INL_H
#undef SOFTMAX_CPU_STREAM_INL_H
#else
#define SOFTMAX_CPU_STREAM_INL_H
#endif

#include <cstdint>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace softmax {
namespace HWY_NAMESPACE {

constexpr std::int64_t kLineBytes = 64;

// memcpy with non-temporal stores for the whole cache lines of the destination: a plain store would
// first read the line. The ends are written plainly. hwy::FlushStream is the caller's.
HWY_INLINE void stream_copy(const void *from, void *to, std::int64_t bytes) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::uint8_t *source = static_cast<const std::uint8_t *>(from);
  std::uint8_t *target = static_cast<std::uint8_t *>(to);
  std::int64_t head =
      -static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to)) & (kLineBytes - 1);
  if (head > bytes) head = bytes;
  std::memcpy(target, source, static_cast<std::size_t>(head));
  std::int64_t done = head;
#if HWY_TARGET != HWY_SCALAR
  const std::int64_t step = static_cast<std::int64_t>(hn::Lanes(d));
  for (; done + step <= bytes; done += step)
    hn::Stream(hn::LoadU(d, source + done), d, target + done);
#else
  (void)d;
#endif
  std::memcpy(target + done, source + done, static_cast<std::size_t>(bytes - done));
}

// Gathers outputs that follow each other in memory, and streams them when there are enough of them,
// so that rows which are no multiple of a cache line cost no partial lines.
template <typename Y>
class StreamWriter {
 public:
  static constexpr std::int64_t kCapacity = 8192 / static_cast<std::int64_t>(sizeof(Y));

  explicit StreamWriter(Y *target) : target_(target) {}

  // Room for `count` outputs, at most kCapacity.
  HWY_INLINE Y *reserve(std::int64_t count) {
    if (count_ + count > kCapacity) flush();
    Y *room = stage_ + count_;
    count_ += count;
    return room;
  }
  HWY_INLINE void flush() {
    stream_copy(stage_, target_, count_ * static_cast<std::int64_t>(sizeof(Y)));
    target_ += count_;
    count_ = 0;
  }

 private:
  Y *target_;
  std::int64_t count_ = 0;
  alignas(64) Y stage_[kCapacity];
};

}  // namespace HWY_NAMESPACE
}  // namespace softmax
HWY_AFTER_NAMESPACE();

#endif  // per target
