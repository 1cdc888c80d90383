// Bulk asynchronous copies between global and shared memory, and the ring of slots that they fill
// (compute capability 9.0 and above; PTX ISA, cp.async.bulk and mbarrier).
//
// A range of global memory lies in a slot at its own offset from a line's boundary, so that the
// enclosing words can be copied as they are, whatever the range's alignment.
#pragma once

#include <cstdint>

#include "core/window.h"
#include "cuda/prim/element.cuh"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define SOFTMAX_BULK_COPY 1
#include <cuda/ptx>
#else
#define SOFTMAX_BULK_COPY 0
#endif

namespace softmax {

// Where in the ring a copy goes, and which completion of the slot's barrier it is.
struct Turn {
  int slot = 0;
  std::uint32_t phase = 0;

  __device__ __forceinline__ void advance(int slots) {
    if (++slot == slots) {
      slot = 0;
      phase ^= 1;
    }
  }
};

__device__ __forceinline__ std::uint64_t address_of(const void *p) {
  return reinterpret_cast<std::uint64_t>(p);
}

// Copies a range's head or tail, a few elements, with the threads of one warp or more.
template <typename T>
__device__ __forceinline__ void copy_elements(T *to, const T *from, int count, int thread) {
  if (thread < count) to[thread] = from[thread];
}

#if SOFTMAX_BULK_COPY

// For threads that wait: the hardware suspends them for a while, so the loop turns seldom.
__device__ __forceinline__ void wait_for(std::uint64_t *barrier, std::uint32_t phase) {
  while (!cuda::ptx::mbarrier_try_wait_parity(barrier, phase)) {
  }
}

// What the thread has written before is there for whoever waits.
__device__ __forceinline__ void arrive_at(std::uint64_t *barrier) {
  cuda::ptx::mbarrier_arrive(cuda::ptx::sem_release, cuda::ptx::scope_cta, cuda::ptx::space_shared,
                             barrier);
}

// Slots in shared memory that global ranges of X are copied into: a block's, or a warp's. Its first
// thread asks for copies; all of its threads wait for them.
template <typename X>
class Ring {
 public:
  __device__ __forceinline__ Ring(unsigned char *slots, std::uint64_t *barriers, int count,
                                  int slot_bytes, ByteRange tensor)
      : slots_(slots),
        barriers_(barriers),
        count_(count),
        slot_bytes_(slot_bytes),
        tensor_(tensor) {}

  // By the first thread, before a barrier that all pass.
  __device__ __forceinline__ void initialise() const {
    for (int i = 0; i < count_; ++i) cuda::ptx::mbarrier_init(&barriers_[i], 1);
  }

  __device__ __forceinline__ int count() const { return count_; }
  __device__ __forceinline__ unsigned char *slot(int i) const { return slots_ + i * slot_bytes_; }

  // Where a range lies in its slot.
  __device__ __forceinline__ unsigned char *place(Turn turn, ByteRange range) const {
    return slot(turn.slot) + line_shift(range.begin);
  }

  // By the first thread: begins to copy `range` into the turn's slot, which nobody reads or writes
  // any more.
  __device__ __forceinline__ void load(Turn turn, ByteRange range) const {
    namespace ptx = cuda::ptx;
    const ByteRange bulk = load_window(range, tensor_).bulk;
    std::uint64_t *barrier = &barriers_[turn.slot];
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, barrier,
                                   bulk.size());
    if (bulk.size() == 0) return;
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global,
                       place(turn, range) + (bulk.begin - range.begin),
                       reinterpret_cast<const void *>(bulk.begin), bulk.size(), barrier);
  }

  // By every thread: waits for the turn's copy.
  __device__ __forceinline__ void wait(Turn turn) const {
    wait_for(&barriers_[turn.slot], turn.phase);
  }

  // Whether the words around a range may reach beyond the tensor: for the first and the last
  // ranges, which are several where ranges are shorter than a word.
  __device__ __forceinline__ bool may_have_ends(ByteRange range) const {
    return range.begin - tensor_.begin < kBulkBytes || tensor_.end - range.end < kBulkBytes;
  }

  // By every thread, after wait: brings the ends of a range that reaches an end of the tensor,
  // where there is no whole word to copy.
  __device__ __forceinline__ void fetch_ends(Turn turn, ByteRange range) const {
    const Window window = load_window(range, tensor_);
    if (window.head.size() + window.tail.size() == 0) return;
    copy_ends(turn, range, static_cast<int>(threadIdx.x));
    __syncthreads();
  }
  // The same by the threads of one warp or more, who meet afterwards.
  __device__ __forceinline__ void copy_ends(Turn turn, ByteRange range, int thread) const {
    const Window window = load_window(range, tensor_);
    constexpr int kSize = static_cast<int>(sizeof(X));
    X *const first = reinterpret_cast<X *>(place(turn, range));
    copy_elements(first, reinterpret_cast<const X *>(window.head.begin),
                  static_cast<int>(window.head.size()) / kSize, thread);
    copy_elements(first + (window.tail.begin - range.begin) / kSize,
                  reinterpret_cast<const X *>(window.tail.begin),
                  static_cast<int>(window.tail.size()) / kSize, thread);
  }

 private:
  unsigned char *slots_;
  std::uint64_t *barriers_;
  int count_;
  int slot_bytes_;
  ByteRange tensor_;
};

// Writes a range whose elements lie in a slot, as far past a 16-byte boundary as the range itself.
// By a warp, after every thread that wrote to the slot has passed fence_slot_writes and then a
// barrier, of the warp at least. Lane 0's bulk copy is a group of its own, to be waited for before
// the slot is used again; the other lanes have read their elements when this returns.
template <typename Y>
__device__ __forceinline__ void store_range(const Y *first, ByteRange range) {
  namespace ptx = cuda::ptx;
  constexpr int kSize = static_cast<int>(sizeof(Y));
  const int thread = static_cast<int>(threadIdx.x % 32);
  if (bulk_shift(range.begin | range.end) == 0) {
    if (thread == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared,
                         reinterpret_cast<void *>(range.begin), first, range.size());
      ptx::cp_async_bulk_commit_group();
    }
    return;
  }
  const Window window = store_window(range);
  if (thread == 0) {
    if (window.bulk.size() != 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared,
                         reinterpret_cast<void *>(window.bulk.begin),
                         first + (window.bulk.begin - range.begin) / kSize, window.bulk.size());
    }
    ptx::cp_async_bulk_commit_group();
  }
  copy_elements(reinterpret_cast<Y *>(window.head.begin), first,
                static_cast<int>(window.head.size()) / kSize, thread);
  copy_elements(reinterpret_cast<Y *>(window.tail.begin),
                first + (window.tail.begin - range.begin) / kSize,
                static_cast<int>(window.tail.size()) / kSize, thread);
  __syncwarp();
}

// Makes a thread's writes to slots visible to bulk copies.
__device__ __forceinline__ void fence_slot_writes() {
  cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
}

// By lane 0: until at most kPending of its store_range copies still read their slots.
template <int kPending>
__device__ __forceinline__ void wait_for_stores() {
  cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<kPending>{});
}

// What lies in whole words of a range is on its way to L2.
__device__ __forceinline__ void prefetch_range(ByteRange range) {
  const Window window = store_window(range);
  if (window.bulk.size() == 0) return;
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;"
               :
               : "l"(window.bulk.begin), "r"(window.bulk.size())
               : "memory");
}

#endif  // SOFTMAX_BULK_COPY

}  // namespace softmax
