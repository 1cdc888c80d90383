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

// What becomes of a pointer to global memory whose address `use` has changed, as far as the
// compiler knows: the way through a global address tells it what kind of memory it is.
template <typename T, typename Use>
__device__ __forceinline__ T *with_global_address(T *pointer, Use use) {
  const std::size_t address = use(__cvta_generic_to_global(pointer));
  return static_cast<T *>(const_cast<void *>(__cvta_global_to_generic(address)));
}
// As anew.
template <typename T>
__device__ __forceinline__ T *anew_base(T *pointer) {
  return with_global_address(pointer, [](std::size_t address) {
    return static_cast<std::size_t>(anew(static_cast<std::int64_t>(address)));
  });
}
// A pointer to global memory that offsets are added to. `zero` is one of which the assembler knows
// nothing: it would rather add up the offsets first, in 64 bits and for each access anew.
template <typename T>
__device__ __forceinline__ T *as_base(T *pointer, std::uint32_t zero) {
  return with_global_address(pointer, [=](std::size_t address) { return address ^ zero; });
}

}  // namespace softmax
