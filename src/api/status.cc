// Status codes: names, sentences, and the calling thread's last error.
#include "api/status.h"

#include <cstdarg>
#include <cstdio>

#include "api/log.h"
#include "api/text.h"

namespace softmax {
namespace {

constexpr int kSentenceBytes = 512;

// Plain arrays: thread-local storage without a constructor or destructor costs nothing on threads
// that never fail, and is safe while a thread is being torn down.
thread_local char last_sentence[kSentenceBytes];
thread_local std::int32_t last_cuda_error;

Status record(Status status, std::int32_t cuda_error, const char *format, va_list args) {
  std::vsnprintf(last_sentence, sizeof last_sentence, format, args);
  last_cuda_error = cuda_error;
  log_line(SOFTMAX_LOG_ERROR, "%s: %s", softmax_status_name(status), last_sentence);
  return status;
}

struct StatusText {
  Status status;
  const char *name;
  const char *sentence;
};

constexpr StatusText kStatusTexts[] = {
    {SOFTMAX_SUCCESS, "SOFTMAX_SUCCESS", "success"},
    {SOFTMAX_STATUS_INVALID_ARGUMENT, "SOFTMAX_STATUS_INVALID_ARGUMENT",
     "an argument has a value that makes no sense"},
    {SOFTMAX_STATUS_NULL_POINTER, "SOFTMAX_STATUS_NULL_POINTER",
     "a pointer that is needed is NULL"},
    {SOFTMAX_STATUS_BAD_HANDLE, "SOFTMAX_STATUS_BAD_HANDLE",
     "the handle is NULL, was destroyed, or was never created"},
    {SOFTMAX_STATUS_BAD_SHAPE, "SOFTMAX_STATUS_BAD_SHAPE",
     "an extent is negative, the number of dimensions or the axis is out of range, or the size "
     "overflows 64 bits"},
    {SOFTMAX_STATUS_BAD_STRIDE, "SOFTMAX_STATUS_BAD_STRIDE",
     "a stride is negative, or strides put two output elements in one place"},
    {SOFTMAX_STATUS_BAD_ENUM, "SOFTMAX_STATUS_BAD_ENUM",
     "a constant does not exist: an algorithm, type, operation, flag or level"},
    {SOFTMAX_STATUS_STRUCT_SIZE, "SOFTMAX_STATUS_STRUCT_SIZE",
     "struct_size is not one that any release has had; set it to sizeof the struct"},
    {SOFTMAX_STATUS_OVERLAP, "SOFTMAX_STATUS_OVERLAP",
     "input and output overlap without being the same buffer"},
    {SOFTMAX_STATUS_WORKSPACE_TOO_SMALL, "SOFTMAX_STATUS_WORKSPACE_TOO_SMALL",
     "the workspace is smaller than softmax_select says"},
    {SOFTMAX_STATUS_WRONG_DEVICE, "SOFTMAX_STATUS_WRONG_DEVICE",
     "a buffer, a stream or a device number does not belong to the handle's device"},
    {SOFTMAX_STATUS_NOT_SUPPORTED, "SOFTMAX_STATUS_NOT_SUPPORTED",
     "this build of the library cannot do this"},
    {SOFTMAX_STATUS_NOT_SUPPORTED_ALGO, "SOFTMAX_STATUS_NOT_SUPPORTED_ALGO",
     "the algorithm cannot run this problem on this device"},
    {SOFTMAX_STATUS_NOT_SUPPORTED_DTYPE, "SOFTMAX_STATUS_NOT_SUPPORTED_DTYPE",
     "there are no kernels for this pair of data types"},
    {SOFTMAX_STATUS_NOT_SUPPORTED_LAYOUT, "SOFTMAX_STATUS_NOT_SUPPORTED_LAYOUT",
     "there are no kernels for this axis or these strides"},
    {SOFTMAX_STATUS_NOT_SUPPORTED_ARCH, "SOFTMAX_STATUS_NOT_SUPPORTED_ARCH",
     "this build has no kernels for this GPU's architecture"},
    {SOFTMAX_STATUS_NOT_SUPPORTED_DRIVER, "SOFTMAX_STATUS_NOT_SUPPORTED_DRIVER",
     "there is no NVIDIA driver, or it is older than this build needs"},
    {SOFTMAX_STATUS_NEWER_FIELD, "SOFTMAX_STATUS_NEWER_FIELD",
     "a struct has a non-zero field that this release does not know"},
    {SOFTMAX_STATUS_RESOURCE, "SOFTMAX_STATUS_RESOURCE", "a resource ran out"},
    {SOFTMAX_STATUS_HOST_MEMORY, "SOFTMAX_STATUS_HOST_MEMORY", "out of host memory"},
    {SOFTMAX_STATUS_DEVICE_MEMORY, "SOFTMAX_STATUS_DEVICE_MEMORY", "out of device memory"},
    {SOFTMAX_STATUS_CUDA, "SOFTMAX_STATUS_CUDA",
     "CUDA reported an error; softmax_last_cuda_error has its number"},
    {SOFTMAX_STATUS_INTERNAL, "SOFTMAX_STATUS_INTERNAL",
     "a defect of libsoftmax; please report it"},
};

constexpr StatusText kUnknown = {-1, "SOFTMAX_STATUS_UNKNOWN",
                                 "not a status that this release knows"};

const StatusText &text_of(Status status) {
  for (const StatusText &text : kStatusTexts) {
    if (text.status == status) return text;
  }
  return kUnknown;
}

}  // namespace

Status fail(Status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  record(status, 0, format, args);
  va_end(args);
  return status;
}

Status fail_cuda(Status status, std::int32_t cuda_error, const char *format, ...) {
  va_list args;
  va_start(args, format);
  record(status, cuda_error, format, args);
  va_end(args);
  return status;
}

}  // namespace softmax

extern "C" {

const char *softmax_status_name(softmax_status_t status) { return softmax::text_of(status).name; }

const char *softmax_status_string(softmax_status_t status) {
  return softmax::text_of(status).sentence;
}

size_t softmax_last_error(char *buf, size_t cap) {
  return softmax::copy_out(softmax::last_sentence, buf, cap);
}

int32_t softmax_last_cuda_error(void) { return softmax::last_cuda_error; }

}  // extern "C"
