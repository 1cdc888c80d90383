// Taking in the caller's structs: by size, with the zero-tail rule, and the checks that need no
// device.
#pragma once

#include <cstddef>

#include "api/status.h"
#include "core/general.h"
#include "core/problem.h"

namespace softmax {

// The sizes of the first release, which are the smallest that any caller can have been compiled
// with. They never change; a test holds them against the header.
constexpr std::size_t kDescBytesV1 = 392;
constexpr std::size_t kArgsBytesV1 = 104;
constexpr std::size_t kChoiceBytesV1 = 240;

// Copies a caller's struct of any accepted size into this release's. `what` names it in messages.
Status take_in(const void *from, void *to, std::size_t known_bytes, std::size_t least_bytes,
               const char *what);

// Checks a descriptor that was taken in and reduces it to a problem: all that there is, where it
// has no features. Malformed descriptors (1xxx) are reported before unsupported ones (2xxx).
Status check_desc(const softmax_desc_t &desc, Problem *problem);

// What a checked descriptor says besides, for a problem with features. `has_sink`: args do.
Status make_general(const softmax_desc_t &desc, bool has_sink, General *general);

// rows, cols and both types, as the headline calls pass them.
Status check_matrix(std::int32_t op, std::int32_t x_dtype, std::int32_t y_dtype, std::int64_t rows,
                    std::int64_t cols, Problem *problem);

// A General for a matrix of the headline calls, whose types may be features.
void make_matrix_general(const Problem &problem, General *general);

// Checks which buffers args have, and adds those that are features to the problem's.
Status check_args(const softmax_args_t &args, const softmax_desc_t &desc, Problem *problem);

// The buffers that such a call uses, of all that args hold. Without a workspace.
GeneralBuffers buffers_of(const softmax_args_t &args, const Problem &problem,
                          const General &general);

// Checks the buffers of a plain call that has work to do, as far as no device is needed.
Status check_buffers(const Problem &problem, const void *x, const void *y);

// The same for a call with features.
Status check_general_buffers(const Problem &problem, const General &general,
                             const GeneralBuffers &buffers);

// ---- parts ----

Status check_dtype(const char *field, std::int32_t dtype);
Status check_size(std::int64_t rows, std::int64_t cols, std::int32_t x_dtype, std::int32_t y_dtype);
std::uint32_t type_features(std::int32_t x_dtype, std::int32_t y_dtype);

}  // namespace softmax
