// Struct intake, and the checks of the plain call.
#include "api/intake.h"

#include <cinttypes>
#include <cstring>

#include "core/dtype.h"

namespace softmax {
namespace {

// Structs grow by appending to what the first release had.
static_assert(offsetof(softmax_desc_t, softcap) == kDescBytesV1, "the first appended field");
static_assert(offsetof(softmax_args_t, sink) == kArgsBytesV1, "the first appended field");
static_assert(sizeof(softmax_choice_t) == kChoiceBytesV1, "nothing is appended yet");

}  // namespace

Status check_dtype(const char *field, std::int32_t dtype) {
  if (dtype_size(dtype) != 0) return SOFTMAX_SUCCESS;
  return fail(SOFTMAX_STATUS_BAD_ENUM, "%s = %d is not a data type: SOFTMAX_DTYPE_* are 1 to 6",
              field, static_cast<int>(dtype));
}

// The bytes of the larger buffer must fit in 63 bits, so that no offset can overflow.
Status check_size(std::int64_t rows, std::int64_t cols, std::int32_t x_dtype,
                  std::int32_t y_dtype) {
  const int size =
      dtype_size(x_dtype) > dtype_size(y_dtype) ? dtype_size(x_dtype) : dtype_size(y_dtype);
  std::int64_t elements, bytes;
  if (__builtin_mul_overflow(rows, cols, &elements) ||
      __builtin_mul_overflow(elements, std::int64_t{size}, &bytes)) {
    return fail(SOFTMAX_STATUS_BAD_SHAPE,
                "%" PRId64 " rows of %" PRId64 " elements of %d bytes overflow 63 bits", rows, cols,
                size);
  }
  return SOFTMAX_SUCCESS;
}

std::uint32_t type_features(std::int32_t x_dtype, std::int32_t y_dtype) {
  if (dtype_pair_supported(x_dtype, y_dtype)) return 0;
  const bool has_f8 = dtype_size(x_dtype) == 1 || dtype_size(y_dtype) == 1;
  return has_f8 ? std::uint32_t{kFeatureTypes} | kFeatureF8 : std::uint32_t{kFeatureTypes};
}

Status take_in(const void *from, void *to, std::size_t known_bytes, std::size_t least_bytes,
               const char *what) {
  if (from == nullptr) return fail(SOFTMAX_STATUS_NULL_POINTER, "%s is NULL", what);
  std::uint64_t size;  // the first field of every struct
  std::memcpy(&size, from, sizeof size);
  if (size < least_bytes || size > 65536) {
    return fail(SOFTMAX_STATUS_STRUCT_SIZE,
                "%s->struct_size = %" PRIu64 " is no release's: set it to sizeof(%s) = %zu", what,
                size, what, known_bytes);
  }
  const auto *bytes = static_cast<const unsigned char *>(from);
  for (std::uint64_t i = known_bytes; i < size; ++i) {
    if (bytes[i] != 0) {
      return fail(SOFTMAX_STATUS_NEWER_FIELD,
                  "byte %" PRIu64 " of %s is not zero, and this release (%s) knows only %zu bytes",
                  i, what, softmax_version_string(), known_bytes);
    }
  }
  std::memset(to, 0, known_bytes);
  std::memcpy(to, from, size < known_bytes ? size : known_bytes);
  return SOFTMAX_SUCCESS;
}

Status check_matrix(std::int32_t op, std::int32_t x_dtype, std::int32_t y_dtype, std::int64_t rows,
                    std::int64_t cols, Problem *problem) {
  if (rows < 0 || cols < 0) {
    return fail(SOFTMAX_STATUS_BAD_SHAPE,
                "M = %" PRId64 ", N = %" PRId64 ": neither may be negative", rows, cols);
  }
  if (Status s = check_dtype("x_dtype", x_dtype)) return s;
  if (Status s = check_dtype("y_dtype", y_dtype)) return s;
  if (Status s = check_size(rows, cols, x_dtype, y_dtype)) return s;
  *problem = Problem{};
  problem->op = op;
  problem->x_dtype = x_dtype;
  problem->y_dtype = y_dtype;
  problem->rows = rows;
  problem->cols = cols;
  problem->features = type_features(x_dtype, y_dtype);
  return SOFTMAX_SUCCESS;
}

Status check_buffers(const Problem &problem, const void *x, const void *y) {
  if (x == nullptr || y == nullptr) {
    return fail(SOFTMAX_STATUS_NULL_POINTER, "%s is NULL with M = %" PRId64 ", N = %" PRId64,
                x == nullptr ? "x" : "y", problem.rows, problem.cols);
  }
  const auto x_first = reinterpret_cast<std::uintptr_t>(x);
  const auto y_first = reinterpret_cast<std::uintptr_t>(y);
  const int x_size = dtype_size(problem.x_dtype);
  const int y_size = dtype_size(problem.y_dtype);
  if (x_first % x_size != 0 || y_first % y_size != 0) {
    return fail(SOFTMAX_STATUS_INVALID_ARGUMENT, "%s = %p is not aligned to its element's %d bytes",
                x_first % x_size != 0 ? "x" : "y", x_first % x_size != 0 ? x : y,
                x_first % x_size != 0 ? x_size : y_size);
  }
  const std::uintptr_t elements = static_cast<std::uintptr_t>(problem.rows * problem.cols);
  const std::uintptr_t x_end = x_first + elements * x_size;
  const std::uintptr_t y_end = y_first + elements * y_size;
  if (x_end < x_first || y_end < y_first) {
    return fail(SOFTMAX_STATUS_BAD_SHAPE, "%s runs past the end of the address space",
                x_end < x_first ? "x" : "y");
  }
  const bool in_place = x == y && problem.x_dtype == problem.y_dtype;
  if (!in_place && x_first < y_end && y_first < x_end) {
    return fail(SOFTMAX_STATUS_OVERLAP,
                x == y ? "in place needs x_dtype == y_dtype, not %s -> %s"
                       : "x and y overlap without being equal (%s -> %s)",
                dtype_name(problem.x_dtype), dtype_name(problem.y_dtype));
  }
  return SOFTMAX_SUCCESS;
}

}  // namespace softmax
