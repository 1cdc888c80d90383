// Launch policies: how a stem runs a problem on a device, or why it cannot. One function a stem.
//
// They look at N, the types and the device; at M only for who does what, never for the order of
// additions: a row's bits must not depend on how many other rows there are.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdio>

#include "core/problem.h"

namespace softmax {

// Fills in `policy` and returns true; or returns decline(why, cap, ...), which writes the reason.
// cap is 0, and why may be null, where nobody reads the reason.
using PolicyFunction = bool(const DeviceCaps &caps, const Problem &problem, Policy *policy,
                            char *why, std::size_t cap);

PolicyFunction naive_policy;
PolicyFunction shared_policy;
PolicyFunction shuffle_policy;
PolicyFunction vector_policy;
PolicyFunction online_policy;
PolicyFunction warp_online_policy;
PolicyFunction warp_policy;
PolicyFunction block_policy;
PolicyFunction tile_policy;
PolicyFunction cluster_policy;
PolicyFunction grid_policy;
PolicyFunction reference_policy;
PolicyFunction column_policy;

// Of the general call on CUDA: of problems with features.
PolicyFunction column_general_policy;
PolicyFunction warp_general_policy;
PolicyFunction block_general_policy;
PolicyFunction cluster_general_policy;
PolicyFunction online_general_policy;
PolicyFunction no_general_policy;  // for whoever takes none of them

// Where rows are few, the other schedule of WARP, BLOCK and TILE's whole words: a block a row, of
// as many threads as the row has words in the order that `lanes`, `runs` and policy->packs say.
// Order and bits stay. False where rows are too many or too long for it, and then nothing has
// changed.
bool take_few_rows(const DeviceCaps &caps, const Problem &problem, int lanes, std::int64_t runs,
                   Policy *policy);

// False, and the reason in why[cap]. Formatting costs more than the choice itself: it is left out
// where nobody reads it.
[[gnu::format(printf, 3, 4)]] inline bool decline(char *why, std::size_t cap, const char *format,
                                                  ...) {
  if (cap == 0) return false;
  std::va_list values;
  va_start(values, format);
  std::vsnprintf(why, cap, format, values);
  va_end(values);
  return false;
}

}  // namespace softmax
