// Where the elements of a call's tensors are: shape and strides reduced to rows along the softmax
// axis. Plain values, for host and device alike.
//
// A tensor is left with one stride along the axis and, for the choice of a row, as few dimensions
// as all of the tensors permit together: dimensions of extent 1 vanish, and two neighbours become
// one where in every tensor a step of the outer one is as long as the inner one whole. Row r is the
// r-th choice of indices in row-major order of `shape` without the axis, whatever the strides.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "core/exp.h"
#include "softmax.h"

namespace softmax {

// The tensors of a call. dx lies as x does. The sink and ROW_LENGTH's mask have one entry a row:
// their axis stride is 0.
enum LayoutTensor : int { kTensorX, kTensorY, kTensorDy, kTensorMask, kTensorSink, kTensors };

struct Layout {
  static constexpr int kMaxDims = SOFTMAX_MAX_NDIM - 1;

  std::int64_t rows = 1;
  std::int64_t cols = 1;
  std::int32_t dims = 0;  // over which rows are spread: 0 for a single row
  std::int64_t extent[kMaxDims] = {};
  std::int64_t stride[kTensors][kMaxDims] = {};  // in elements; 0 for a tensor that takes no part
  std::int64_t axis_stride[kTensors] = {};

  // The element at which row `row` of a tensor begins.
  SOFTMAX_HD std::int64_t offset(int tensor, std::int64_t row) const {
    std::int64_t at = 0;
    for (int d = dims - 1; d > 0; --d) {
      const std::int64_t outer = row / extent[d];
      at += (row - outer * extent[d]) * stride[tensor][d];
      row = outer;
    }
    return dims > 0 ? at + row * stride[tensor][0] : 0;
  }
  // From each row to the next one, where dims <= 1.
  SOFTMAX_HD std::int64_t pitch(int tensor) const { return dims > 0 ? stride[tensor][0] : 0; }
  SOFTMAX_HD bool axis_is_dense(int tensor) const { return axis_stride[tensor] == 1 || cols == 1; }
};

// How a pair of tensors (x and y, say) can be walked through.
enum class LayoutKind {
  kContiguous,  // rows follow one another
  kRows,        // each row is dense, wherever it lies
  kInner,       // neighbouring rows are neighbours in memory, element by element
  kGeneral
};

// ---- reduction ----

// What one tensor contributes. `stride` is over the dimensions of shape; null: takes no part.
struct LayoutStrides {
  const std::int64_t *stride = nullptr;
  bool by_row = false;  // one entry a row: the axis' entry is ignored
};

inline Layout make_layout(int ndim, int axis, const std::int64_t *shape,
                          const LayoutStrides (&tensors)[kTensors]) {
  Layout layout;
  layout.cols = shape[axis];
  for (int t = 0; t < kTensors; ++t) {
    const bool has_axis = tensors[t].stride != nullptr && !tensors[t].by_row;
    layout.axis_stride[t] = has_axis ? tensors[t].stride[axis] : 0;
  }
  for (int i = 0; i < ndim; ++i) {
    if (i == axis) continue;
    layout.rows *= shape[i];
    if (shape[i] == 1) continue;
    const int last = layout.dims - 1;
    bool joins = last >= 0;
    for (int t = 0; joins && t < kTensors; ++t) {
      const std::int64_t step = tensors[t].stride == nullptr ? 0 : tensors[t].stride[i];
      std::int64_t whole;  // may lie past 63 bits, though the last element does not
      joins = !__builtin_mul_overflow(step, shape[i], &whole) && layout.stride[t][last] == whole;
    }
    const int at = joins ? last : layout.dims;
    layout.extent[at] = joins ? layout.extent[at] * shape[i] : shape[i];
    for (int t = 0; t < kTensors; ++t) {
      layout.stride[t][at] = tensors[t].stride == nullptr ? 0 : tensors[t].stride[i];
    }
    if (!joins) ++layout.dims;
  }
  return layout;
}

// Of one tensor, without regard to the others.
inline LayoutKind kind_of(const Layout &layout, int tensor) {
  const std::int64_t *stride = layout.stride[tensor];
  const bool dense = layout.axis_is_dense(tensor);
  if (layout.dims == 0) return dense ? LayoutKind::kContiguous : LayoutKind::kGeneral;
  if (dense) {
    return layout.dims == 1 && stride[0] == layout.cols ? LayoutKind::kContiguous
                                                        : LayoutKind::kRows;
  }
  return stride[layout.dims - 1] == 1 ? LayoutKind::kInner : LayoutKind::kGeneral;
}

// The kind of several: the same for all of them, or kRows where some are contiguous, or kGeneral.
inline LayoutKind common_kind(LayoutKind a, LayoutKind b) {
  if (a == b) return a;
  const bool a_rows = a == LayoutKind::kContiguous || a == LayoutKind::kRows;
  const bool b_rows = b == LayoutKind::kContiguous || b == LayoutKind::kRows;
  return a_rows && b_rows ? LayoutKind::kRows : LayoutKind::kGeneral;
}

// ---- what strides reach, and whether they keep elements apart ----

// A dimension of a tensor in memory, in whatever unit.
struct Step {
  std::int64_t count;
  std::int64_t stride;
};

// A tensor's steps of more than one element, the axis among them, at most SOFTMAX_MAX_NDIM.
struct Steps {
  int count = 0;
  Step step[SOFTMAX_MAX_NDIM];

