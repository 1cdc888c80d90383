// The selector: a pure host function from (device, algorithm asked for, problem) to a launch
// policy.
//
// An explicit algorithm is the only candidate of its call: it accepts the problem, or declines with
// a reason. AUTO asks in this order, and takes the first that accepts:
//   1. the algorithm that the tuning table of the architecture has at N
//   2. the other algorithms that read a row once
//   3. the algorithm that the ladder's table has at N
//   4. ONLINE and VECTOR, which take everything
// So every legal problem has an answer, on cards that are not known yet too.
//
// M decides nothing that a row's bits depend on, unless the caller gave SOFTMAX_FLAG_M_ADAPTIVE:
// see TuningRow.
#pragma once

#include <cstddef>

#include "core/algo.h"
#include "core/problem.h"
#include "select/policy.h"
#include "select/tuning.h"

namespace softmax {

enum class Why {
  kByName,    // asked for by name
  kTable,     // the tuning row's algorithm
  kFewRows,   // its few_algo
  kAdaptive,  // its adaptive_algo
  kNext,      // the tuning row's algorithm declined: the next in order
  kLadder,    // no algorithm that reads a row once accepted: the ladder's row
  kDeclined
};

// What was chosen, and as much as reason_text needs to say why. No text is made before somebody
// wants to read it: a computing call does not.
struct Selection {
  Policy policy;
  Why why = Why::kDeclined;
  const char *table = nullptr;                   // of AUTO: the table that was used,
  const TuningRow *row = nullptr;                // its row,
  std::int64_t min_cols = 0;                     // where the row's range begins,
  std::int32_t passed_over = SOFTMAX_ALGO_AUTO;  // and what the tuning table has, if it declined
  char declined[128];                            // after kDeclined alone: why
};

enum class SelectOutcome { kChosen, kNoSuchAlgo, kDeclined };

// Called for every candidate that AUTO did not take, in a fixed order. `fn` may be null.
struct DeclineSink {
  void (*fn)(void *user, const char *candidate, const char *reason);
  void *user;
};

SelectOutcome select(const DeviceCaps &caps, std::int32_t algo, const Problem &problem,
                     const DeclineSink &sink, Selection *selection);

// One sentence: why this one; after kDeclined, why not.
void reason_text(const Selection &selection, char *buf, std::size_t cap);

// "softmax_vector_f16_f32": the operation, the stem and the types, for logs and softmax_choice_t.
void kernel_name(const Policy &policy, const Problem &problem, const DeviceCaps &caps, char *buf,
                 std::size_t cap);

// ---- the parts of it, for tests ----

struct Candidate {
  std::int32_t algo;
  bool on_cuda;
  bool on_cpu;
  PolicyFunction *policy;  // null: not in this release
};

struct Candidates {
  const Candidate *items;
  int count;
};

// As select, over other candidates and tables than the library's own.
SelectOutcome select_from(const Candidates &candidates, const TuningTable &table,
                          const TuningTable &ladder, const DeviceCaps &caps, std::int32_t algo,
                          const Problem &problem, const DeclineSink &sink, Selection *selection);

}  // namespace softmax
