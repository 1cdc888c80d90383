// Elements between tensors and rows in scratch. See gather.h.
#include "cpu/gather.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace softmax {
namespace {

// Columns of a block: neighbouring rows share the cache lines of so many.
constexpr std::int64_t kBlockColumns = 16;

// Where a patch's rows begin in a tensor, and how many of its columns each row has.
struct Rows {
  std::int64_t begin[kPatchRows];
  std::int64_t count[kPatchRows];
  std::int64_t axis_stride;
  std::int64_t most = 0;

  Rows(const Call &call, int tensor, const Patch &patch, bool to_length) {
    const Layout &layout = call.layout();
    axis_stride = layout.axis_stride[tensor];
    for (std::int64_t i = 0; i < patch.rows; ++i) {
      const std::int64_t row = patch.first + i;
      begin[i] = layout.offset(tensor, row) + patch.col * axis_stride;
      count[i] = patch.cols;
      if (to_length && call.has_lengths()) {
        count[i] = std::clamp<std::int64_t>(call.length(row) - patch.col, 0, patch.cols);
      }
      most = std::max(most, count[i]);
    }
  }
};

// Calls body(i, first column, end) for blocks of columns of the patch's rows.
template <typename Body>
void for_blocks(const Patch &patch, const Rows &rows, const Body &body) {
  const bool by_block = rows.axis_stride != 1 && patch.rows > 1;
  const std::int64_t step = by_block ? kBlockColumns : std::max<std::int64_t>(rows.most, 1);
  for (std::int64_t col = 0; col < rows.most; col += step) {
    for (std::int64_t i = 0; i < patch.rows; ++i) {
      const std::int64_t end = std::min(rows.count[i], col + step);
      if (col < end) body(i, col, end);
    }
  }
}

template <typename From, typename To, typename Convert>
void gather(const Patch &patch, const Rows &rows, const From *data, To *to, std::int64_t pitch,
            const Convert &convert) {
  const std::int64_t stride = rows.axis_stride;
  for_blocks(patch, rows, [&](std::int64_t i, std::int64_t col, std::int64_t end) {
    const From *from = data + rows.begin[i];
    To *row = to + i * pitch;
    if (stride == 1) {
      for (std::int64_t j = col; j < end; ++j) row[j] = convert(from[j]);
    } else {
      for (std::int64_t j = col; j < end; ++j) row[j] = convert(from[j * stride]);
    }
  });
}

template <typename To, typename From, typename Convert>
void scatter(const Patch &patch, const Rows &rows, To *data, const From *from, std::int64_t pitch,
             const Convert &convert) {
  const std::int64_t stride = rows.axis_stride;
  for_blocks(patch, rows, [&](std::int64_t i, std::int64_t col, std::int64_t end) {
    To *to = data + rows.begin[i];
    const From *row = from + i * pitch;
    if (stride == 1) {
      for (std::int64_t j = col; j < end; ++j) to[j] = convert(row[j]);
    } else {
      for (std::int64_t j = col; j < end; ++j) to[j * stride] = convert(row[j]);
    }
  });
}

template <typename X>
void mask_elements(const Call &call, const Patch &patch, X *to, std::int64_t pitch,
                   X minus_infinity) {
  const Rows rows(call, kTensorMask, patch, false);
  const auto *mask = static_cast<const std::uint8_t *>(call.buffers->mask);
  for_blocks(patch, rows, [&](std::int64_t i, std::int64_t col, std::int64_t end) {
    const std::uint8_t *keep = mask + rows.begin[i];
    X *row = to + i * pitch;
    for (std::int64_t j = col; j < end; ++j) {
      if (keep[j * rows.axis_stride] == 0) row[j] = minus_infinity;
    }
  });
}

void add_mask(const Call &call, const Patch &patch, double *to, std::int64_t pitch) {
  const Rows rows(call, kTensorMask, patch, false);
  const auto *mask = static_cast<const float *>(call.buffers->mask);
  for_blocks(patch, rows, [&](std::int64_t i, std::int64_t col, std::int64_t end) {
    const float *added = mask + rows.begin[i];
    double *row = to + i * pitch;
    for (std::int64_t j = col; j < end; ++j) row[j] += double{added[j * rows.axis_stride]};
  });
}

}  // namespace

