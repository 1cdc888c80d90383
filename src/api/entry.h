// What every entry point that computes has in common.
#pragma once

#include <exception>

#include "api/handle.h"
#include "api/status.h"

namespace softmax {

inline Status check_handle(const softmax_context *handle) {
  if (is_alive(handle)) return SOFTMAX_SUCCESS;
  return fail(SOFTMAX_STATUS_BAD_HANDLE, handle == nullptr
                                             ? "the handle is NULL"
                                             : "the handle was destroyed, or never created");
}

// No C++ exception may leave the library. The code below throws none of its own; this is for what
// the standard library or OpenMP could throw.
template <typename Body>
Status guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::exception &error) {
    return fail(SOFTMAX_STATUS_INTERNAL, "unexpected exception: %s", error.what());
  } catch (...) {
    return fail(SOFTMAX_STATUS_INTERNAL, "unexpected exception");
  }
}

}  // namespace softmax
