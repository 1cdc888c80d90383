// Struct intake and descriptor checks.
#include "api/intake.h"

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "core/dtype.h"

namespace softmax {
namespace {

static_assert(sizeof(softmax_desc_t) == kDescBytesV1, "0.1.0 is the first release");
static_assert(sizeof(softmax_args_t) == kArgsBytesV1, "0.1.0 is the first release");
static_assert(sizeof(softmax_choice_t) == kChoiceBytesV1, "0.1.0 is the first release");

constexpr std::uint64_t kKnownFlags = SOFTMAX_FLAG_M_ADAPTIVE | SOFTMAX_FLAG_FAST_MATH |
                                      SOFTMAX_FLAG_GIVEN_STATS | SOFTMAX_FLAG_TRUST_POINTERS;

Status check_enum(const char *field, std::int32_t value, std::int32_t last) {
  if (value >= 0 && value <= last) return SOFTMAX_SUCCESS;
  return fail(SOFTMAX_STATUS_BAD_ENUM, "%s = %d does not exist: 0 to %d do", field,
              static_cast<int>(value), static_cast<int>(last));
}

Status check_dtype(const char *field, std::int32_t dtype) {
  if (dtype_size(dtype) != 0) return SOFTMAX_SUCCESS;
  return fail(SOFTMAX_STATUS_BAD_ENUM, "%s = %d is not a data type: SOFTMAX_DTYPE_* are 1 to 6",
              field, static_cast<int>(dtype));
}

Status check_dtype_pair(std::int32_t x, std::int32_t y) {
  if (dtype_pair_supported(x, y)) return SOFTMAX_SUCCESS;
  return fail(SOFTMAX_STATUS_NOT_SUPPORTED_DTYPE,
              "%s -> %s is not supported: f32, f16, bf16 and f64 to themselves, f16 and bf16 to "
              "f32 are",
              dtype_name(x), dtype_name(y));
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

struct StrideCheck {
  Status status = SOFTMAX_SUCCESS;
  bool contiguous = true;
};

// Strides are contiguous where they are all zero, or say what row-major order says for every extent
// above 1.
// A tensor without elements has nothing that strides could put in one place.
StrideCheck check_strides(const char *field, const softmax_desc_t &desc, const std::int64_t *stride,
                          bool is_output, bool no_elements) {
  StrideCheck result;
  bool all_zero = true;
  for (int i = 0; i < desc.ndim; ++i) {
    if (stride[i] < 0) {
      result.status =
          fail(SOFTMAX_STATUS_BAD_STRIDE, "%s[%d] = %" PRId64 " is negative", field, i, stride[i]);
      return result;
    }
    all_zero = all_zero && stride[i] == 0;
  }
  if (all_zero || no_elements) return result;
  std::int64_t expected = 1;
  for (int i = desc.ndim - 1; i >= 0; --i) {
    if (desc.shape[i] == 1) continue;
    if (is_output && stride[i] == 0) {
      result.status =
          fail(SOFTMAX_STATUS_BAD_STRIDE,
               "%s[%d] = 0 puts %" PRId64 " output elements in one place", field, i, desc.shape[i]);
      return result;
    }
    result.contiguous = result.contiguous && stride[i] == expected;
    if (__builtin_mul_overflow(expected, desc.shape[i], &expected)) expected = 0;
  }
  return result;
}

}  // namespace

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
  if (Status s = check_dtype_pair(x_dtype, y_dtype)) return s;
  *problem = Problem{};
  problem->op = op;
  problem->x_dtype = x_dtype;
  problem->y_dtype = y_dtype;
  problem->rows = rows;
  problem->cols = cols;
  return SOFTMAX_SUCCESS;
}

Status check_desc(const softmax_desc_t &desc, Problem *problem) {
  if ((desc.flags & ~kKnownFlags) != 0) {
    return fail(SOFTMAX_STATUS_BAD_ENUM, "flags = 0x%" PRIx64 " has bits that are no flag",
                desc.flags);
  }
  if (Status s = check_enum("op", desc.op, SOFTMAX_OP_STATS)) return s;
  if (Status s = check_enum("direction", desc.direction, SOFTMAX_DIRECTION_BACKWARD)) return s;
  if (Status s = check_dtype("x_dtype", desc.x_dtype)) return s;
  if (Status s = check_dtype("y_dtype", desc.y_dtype)) return s;
  if (Status s = check_enum("mask_kind", desc.mask_kind, SOFTMAX_MASK_ROW_LENGTH)) return s;
  if (Status s = check_enum("empty_row", desc.empty_row, SOFTMAX_EMPTY_ROW_ZERO)) return s;

  if (desc.ndim < 1 || desc.ndim > SOFTMAX_MAX_NDIM) {
    return fail(SOFTMAX_STATUS_BAD_SHAPE, "ndim = %d is not 1 to %d", static_cast<int>(desc.ndim),
                SOFTMAX_MAX_NDIM);
  }
  if (desc.axis < -desc.ndim || desc.axis >= desc.ndim) {
    return fail(SOFTMAX_STATUS_BAD_SHAPE, "axis = %d is not %d to %d", static_cast<int>(desc.axis),
                static_cast<int>(-desc.ndim), static_cast<int>(desc.ndim - 1));
  }
  const int axis = desc.axis < 0 ? desc.axis + desc.ndim : desc.axis;
  std::int64_t rows = 1;
  std::int64_t inner = 1;
  bool no_elements = false;
  bool overflow = false;
  for (int i = 0; i < desc.ndim; ++i) {
    if (desc.shape[i] < 0) {
      return fail(SOFTMAX_STATUS_BAD_SHAPE, "shape[%d] = %" PRId64 " is negative", i,
                  desc.shape[i]);
    }
    no_elements = no_elements || desc.shape[i] == 0;
    if (i < axis) overflow = __builtin_mul_overflow(rows, desc.shape[i], &rows) || overflow;
    if (i > axis) overflow = __builtin_mul_overflow(inner, desc.shape[i], &inner) || overflow;
  }
  const std::int64_t cols = desc.shape[axis];
  std::int64_t outer_and_inner = 0;
  overflow = __builtin_mul_overflow(rows, inner, &outer_and_inner) || overflow;
  if (!no_elements) {
    if (overflow) {
      return fail(SOFTMAX_STATUS_BAD_SHAPE,
                  "the product of shape[0] to shape[%d] overflows 63 bits",
                  static_cast<int>(desc.ndim - 1));
    }
    if (Status s = check_size(outer_and_inner, cols, desc.x_dtype, desc.y_dtype)) return s;
  }

  const StrideCheck x_strides = check_strides("x_stride", desc, desc.x_stride, false, no_elements);
  if (x_strides.status != SOFTMAX_SUCCESS) return x_strides.status;
  const StrideCheck y_strides = check_strides("y_stride", desc, desc.y_stride, true, no_elements);
  if (y_strides.status != SOFTMAX_SUCCESS) return y_strides.status;

  if (!std::isfinite(desc.scale)) {
    return fail(SOFTMAX_STATUS_INVALID_ARGUMENT, "scale = %g is not finite", desc.scale);
  }
  if ((desc.alignment & (desc.alignment - 1)) != 0) {
    return fail(SOFTMAX_STATUS_INVALID_ARGUMENT, "alignment = %" PRIu64 " is not a power of two",
                desc.alignment);
  }

  // From here on the descriptor is well formed; what follows is what this release lacks.
  if (desc.op == SOFTMAX_OP_STATS) {
    return fail(SOFTMAX_STATUS_NOT_SUPPORTED, "op STATS is not in this release");
  }
  if (desc.direction == SOFTMAX_DIRECTION_BACKWARD) {
    return fail(SOFTMAX_STATUS_NOT_SUPPORTED, "direction BACKWARD is not in this release");
  }
  if ((desc.flags & SOFTMAX_FLAG_GIVEN_STATS) != 0) {
    return fail(SOFTMAX_STATUS_NOT_SUPPORTED, "flag GIVEN_STATS is not in this release");
  }
  if (desc.mask_kind != SOFTMAX_MASK_NONE) {
    return fail(SOFTMAX_STATUS_NOT_SUPPORTED, "mask_kind = %d: masks are not in this release",
                static_cast<int>(desc.mask_kind));
  }
  if (desc.scale != 1.0) {
    return fail(SOFTMAX_STATUS_NOT_SUPPORTED,
                "scale = %g: scales other than 1 are not in this "
                "release",
                desc.scale);
  }
  if (Status s = check_dtype_pair(desc.x_dtype, desc.y_dtype)) return s;
  if (inner > 1 && !no_elements) {
    return fail(SOFTMAX_STATUS_NOT_SUPPORTED_LAYOUT,
                "axis %d of %d is not the innermost, and this release computes innermost axes only",
                axis, static_cast<int>(desc.ndim));
  }
  if (!x_strides.contiguous || !y_strides.contiguous) {
    return fail(SOFTMAX_STATUS_NOT_SUPPORTED_LAYOUT,
                "%s is not contiguous, and this release computes contiguous tensors only",
                x_strides.contiguous ? "y" : "x");
  }

  *problem = Problem{};
  problem->op = desc.op;
  problem->x_dtype = desc.x_dtype;
  problem->y_dtype = desc.y_dtype;
  problem->empty_row = desc.empty_row;
  problem->rows = no_elements ? 0 : rows;
  problem->cols = cols;
  problem->flags = desc.flags;
  problem->alignment = desc.alignment;
  return SOFTMAX_SUCCESS;
}

Status check_args(const softmax_args_t &args, const softmax_desc_t &desc) {
  if (args.reserved != 0) {
    return fail(SOFTMAX_STATUS_NEWER_FIELD, "args->reserved is not zero");
  }
  if (args.mask != nullptr && desc.mask_kind == SOFTMAX_MASK_NONE) {
    return fail(SOFTMAX_STATUS_INVALID_ARGUMENT, "args->mask is given but mask_kind is NONE");
  }
  if (args.workspace == nullptr && args.workspace_bytes > 0) {
    return fail(SOFTMAX_STATUS_NULL_POINTER,
                "args->workspace is NULL with workspace_bytes = %" PRIu64, args.workspace_bytes);
  }
  const struct {
    const char *name;
    const void *pointer;
  } later[] = {{"row_scale", args.row_scale}, {"lse", args.lse}, {"row_max", args.row_max},
               {"row_sum", args.row_sum},     {"dy", args.dy},   {"dx", args.dx}};
  for (const auto &field : later) {
    if (field.pointer != nullptr) {
      return fail(SOFTMAX_STATUS_NOT_SUPPORTED, "args->%s is given, and is not in this release",
                  field.name);
    }
  }
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
