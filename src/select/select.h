// The selector: a pure host function from (device, algorithm asked for, problem) to a launch
// policy.
//
// Candidates stand in a fixed order; each accepts the problem or declines it with a reason. AUTO
// takes the first that accepts; an explicit algorithm is the only candidate of its call. Nothing
// here looks at M unless the caller gave SOFTMAX_FLAG_M_ADAPTIVE, which no candidate makes use of
// yet: a row's bits must not depend on how many other rows there are.
#pragma once

#include <cstddef>

#include "core/algo.h"
#include "core/problem.h"

namespace softmax {

struct Selection {
  Policy policy;
  char reason[128] = {};  // why this one; after kDeclined, why not
};

enum class SelectOutcome { kChosen, kNoSuchAlgo, kDeclined };

// Called for every candidate that declines, in order. `fn` may be null.
struct DeclineSink {
  void (*fn)(void *user, const char *candidate, const char *reason);
  void *user;
};

SelectOutcome select(const DeviceCaps &caps, std::int32_t algo, const Problem &problem,
                     const DeclineSink &sink, Selection *selection);

// "softmax_vector_f16_f32": the operation, the stem and the types, for logs and softmax_choice_t.
void kernel_name(const Policy &policy, const Problem &problem, const DeviceCaps &caps, char *buf,
                 std::size_t cap);

}  // namespace softmax
