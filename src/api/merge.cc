// softmax_merge_stats.
#include <cinttypes>

#include "api/entry.h"
#include "api/handle.h"
#include "core/layout.h"
#include "cpu/backend.h"

namespace softmax {
namespace {

Status check_parts(std::int64_t parts, std::int64_t rows) {
  std::int64_t bytes;
  if (parts < 1 || rows < 0 || __builtin_mul_overflow(parts, rows, &bytes) ||
      __builtin_mul_overflow(bytes, std::int64_t{4}, &bytes)) {
    return fail(SOFTMAX_STATUS_BAD_SHAPE,
                "parts = %" PRId64 ", rows = %" PRId64
                ": at least 1 and 0, and in 63 bits of bytes",
                parts, rows);
  }
  return SOFTMAX_SUCCESS;
}

struct Floats {
  const char *name;
  const float *data;
  std::int64_t count;
  bool is_output;

  Footprint footprint() const {
    Footprint f;
    f.first = reinterpret_cast<std::uintptr_t>(data);
    f.size = 4;
    f.steps.add(count, 1);
    return f;
  }
};

Status check_floats(const Floats (&all)[5]) {
  for (const Floats &f : all) {
    if (!f.is_output && f.data == nullptr) {
      return fail(SOFTMAX_STATUS_NULL_POINTER, "%s is NULL", f.name);
    }
    if (reinterpret_cast<std::uintptr_t>(f.data) % 4 != 0) {
      return fail(SOFTMAX_STATUS_INVALID_ARGUMENT, "%s = %p is not aligned to 4 bytes", f.name,
                  static_cast<const void *>(f.data));
    }
  }
  for (const Floats &output : all) {
    if (!output.is_output || output.data == nullptr) continue;
    for (const Floats &other : all) {
      if (&other == &output || other.data == nullptr ||
          provably_apart(output.footprint(), other.footprint())) {
        continue;
      }
      return fail(SOFTMAX_STATUS_OVERLAP, "%s and %s overlap", output.name, other.name);
    }
  }
  return SOFTMAX_SUCCESS;
}

}  // namespace
}  // namespace softmax

extern "C" softmax_status_t softmax_merge_stats(softmax_handle_t handle, int64_t parts,
                                                int64_t rows, const float *part_max,
                                                const float *part_sum, float *row_max,
                                                float *row_sum, float *lse,
                                                softmax_stream_t stream) {
  using namespace softmax;
  return guarded([&]() -> Status {
    if (Status s = check_handle(handle)) return s;
    if (Status s = check_parts(parts, rows)) return s;
    const bool is_cuda = handle->caps.is_cuda;
    if (!is_cuda && stream != nullptr) {
      return fail(SOFTMAX_STATUS_WRONG_DEVICE, "stream must be NULL on a CPU handle");
    }
    if (rows == 0) return SOFTMAX_SUCCESS;
    if (row_max == nullptr && row_sum == nullptr && lse == nullptr) {
      return fail(SOFTMAX_STATUS_NULL_POINTER, "row_max, row_sum and lse are all NULL");
    }
    if (Status s = check_floats({{"part_max", part_max, parts * rows, false},
                                 {"part_sum", part_sum, parts * rows, false},
                                 {"row_max", row_max, rows, true},
                                 {"row_sum", row_sum, rows, true},
                                 {"lse", lse, rows, true}})) {
      return s;
    }
    if (is_cuda) {
      return cuda_merge_stats(handle->caps, handle->cuda, parts, rows, part_max, part_sum, row_max,
                              row_sum, lse, stream);
    }
    cpu_merge_stats(parts, rows, part_max, part_sum, row_max, row_sum, lse);
    return SOFTMAX_SUCCESS;
  });
}
