// Elements between tensors of any layout and rows in scratch: as they are, as float64, or as the
// values that the softmax is taken of.
//
// Patches of several rows are walked through in blocks of columns, so that where neighbouring rows
// are neighbours in memory every cache line is used as a whole.
#pragma once

#include "cpu/call.h"

namespace softmax {

// x as it is, -inf where a BOOL_KEEP mask says so, to rows of `pitch` elements of x's type. Columns
// past a row's length are neither read nor written.
void gather_elements(const Call &call, const Patch &patch, void *to, std::int64_t pitch);

// v: x after scale, soft-cap and mask, in float64; otherwise the same. A row_scale of 0 is taken
// as 1.
void gather_values(const Call &call, const Patch &patch, double *to, std::int64_t pitch);

// A tensor of the layout in float64; otherwise the same.
void gather_tensor(const Call &call, int tensor, const void *data, std::int32_t dtype,
                   const Patch &patch, double *to, std::int64_t pitch);

// Whole patches to y, or to dx, from rows in scratch: of y's type, of float32, of float64.
void scatter_elements(const Call &call, const Patch &patch, const void *from, std::int64_t pitch);
void scatter_floats(const Call &call, const Patch &patch, const float *from, std::int64_t pitch);
void scatter_values(const Call &call, const Patch &patch, const double *from, std::int64_t pitch);

}  // namespace softmax