  void add(std::int64_t extent, std::int64_t stride) {
    if (extent > 1) step[count++] = {extent, stride};
  }
  // From the first element to the last; -1 where that overflows.
  std::int64_t reach() const {
    std::int64_t total = 0;
    for (int i = 0; i < count; ++i) {
      std::int64_t way;
      if (__builtin_mul_overflow(step[i].count - 1, step[i].stride, &way) ||
          __builtin_add_overflow(total, way, &total)) {
        return -1;
      }
    }
    return total;
  }
  // Whether no two elements are in one place: shown by each stride exceeding what the smaller ones
  // reach together, or not at all.
  bool are_apart() const {
    Steps sorted = *this;
    for (int i = 1; i < count; ++i) {
      for (int j = i; j > 0 && sorted.step[j].stride < sorted.step[j - 1].stride; --j) {
        const Step swap = sorted.step[j];
        sorted.step[j] = sorted.step[j - 1];
        sorted.step[j - 1] = swap;
      }
    }
    std::int64_t reached = 0;
    for (int i = 0; i < count; ++i) {
      if (sorted.step[i].stride <= reached) return false;
      reached += (sorted.step[i].count - 1) * sorted.step[i].stride;
    }
    return true;
  }
};

inline Steps steps_of(const Layout &layout, int tensor, bool by_row) {
  Steps steps;
  for (int d = 0; d < layout.dims; ++d) steps.add(layout.extent[d], layout.stride[tensor][d]);
  if (!by_row) steps.add(layout.cols, layout.axis_stride[tensor]);
  return steps;
}

// Bytes that a tensor occupies: elements of `size` bytes from `first` on.
struct Footprint {
  std::uintptr_t first = 0;
  std::int64_t size = 0;
  Steps steps;

  std::uintptr_t end() const {
    return first + static_cast<std::uintptr_t>(steps.reach() * size + size);
  }
};

// Where the bytes are that are left of a tensor modulo `period` bytes: from `begin` on, `length` of
// them; false where that is no interval shorter than the period.
inline bool residues(const Footprint &tensor, std::int64_t period, std::int64_t *begin,
                     std::int64_t *length) {
  *length = tensor.size;
  for (int i = 0; i < tensor.steps.count; ++i) {
    const Step &step = tensor.steps.step[i];
    const std::int64_t bytes = step.stride * tensor.size;
    if (bytes % period == 0) continue;
    *length += (step.count - 1) * bytes;
  }
  *begin = static_cast<std::int64_t>(tensor.first % static_cast<std::uintptr_t>(period));
  return *length <= period;
}

// Whether two tensors provably share no byte: their ranges do not meet, or modulo a stride of one
// of them (the pitch of two views of one matrix) their bytes are in different places.
inline bool provably_apart(const Footprint &a, const Footprint &b) {
  if (a.first >= b.end() || b.first >= a.end()) return true;
  for (const Footprint *tensor : {&a, &b}) {
    for (int i = 0; i < tensor->steps.count; ++i) {
      const std::int64_t period = tensor->steps.step[i].stride * tensor->size;
      std::int64_t a_begin, a_length, b_begin, b_length;
      if (period <= 0 || !residues(a, period, &a_begin, &a_length) ||
          !residues(b, period, &b_begin, &b_length)) {
        continue;
      }
      const std::int64_t way = b_begin - a_begin;
      const std::int64_t to_b = way < 0 ? way + period : way;
      const std::int64_t to_a = way > 0 ? period - way : -way;
      if (to_b >= a_length && to_a >= b_length) return true;
    }
  }
  return false;
}

inline bool same_steps(const Layout &layout, int a, int b) {
  for (int d = 0; d < layout.dims; ++d) {
    if (layout.stride[a][d] != layout.stride[b][d]) return false;
  }
  return layout.cols == 1 || layout.axis_stride[a] == layout.axis_stride[b];
}

}  // namespace softmax