void gather_elements(const Call &call, const Patch &patch, void *to, std::int64_t pitch) {
  const Rows rows(call, kTensorX, patch, true);
  with_type(call.problem->x_dtype, [&](auto type) {
    using X = decltype(type);
    X *typed = static_cast<X *>(to);
    gather(patch, rows, static_cast<const X *>(call.buffers->x), typed, pitch,
           [](X x) { return x; });
    if (call.general->mask_kind == SOFTMAX_MASK_BOOL_KEEP) {
      mask_elements(call, patch, typed, pitch, narrow<X>(-Limits<double>::infinity()));
    }
  });
}

void gather_tensor(const Call &call, int tensor, const void *data, std::int32_t dtype,
                   const Patch &patch, double *to, std::int64_t pitch) {
  const Rows rows(call, tensor, patch, true);
  with_type(dtype, [&](auto type) {
    using X = decltype(type);
    gather(patch, rows, static_cast<const X *>(data), to, pitch, [](X x) { return widen(x); });
  });
}

void gather_values(const Call &call, const Patch &patch, double *to, std::int64_t pitch) {
  const General &general = *call.general;
  gather_tensor(call, kTensorX, call.buffers->x, call.problem->x_dtype, patch, to, pitch);
  const float *row_scale = call.buffers->row_scale;
  if (general.scale != 1.0 || row_scale != nullptr || general.softcap > 0) {
    const Rows rows(call, kTensorX, patch, true);
    for (std::int64_t i = 0; i < patch.rows; ++i) {
      double *row = to + i * pitch;
      const std::int64_t count = rows.count[i];
      if (general.scale != 1.0) {
        for (std::int64_t j = 0; j < count; ++j) row[j] *= general.scale;
      }
      if (row_scale != nullptr && !call.is_limit_row(patch.first + i)) {
        const double factor = row_scale[patch.first + i];
        for (std::int64_t j = 0; j < count; ++j) row[j] *= factor;
      }
      if (general.softcap > 0) {
        for (std::int64_t j = 0; j < count; ++j) {
          row[j] = general.softcap * std::tanh(row[j] / general.softcap);
        }
      }
    }
  }
  if (general.mask_kind == SOFTMAX_MASK_BOOL_KEEP) {
    mask_elements(call, patch, to, pitch, -Limits<double>::infinity());
  } else if (general.mask_kind == SOFTMAX_MASK_ADDITIVE) {
    add_mask(call, patch, to, pitch);
  }
}

void scatter_elements(const Call &call, const Patch &patch, const void *from, std::int64_t pitch) {
  const Rows rows(call, kTensorY, patch, false);
  with_type(call.problem->y_dtype, [&](auto type) {
    using Y = decltype(type);
    scatter(patch, rows, static_cast<Y *>(call.buffers->y), static_cast<const Y *>(from), pitch,
            [](Y y) { return y; });
  });
}

void scatter_floats(const Call &call, const Patch &patch, const float *from, std::int64_t pitch) {
  const Rows rows(call, kTensorY, patch, false);
  with_type(call.problem->y_dtype, [&](auto type) {
    using Y = decltype(type);
    scatter(patch, rows, static_cast<Y *>(call.buffers->y), from, pitch,
            [](float y) { return narrow<Y>(y); });
  });
}

void scatter_values(const Call &call, const Patch &patch, const double *from, std::int64_t pitch) {
  const bool backward = call.general->is_backward();
  const Rows rows(call, backward ? kTensorX : kTensorY, patch, false);
  const std::int32_t dtype = backward ? call.problem->x_dtype : call.problem->y_dtype;
  void *data = backward ? call.buffers->dx : call.buffers->y;
  const double scale = backward || dtype_size(dtype) != 1 ? 1.0 : call.general->y_scale;
  with_type(dtype, [&](auto type) {
    using Y = decltype(type);
    if (scale == 1.0) {
      scatter(patch, rows, static_cast<Y *>(data), from, pitch,
              [](double y) { return narrow<Y>(y); });
    } else {
      scatter(patch, rows, static_cast<Y *>(data), from, pitch,
              [scale](double y) { return narrow<Y>(y * scale); });
    }
  });
}

}  // namespace softmax
