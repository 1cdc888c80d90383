// Creating, describing and destroying handles.
//
// The memory of a destroyed handle is kept for the next one and never returned to the allocator: so
// a handle that is used or destroyed a second time is seen (its magic is gone) instead of being a
// read of freed memory.
#include "api/handle.h"

#include <mutex>
#include <new>

#include "api/log.h"
#include "api/status.h"
#include "api/text.h"
#include "cpu/backend.h"

namespace softmax {
namespace {

// Leaked on purpose: a handle in a static object may be destroyed after this library's own statics.
struct FreeList {
  std::mutex mutex;
  softmax_context *first = nullptr;
};
FreeList &free_list() {
  static FreeList *list = new FreeList;
  return *list;
}

softmax_context *take_context() {
  FreeList &list = free_list();
  {
    const std::lock_guard<std::mutex> lock(list.mutex);
    if (list.first != nullptr) {
      softmax_context *context = list.first;
      list.first = context->next_free;
      return context;
    }
  }
  return new (std::nothrow) softmax_context;
}

void give_context(softmax_context *context) {
  FreeList &list = free_list();
  const std::lock_guard<std::mutex> lock(list.mutex);
  context->next_free = list.first;
  list.first = context;
}

Status open_device(std::int32_t device, softmax_context *context) {
  if (device == SOFTMAX_DEVICE_CPU) {
    cpu_open(&context->caps);
    return SOFTMAX_SUCCESS;
  }
  if (device == SOFTMAX_DEVICE_AUTO) {
    std::int32_t current = 0;
    if (cuda_current_device(&current) &&
        cuda_open(current, &context->caps, &context->cuda) == SOFTMAX_SUCCESS) {
      return SOFTMAX_SUCCESS;
    }
    // Not an error: but the log has the reason where a GPU is there and cannot be used.
    context->caps = DeviceCaps{};
    context->cuda = CudaDevice{};
    cpu_open(&context->caps);
    return SOFTMAX_SUCCESS;
  }
  if (device < 0) {
    return fail(SOFTMAX_STATUS_WRONG_DEVICE,
                "device %d does not exist: -1 is AUTO, -2 the CPU, 0 and up CUDA ordinals",
                static_cast<int>(device));
  }
  return cuda_open(device, &context->caps, &context->cuda);
}

}  // namespace
}  // namespace softmax

extern "C" {

softmax_status_t softmax_create(softmax_handle_t *handle, int32_t device) {
  using namespace softmax;
  if (handle == nullptr) return fail(SOFTMAX_STATUS_NULL_POINTER, "handle is NULL");
  *handle = nullptr;
  try {
    softmax_context *context = take_context();
    if (context == nullptr) {
      return fail(SOFTMAX_STATUS_HOST_MEMORY, "no memory for a handle");
    }
    *context = softmax_context{};
    if (Status s = open_device(device, context)) {
      give_context(context);
      return s;
    }
    context->magic = kHandleMagic;
    log_line(SOFTMAX_LOG_INFO, "handle created on %s", context->caps.description);
    *handle = context;
    return SOFTMAX_SUCCESS;
  } catch (...) {  // a mutex or an allocation; nothing may leave
    return fail(SOFTMAX_STATUS_HOST_MEMORY, "no memory for a handle");
  }
}

softmax_status_t softmax_destroy(softmax_handle_t handle) {
  using namespace softmax;
  if (handle == nullptr) return SOFTMAX_SUCCESS;
  if (!is_alive(handle)) {
    return fail(SOFTMAX_STATUS_BAD_HANDLE, "the handle was destroyed already, or never created");
  }
  handle->magic = 0;
  try {
    give_context(handle);
  } catch (...) {
    return fail(SOFTMAX_STATUS_INTERNAL, "could not lock the list of handles");
  }
  return SOFTMAX_SUCCESS;
}

softmax_status_t softmax_handle_device(softmax_handle_t handle, int32_t *device) {
  using namespace softmax;
  if (!is_alive(handle)) return fail(SOFTMAX_STATUS_BAD_HANDLE, "not a live handle");
  if (device == nullptr) return fail(SOFTMAX_STATUS_NULL_POINTER, "device is NULL");
  *device = handle->caps.ordinal;
  return SOFTMAX_SUCCESS;
}

size_t softmax_handle_description(softmax_handle_t handle, char *buf, size_t cap) {
  using namespace softmax;
  if (!is_alive(handle)) {
    copy_out("", buf, cap);
    return 0;
  }
  return copy_out(handle->caps.description, buf, cap);
}

softmax_status_t softmax_device_count(int32_t *count) {
  using namespace softmax;
  if (count == nullptr) return fail(SOFTMAX_STATUS_NULL_POINTER, "count is NULL");
  *count = cuda_device_count();
  return SOFTMAX_SUCCESS;
}

softmax_status_t softmax_set_workspace(softmax_handle_t handle, void *ptr, size_t bytes) {
  using namespace softmax;
  if (!is_alive(handle)) return fail(SOFTMAX_STATUS_BAD_HANDLE, "not a live handle");
  if (ptr == nullptr && bytes > 0) {
    return fail(SOFTMAX_STATUS_NULL_POINTER, "ptr is NULL with bytes = %zu", bytes);
  }
  handle->workspace = ptr;
  handle->workspace_bytes = ptr == nullptr ? 0 : bytes;
  return SOFTMAX_SUCCESS;
}

}  // extern "C"
