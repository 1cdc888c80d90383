// What a handle points to.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/problem.h"
#include "cuda/backend.h"

struct softmax_context {
  std::uint64_t magic;  // kHandleMagic while alive
  softmax::DeviceCaps caps;
  softmax::CudaDevice cuda;  // meaningful where caps.is_cuda
  void *workspace;
  std::size_t workspace_bytes;
  softmax_context *next_free;  // see handle.cc
};

namespace softmax {

constexpr std::uint64_t kHandleMagic = 0x736f66746d617830;  // "softmax0"

inline bool is_alive(const softmax_context *handle) {
  return handle != nullptr && handle->magic == kHandleMagic;
}

}  // namespace softmax
