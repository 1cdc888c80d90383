// Checks of the general call's buffers: which there are, how they are aligned, and that no output
// meets another buffer.
#include <cinttypes>

#include "api/intake.h"
#include "core/dtype.h"

namespace softmax {
namespace {

// One buffer of a call as the checks see it.
struct View {
  const char *name;
  const void *data;
  std::int32_t dtype;  // of x, y, dy and dx, 0 for the others
  int tensor;          // in the layout; -1 for one float a row, contiguous
  bool is_output;
  Footprint footprint;
};

struct Views {
  static constexpr int kMost = 12;
  int count = 0;
  View view[kMost];

  void add(const char *name, const void *data, std::int32_t dtype, int size, int tensor,
           bool is_output, const Problem &problem, const Layout &layout, bool by_row) {
    if (data == nullptr) return;
    View &v = view[count++];
    v = {name, data, dtype, tensor, is_output, {}};
    v.footprint.first = reinterpret_cast<std::uintptr_t>(data);
    v.footprint.size = size;
    if (tensor < 0) {
      v.footprint.steps.add(problem.rows, 1);
    } else {
      v.footprint.steps = steps_of(layout, tensor, by_row);
    }
  }
};

Views views_of(const Problem &problem, const General &general, const GeneralBuffers &b) {
  Views views;
  const auto add = [&](const char *name, const void *data, std::int32_t dtype, int size, int tensor,
                       bool is_output, bool by_row = false) {
    views.add(name, data, dtype, size, tensor, is_output, problem, general.layout, by_row);
  };
  const bool backward = general.is_backward();
  const bool stats = problem.op == SOFTMAX_OP_STATS;
  const int mask_size = general.mask_kind == SOFTMAX_MASK_BOOL_KEEP ? 1 : 4;
  add("x", b.x, problem.x_dtype, dtype_size(problem.x_dtype), kTensorX, false);
  if (!stats) add("y", b.y, problem.y_dtype, dtype_size(problem.y_dtype), kTensorY, !backward);
  add("dy", b.dy, general.dy_dtype, dtype_size(general.dy_dtype), kTensorDy, false);
  add("dx", b.dx, problem.x_dtype, dtype_size(problem.x_dtype), kTensorX, true);
  add("mask", b.mask, 0, mask_size, kTensorMask, false,
      general.mask_kind == SOFTMAX_MASK_ROW_LENGTH);
  add("sink", b.sink, 0, 4, kTensorSink, false, true);
  add("row_scale", b.row_scale, 0, 4, -1, false);
  add("row_max", b.row_max, 0, 4, -1, !general.given_stats);
  add("row_sum", b.row_sum, 0, 4, -1, !general.given_stats);
  add("lse", b.lse, 0, 4, -1, true);
  return views;
}

// An output on an input of the same type that lies in the same way: each element is read before it
// is written.
bool is_in_place(const Layout &layout, const View &output, const View &input) {
  return output.data == input.data && !input.is_output && output.dtype != 0 &&
         output.dtype == input.dtype && output.tensor >= 0 && input.tensor >= 0 &&
         same_steps(layout, output.tensor, input.tensor);
}

Status needs(const char *name, const char *why) {
  return fail(SOFTMAX_STATUS_NULL_POINTER, "args->%s is NULL%s", name, why);
}
Status useless(const char *name, const char *why) {
  return fail(SOFTMAX_STATUS_INVALID_ARGUMENT, "args->%s is given, %s", name, why);
}

}  // namespace

Status check_args(const softmax_args_t &args, const softmax_desc_t &desc, Problem *problem) {
  if (args.reserved != 0) {
    return fail(SOFTMAX_STATUS_NEWER_FIELD, "args->reserved is not zero");
  }
  if (args.mask != nullptr &&
      (desc.mask_kind == SOFTMAX_MASK_NONE || desc.mask_kind == SOFTMAX_MASK_CAUSAL)) {
    return useless("mask", desc.mask_kind == SOFTMAX_MASK_NONE ? "but mask_kind is NONE"
                                                               : "and CAUSAL has no buffer");
  }
  if (args.workspace == nullptr && args.workspace_bytes > 0) {
    return fail(SOFTMAX_STATUS_NULL_POINTER,
                "args->workspace is NULL with workspace_bytes = %" PRIu64, args.workspace_bytes);
  }
  const bool given = (desc.flags & SOFTMAX_FLAG_GIVEN_STATS) != 0;
  if (desc.direction == SOFTMAX_DIRECTION_BACKWARD) {
    if (given && args.y != nullptr)
      return useless("y", "and so are statistics: one of them serves");
    if (args.lse != nullptr) return useless("lse", "and BACKWARD writes dx alone");
    if (!given && (args.row_max != nullptr || args.row_sum != nullptr)) {
      return useless(args.row_max != nullptr ? "row_max" : "row_sum",
                     "and BACKWARD from y has no use for it: flag GIVEN_STATS goes with x");
    }
    if (!given && args.sink != nullptr) {
      return useless("sink", "and BACKWARD from y has no use for it: it is in y");
    }
  } else {
    if (args.dy != nullptr) return useless("dy", "and the direction is FORWARD");
    if (args.dx != nullptr) return useless("dx", "and the direction is FORWARD");
  }
  if (args.row_scale != nullptr) problem->features |= kFeatureRowScale;
  if (args.sink != nullptr) problem->features |= kFeatureSink;
  if (!given && (args.row_max != nullptr || args.row_sum != nullptr)) {
    problem->features |= kFeatureStatsOutputs;
  }
  if (args.lse != nullptr) problem->features |= kFeatureStatsOutputs;
  return SOFTMAX_SUCCESS;
}

GeneralBuffers buffers_of(const softmax_args_t &args, const Problem &problem,
                          const General &general) {
  GeneralBuffers b;
  const bool backward = general.is_backward();
  if (!backward || general.given_stats) b.x = args.x;
  if (problem.op != SOFTMAX_OP_STATS) b.y = args.y;
  b.mask = args.mask;
  b.row_scale = args.row_scale;
  b.lse = args.lse;
  b.row_max = args.row_max;
  b.row_sum = args.row_sum;
  b.dy = args.dy;
  b.dx = args.dx;
  if (!backward && !general.given_stats) b.sink = args.sink;  // else it is in what is given
  return b;
}

Status check_general_buffers(const Problem &problem, const General &general,
                             const GeneralBuffers &b) {
  const bool has_mask_buffer =
      general.mask_kind != SOFTMAX_MASK_NONE && general.mask_kind != SOFTMAX_MASK_CAUSAL;
  if (has_mask_buffer && b.mask == nullptr) return needs("mask", " and mask_kind needs one");
  if (general.given_stats && (b.row_max == nullptr || b.row_sum == nullptr)) {
    return needs(b.row_max == nullptr ? "row_max" : "row_sum", " with flag GIVEN_STATS");
  }
  if (general.is_backward()) {
    if (b.dy == nullptr || b.dx == nullptr) {
      return needs(b.dy == nullptr ? "dy" : "dx", " with BACKWARD");
    }
    if (general.given_stats ? b.x == nullptr : b.y == nullptr) {
      return needs(general.given_stats ? "x" : "y",
                   general.given_stats ? " with BACKWARD from statistics" : " with BACKWARD");
    }
  } else {
    if (b.x == nullptr) return needs("x", "");
    if (problem.op == SOFTMAX_OP_STATS) {
      if (b.row_max == nullptr && b.row_sum == nullptr && b.lse == nullptr) {
        return fail(SOFTMAX_STATUS_NULL_POINTER,
                    "row_max, row_sum and lse are all NULL, and op STATS has no other output");
      }
    } else if (b.y == nullptr) {
      return needs("y", "");
    }
  }

  const Views views = views_of(problem, general, b);
  for (int i = 0; i < views.count; ++i) {
    const View &v = views.view[i];
    if (v.footprint.first % static_cast<std::uintptr_t>(v.footprint.size) != 0) {
      return fail(SOFTMAX_STATUS_INVALID_ARGUMENT,
                  "%s = %p is not aligned to its element's %d bytes", v.name, v.data,
                  static_cast<int>(v.footprint.size));
    }
    std::int64_t bytes;  // one float a row may be more than x and y have
    if (__builtin_mul_overflow(v.footprint.steps.reach() + 1, v.footprint.size, &bytes) ||
        v.footprint.end() < v.footprint.first) {
      return fail(SOFTMAX_STATUS_BAD_SHAPE, "%s runs past the end of the address space", v.name);
    }
  }
  for (int o = 0; o < views.count; ++o) {
    const View &output = views.view[o];
    if (!output.is_output) continue;
    for (int i = 0; i < views.count; ++i) {
      const View &other = views.view[i];
      if (i == o || provably_apart(output.footprint, other.footprint) ||
          is_in_place(general.layout, output, other)) {
        continue;
      }
      const bool same = output.data == other.data && output.dtype != 0 && other.dtype != 0;
      return fail(SOFTMAX_STATUS_OVERLAP,
                  same ? "%s == %s, and in place needs one type and the same strides"
                       : "%s and %s may overlap: their strides do not keep them apart",
                  output.name, other.name);
    }
  }
  return SOFTMAX_SUCCESS;
}

}  // namespace softmax
