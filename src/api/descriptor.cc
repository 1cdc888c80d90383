// Descriptor checks: from a softmax_desc_t to a problem.
#include <cinttypes>
#include <cmath>
#include <initializer_list>

#include "api/intake.h"
#include "core/dtype.h"

namespace softmax {
namespace {

constexpr std::uint64_t kKnownFlags = SOFTMAX_FLAG_M_ADAPTIVE | SOFTMAX_FLAG_FAST_MATH |
                                      SOFTMAX_FLAG_GIVEN_STATS | SOFTMAX_FLAG_TRUST_POINTERS |
                                      SOFTMAX_FLAG_ZERO_STRIDES;

Status check_enum(const char *field, std::int32_t value, std::int32_t last) {
  if (value >= 0 && value <= last) return SOFTMAX_SUCCESS;
  return fail(SOFTMAX_STATUS_BAD_ENUM, "%s = %d does not exist: 0 to %d do", field,
              static_cast<int>(value), static_cast<int>(last));
}

Status check_enums(const softmax_desc_t &desc) {
  if ((desc.flags & ~kKnownFlags) != 0) {
    return fail(SOFTMAX_STATUS_BAD_ENUM, "flags = 0x%" PRIx64 " has bits that are no flag",
                desc.flags);
  }
  if (Status s = check_enum("op", desc.op, SOFTMAX_OP_STATS)) return s;
  if (Status s = check_enum("direction", desc.direction, SOFTMAX_DIRECTION_BACKWARD)) return s;
  if (Status s = check_dtype("x_dtype", desc.x_dtype)) return s;
  if (Status s = check_dtype("y_dtype", desc.y_dtype)) return s;
  if (desc.direction == SOFTMAX_DIRECTION_BACKWARD && desc.dy_dtype != 0) {
    if (Status s = check_dtype("dy_dtype", desc.dy_dtype)) return s;
  }
  if (Status s = check_enum("mask_kind", desc.mask_kind, SOFTMAX_MASK_ROW_LENGTH)) return s;
  return check_enum("empty_row", desc.empty_row, SOFTMAX_EMPTY_ROW_ZERO);
}

// What of the shape later checks want.
struct Shape {
  int axis = 0;
  std::int64_t rows = 1;  // outer * inner
  std::int64_t inner = 1;
  std::int64_t cols = 0;
  bool no_elements = false;
};

Status check_shape(const softmax_desc_t &desc, Shape *shape) {
  if (desc.ndim < 1 || desc.ndim > SOFTMAX_MAX_NDIM) {
    return fail(SOFTMAX_STATUS_BAD_SHAPE, "ndim = %d is not 1 to %d", static_cast<int>(desc.ndim),
                SOFTMAX_MAX_NDIM);
  }
  if (desc.axis < -desc.ndim || desc.axis >= desc.ndim) {
    return fail(SOFTMAX_STATUS_BAD_SHAPE, "axis = %d is not %d to %d", static_cast<int>(desc.axis),
                static_cast<int>(-desc.ndim), static_cast<int>(desc.ndim - 1));
  }
  shape->axis = desc.axis < 0 ? desc.axis + desc.ndim : desc.axis;
  bool overflow = false;
  for (int i = 0; i < desc.ndim; ++i) {
    if (desc.shape[i] < 0) {
      return fail(SOFTMAX_STATUS_BAD_SHAPE, "shape[%d] = %" PRId64 " is negative", i,
                  desc.shape[i]);
    }
    shape->no_elements = shape->no_elements || desc.shape[i] == 0;
    if (i == shape->axis) continue;
    overflow = __builtin_mul_overflow(shape->rows, desc.shape[i], &shape->rows) || overflow;
    if (i > shape->axis) {
      overflow = __builtin_mul_overflow(shape->inner, desc.shape[i], &shape->inner) || overflow;
    }
  }
  shape->cols = desc.shape[shape->axis];
  if (shape->no_elements) return SOFTMAX_SUCCESS;
  if (overflow) {
    return fail(SOFTMAX_STATUS_BAD_SHAPE, "the product of shape[0] to shape[%d] overflows 63 bits",
                static_cast<int>(desc.ndim - 1));
  }
  return check_size(shape->rows, shape->cols, desc.x_dtype, desc.y_dtype);
}

// ---- strides ----

bool all_zero(const softmax_desc_t &desc, const std::int64_t *stride) {
  for (int i = 0; i < desc.ndim; ++i) {
    if (stride[i] != 0) return false;
  }
  return true;
}

// A tensor as the caller describes it.
struct Tensor {
  const char *field;
  const std::int64_t *given;
  int size;  // bytes of an element
  bool is_output = false;
  bool by_row = false;          // one entry a row
  bool zeros_are_zero = false;  // all-zero strides do not stand for contiguous
};

// The strides that are meant, and whether they are possible. A tensor without elements has nothing
// that strides could put in one place.
Status resolve_strides(const softmax_desc_t &desc, const Shape &shape, const Tensor &tensor,
                       std::int64_t (&stride)[SOFTMAX_MAX_NDIM]) {
  for (int i = 0; i < desc.ndim; ++i) {
    const bool is_ignored = desc.shape[i] == 1 || (tensor.by_row && i == shape.axis);
    if (tensor.given[i] < 0 && !is_ignored) {
      return fail(SOFTMAX_STATUS_BAD_STRIDE, "%s[%d] = %" PRId64 " is negative", tensor.field, i,
                  tensor.given[i]);
    }
  }
  if (shape.no_elements) return SOFTMAX_SUCCESS;
  const bool contiguous = !tensor.zeros_are_zero && all_zero(desc, tensor.given);
  std::int64_t expected = 1;
  Steps steps;
  for (int i = desc.ndim - 1; i >= 0; --i) {
    const bool counts = !(tensor.by_row && i == shape.axis);
    stride[i] = contiguous ? expected : tensor.given[i];
    if (!counts) continue;
    expected *= desc.shape[i];
    steps.add(desc.shape[i], stride[i]);
    if (tensor.is_output && stride[i] == 0 && desc.shape[i] > 1) {
      return fail(SOFTMAX_STATUS_BAD_STRIDE,
                  "%s[%d] = 0 puts %" PRId64 " output elements in one place", tensor.field, i,
                  desc.shape[i]);
    }
  }
  const std::int64_t reach = steps.reach();
  std::int64_t bytes;
  if (reach < 0 || __builtin_add_overflow(reach, std::int64_t{1}, &bytes) ||
      __builtin_mul_overflow(bytes, std::int64_t{tensor.size}, &bytes)) {
    return fail(SOFTMAX_STATUS_BAD_STRIDE, "%s reaches further than 63 bits of bytes",
                tensor.field);
  }
  if (tensor.is_output && !steps.are_apart()) {
    return fail(SOFTMAX_STATUS_BAD_STRIDE,
                "%s does not keep output elements apart: sorted, each stride must exceed what the "
                "smaller ones reach",
                tensor.field);
  }
  return SOFTMAX_SUCCESS;
}

bool is_backward(const softmax_desc_t &desc) {
  return desc.direction == SOFTMAX_DIRECTION_BACKWARD;
}
bool given_stats(const softmax_desc_t &desc) {
  return (desc.flags & SOFTMAX_FLAG_GIVEN_STATS) != 0;
}
std::int32_t dy_dtype_of(const softmax_desc_t &desc) {
  return is_backward(desc) && desc.dy_dtype != 0 ? desc.dy_dtype : desc.x_dtype;
}

// All tensors of the call but the sink.
Status resolve_tensors(const softmax_desc_t &desc, const Shape &shape,
                       std::int64_t (&stride)[kTensors][SOFTMAX_MAX_NDIM],
                       LayoutStrides (&parts)[kTensors]) {
  const auto take = [&](int which, const Tensor &tensor) -> Status {
    if (Status s = resolve_strides(desc, shape, tensor, stride[which])) return s;
    parts[which] = {stride[which], tensor.by_row};
    return SOFTMAX_SUCCESS;
  };
  const bool backward = is_backward(desc);
  Tensor x{"x_stride", desc.x_stride, dtype_size(desc.x_dtype)};
  x.is_output = backward;  // dx lies as x does
  if (Status s = take(kTensorX, x)) return s;
  const bool has_y = backward ? !given_stats(desc) : desc.op != SOFTMAX_OP_STATS;
  if (has_y) {
    Tensor y{"y_stride", desc.y_stride, dtype_size(desc.y_dtype)};
    y.is_output = !backward;
    if (Status s = take(kTensorY, y)) return s;
  }
  if (backward) {
    const Tensor dy{"dy_stride", desc.dy_stride, dtype_size(dy_dtype_of(desc))};
    if (Status s = take(kTensorDy, dy)) return s;
  }
  if (desc.mask_kind != SOFTMAX_MASK_NONE && desc.mask_kind != SOFTMAX_MASK_CAUSAL) {
    Tensor mask{"mask_stride", desc.mask_stride, desc.mask_kind == SOFTMAX_MASK_BOOL_KEEP ? 1 : 4};
    mask.by_row = desc.mask_kind == SOFTMAX_MASK_ROW_LENGTH;
    mask.zeros_are_zero = (desc.flags & SOFTMAX_FLAG_ZERO_STRIDES) != 0;
    return take(kTensorMask, mask);
  }
  return SOFTMAX_SUCCESS;
}

// Or takes no part.
bool is_row_major(const softmax_desc_t &desc, const LayoutStrides &tensor) {
  if (tensor.stride == nullptr) return true;
  std::int64_t expected = 1;
  for (int i = desc.ndim - 1; i >= 0; --i) {
    if (desc.shape[i] != 1 && tensor.stride[i] != expected) return false;
    expected *= desc.shape[i];
  }
  return true;
}

std::uint32_t layout_features(const softmax_desc_t &desc, const Shape &shape,
                              const LayoutStrides (&parts)[kTensors]) {
  // The plain call, without anything being made for it.
  if (shape.inner == 1 && is_row_major(desc, parts[kTensorX]) &&
      is_row_major(desc, parts[kTensorY]) && is_row_major(desc, parts[kTensorDy])) {
    return 0;
  }
  // Without the mask, whose strides may keep dimensions apart that are one for the others.
  const LayoutStrides tensors[kTensors] = {parts[kTensorX], parts[kTensorY], parts[kTensorDy]};
  const Layout layout = make_layout(desc.ndim, shape.axis, desc.shape, tensors);
  LayoutKind kind = kind_of(layout, kTensorX);
  for (const int tensor : {kTensorY, kTensorDy}) {
    if (tensors[tensor].stride != nullptr) kind = common_kind(kind, kind_of(layout, tensor));
  }
  switch (kind) {
    case LayoutKind::kContiguous: return 0;
    case LayoutKind::kRows: return kFeatureRows;
    case LayoutKind::kInner: return kFeatureInner;
    default: return kFeatureStrides;
  }
}

// ---- values ----

Status check_values(const softmax_desc_t &desc) {
  if (!std::isfinite(desc.scale)) {
    return fail(SOFTMAX_STATUS_INVALID_ARGUMENT, "scale = %g is not finite", desc.scale);
  }
  if (!std::isfinite(desc.softcap) || desc.softcap < 0) {
    return fail(SOFTMAX_STATUS_INVALID_ARGUMENT, "softcap = %g is not finite and >= 0",
                desc.softcap);
  }
  if (!std::isfinite(desc.y_scale) || desc.y_scale < 0) {
    return fail(SOFTMAX_STATUS_INVALID_ARGUMENT, "y_scale = %g is not finite and >= 0",
                desc.y_scale);
  }
  if ((desc.alignment & (desc.alignment - 1)) != 0) {
    return fail(SOFTMAX_STATUS_INVALID_ARGUMENT, "alignment = %" PRIu64 " is not a power of two",
                desc.alignment);
  }
  if (desc.op == SOFTMAX_OP_STATS && (is_backward(desc) || given_stats(desc))) {
    return fail(SOFTMAX_STATUS_INVALID_ARGUMENT, "op STATS has no %s",
                is_backward(desc) ? "direction BACKWARD" : "use for flag GIVEN_STATS");
  }
  if (is_backward(desc) && desc.softcap != 0 && !given_stats(desc)) {
    return fail(SOFTMAX_STATUS_INVALID_ARGUMENT,
                "softcap with BACKWARD needs x and flag GIVEN_STATS: its derivative is not in y");
  }
  return SOFTMAX_SUCCESS;
}

std::uint32_t value_features(const softmax_desc_t &desc) {
  std::uint32_t features = 0;
  if (desc.scale != 1.0) features |= kFeatureScale;
  if (desc.softcap != 0.0) features |= kFeatureSoftcap;
  if (desc.y_scale != 0.0 && desc.y_scale != 1.0) features |= kFeatureYScale;
  switch (desc.mask_kind) {
    case SOFTMAX_MASK_BOOL_KEEP: features |= kFeatureBoolMask; break;
    case SOFTMAX_MASK_ADDITIVE: features |= kFeatureAdditiveMask; break;
    case SOFTMAX_MASK_CAUSAL: features |= kFeatureCausalMask; break;
    case SOFTMAX_MASK_ROW_LENGTH: features |= kFeatureRowLength; break;
    default: break;
  }
  if (desc.op == SOFTMAX_OP_STATS) features |= kFeatureStats;
  if (given_stats(desc)) features |= kFeatureGivenStats;
  if (is_backward(desc)) {
    features |= kFeatureBackward | type_features(dy_dtype_of(desc), desc.x_dtype);
    const std::int32_t source = given_stats(desc) ? desc.x_dtype : desc.y_dtype;
    if (dy_dtype_of(desc) != source) features |= kFeatureDyType;
  }
  return features |
         type_features(desc.x_dtype, desc.op == SOFTMAX_OP_STATS ? desc.x_dtype : desc.y_dtype);
}

}  // namespace

Status check_desc(const softmax_desc_t &desc, Problem *problem) {
  if (desc.reserved != 0) return fail(SOFTMAX_STATUS_NEWER_FIELD, "desc->reserved is not zero");
  if (Status s = check_enums(desc)) return s;
  Shape shape;
  if (Status s = check_shape(desc, &shape)) return s;
  std::int64_t stride[kTensors][SOFTMAX_MAX_NDIM];
  LayoutStrides parts[kTensors];
  if (Status s = resolve_tensors(desc, shape, stride, parts)) return s;
  if (Status s = check_values(desc)) return s;

  // From here on the descriptor is well formed; what follows is what this release lacks.
  std::uint32_t features = value_features(desc);
  if ((features & kFeatureYScale) != 0 && dtype_size(desc.y_dtype) != 1) {
    return fail(SOFTMAX_STATUS_NOT_SUPPORTED,
                "y_scale = %g: results of %s are not scaled, those of 8-bit types are",
                desc.y_scale, dtype_name(desc.y_dtype));
  }
  if (desc.mask_kind == SOFTMAX_MASK_CAUSAL && shape.axis == 0 && desc.ndim > 1) {
    return fail(SOFTMAX_STATUS_NOT_SUPPORTED_LAYOUT,
                "mask CAUSAL needs a dimension before the axis, and axis is 0 of %d",
                static_cast<int>(desc.ndim));
  }

  if (!shape.no_elements) features |= layout_features(desc, shape, parts);
  *problem = Problem{};
  problem->op = desc.op;
  problem->x_dtype = desc.x_dtype;
  problem->y_dtype = desc.y_dtype;
  problem->empty_row = desc.empty_row;
  problem->rows = shape.no_elements ? 0 : shape.rows;
  problem->cols = shape.cols;
  problem->flags = desc.flags;
  problem->alignment = desc.alignment;
  problem->features = features;
  return SOFTMAX_SUCCESS;
}

Status make_general(const softmax_desc_t &desc, bool has_sink, General *general) {
  Shape shape;
  if (Status s = check_shape(desc, &shape)) return s;
  std::int64_t stride[kTensors][SOFTMAX_MAX_NDIM];
  LayoutStrides parts[kTensors];
  if (Status s = resolve_tensors(desc, shape, stride, parts)) return s;
  if (has_sink) {
    Tensor sink{"sink_stride", desc.sink_stride, 4};
    sink.by_row = true;
    sink.zeros_are_zero = (desc.flags & SOFTMAX_FLAG_ZERO_STRIDES) != 0;
    if (Status s = resolve_strides(desc, shape, sink, stride[kTensorSink])) return s;
    parts[kTensorSink] = {stride[kTensorSink], true};
  }
  *general = General{};
  general->direction = desc.direction;
  general->mask_kind = desc.mask_kind;
  general->dy_dtype = dy_dtype_of(desc);
  general->given_stats = given_stats(desc);
  general->scale = desc.scale;
  general->softcap = desc.softcap;
  general->y_scale = desc.y_scale == 0 ? 1.0 : desc.y_scale;
  general->causal_offset = desc.causal_offset;
  if (shape.no_elements) return SOFTMAX_SUCCESS;
  general->layout = make_layout(desc.ndim, shape.axis, desc.shape, parts);
  if (shape.axis > 0) {
    general->causal_inner = shape.inner;
    general->causal_extent = desc.shape[shape.axis - 1];
  }
  return SOFTMAX_SUCCESS;
}

void make_matrix_general(const Problem &problem, General *general) {
  *general = General{};
  const std::int64_t shape[] = {problem.rows, problem.cols};
  const std::int64_t stride[] = {problem.cols, 1};
  LayoutStrides parts[kTensors];
  parts[kTensorX].stride = stride;
  parts[kTensorY].stride = stride;
  if (problem.has_work()) general->layout = make_layout(2, 1, shape, parts);
  general->dy_dtype = problem.x_dtype;
}

}  // namespace softmax
