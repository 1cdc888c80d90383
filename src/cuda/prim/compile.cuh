// What kernels tell the compiler: how many blocks are to be resident, and which values it is not to
// take for ones that it has.
#pragma once

#include <cstdint>

namespace softmax {

// Blocks a multiprocessor for __launch_bounds__: as wished, where so many threads can be resident.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int kResidentThreads = 1024;
#else
constexpr int kResidentThreads = 1536;
#endif
template <int kWished, int kThreads>
constexpr int kResident =
    kWished *kThreads < kResidentThreads ? kWished : kResidentThreads / kThreads;

// For the compiler a value of its own each time: the comparisons of loading would otherwise be kept
// for storing, a register of predicates and its unpacking for each.
__device__ __forceinline__ int anew(int value) {
  asm volatile("" : "+r"(value));
  return value;
}
__device__ __forceinline__ std::uint32_t anew(std::uint32_t value) {
  asm volatile("" : "+r"(value));
  return value;
}
__device__ __forceinline__ std::int64_t anew(std::int64_t value) {
  asm volatile("" : "+l"(value));
  return value;
}
// The same of a pointer to global memory.
template <typename T>
__device__ __forceinline__ T *anew_base(T *pointer) {
  // The way through a global address tells the compiler what kind of memory it is.
  const std::int64_t address = anew(static_cast<std::int64_t>(__cvta_generic_to_global(pointer)));
  return static_cast<T *>(const_cast<void *>(__cvta_global_to_generic(address)));
}
// A pointer to global memory that offsets are added to. `zero` is one of which the assembler knows
// nothing: it would rather add up the offsets first, in 64 bits and for each access anew.
template <typename T>
__device__ __forceinline__ T *as_base(T *pointer, std::uint32_t zero) {
  // The way through a global address tells the compiler what kind of memory it is.
  const std::size_t address = __cvta_generic_to_global(pointer) ^ zero;
  return static_cast<T *>(const_cast<void *>(__cvta_global_to_generic(address)));
}

}  // namespace softmax
