// The selector's candidates. See select.h.
#include "select/select.h"

#include <cinttypes>
#include <cstdio>

#include "core/dtype.h"
#include "core/features.h"

namespace softmax {
namespace {

// ---- candidates ----

// In the order in which a log lists them. The ladder comes last, from its top.
constexpr Candidate kCandidates[] = {
    {SOFTMAX_ALGO_COLUMN, true, false, column_policy},
    {SOFTMAX_ALGO_WARP, true, false, warp_policy},
    {SOFTMAX_ALGO_BLOCK, true, false, block_policy},
    {SOFTMAX_ALGO_TILE, true, false, tile_policy},
    {SOFTMAX_ALGO_CLUSTER, true, false, cluster_policy},
    {SOFTMAX_ALGO_GRID, true, false, grid_policy},
    {SOFTMAX_ALGO_WARP_ONLINE, true, false, warp_online_policy},
    {SOFTMAX_ALGO_ONLINE, true, true, online_policy},
    {SOFTMAX_ALGO_VECTOR, true, true, vector_policy},
    {SOFTMAX_ALGO_SHUFFLE, true, false, shuffle_policy},
    {SOFTMAX_ALGO_SHARED, true, false, shared_policy},
    {SOFTMAX_ALGO_NAIVE, true, true, naive_policy},
    {SOFTMAX_ALGO_REFERENCE, true, true, reference_policy},
};

// The same of problems with features, on CUDA.
constexpr Candidate kGeneralCandidates[] = {
    {SOFTMAX_ALGO_COLUMN, true, false, column_general_policy},
    {SOFTMAX_ALGO_WARP, true, false, warp_general_policy},
    {SOFTMAX_ALGO_BLOCK, true, false, block_general_policy},
    {SOFTMAX_ALGO_TILE, true, false, no_general_policy},
    {SOFTMAX_ALGO_CLUSTER, true, false, cluster_general_policy},
    {SOFTMAX_ALGO_GRID, true, false, no_general_policy},
    {SOFTMAX_ALGO_WARP_ONLINE, true, false, no_general_policy},
    {SOFTMAX_ALGO_ONLINE, true, false, online_general_policy},
    {SOFTMAX_ALGO_VECTOR, true, false, no_general_policy},
    {SOFTMAX_ALGO_SHUFFLE, true, false, no_general_policy},
    {SOFTMAX_ALGO_SHARED, true, false, no_general_policy},
    {SOFTMAX_ALGO_NAIVE, true, false, no_general_policy},
    {SOFTMAX_ALGO_REFERENCE, true, false, no_general_policy},
};

// ---- AUTO ----

// What AUTO asks when the tuning table's algorithm has declined: all that read a row once, and,
// after the ladder's row, what takes everything.
constexpr std::int32_t kReadOnce[] = {SOFTMAX_ALGO_WARP, SOFTMAX_ALGO_BLOCK, SOFTMAX_ALGO_TILE,
                                      SOFTMAX_ALGO_CLUSTER, SOFTMAX_ALGO_GRID};
constexpr std::int32_t kTakesAll[] = {SOFTMAX_ALGO_ONLINE, SOFTMAX_ALGO_VECTOR};

const Candidate *find(const Candidates &candidates, std::int32_t algo) {
  for (int i = 0; i < candidates.count; ++i) {
    if (candidates.items[i].algo == algo) return &candidates.items[i];
  }
  return nullptr;
}

// The general call on the CPU: VECTOR and REFERENCE compute all of it.
bool takes_on_cpu(std::int32_t algo, const Problem &problem) {
  if (!problem.is_general()) return true;
  if (algo == SOFTMAX_ALGO_ONLINE) return (problem.features & ~kLayoutFeatures) == 0;
  return algo == SOFTMAX_ALGO_VECTOR || algo == SOFTMAX_ALGO_REFERENCE;
}

// Fills in the policy, or says why the candidate cannot run the problem at all and returns false.
// Where cap is 0 nobody wants to know why.
bool can_run(const Candidate &candidate, const DeviceCaps &caps, const Problem &problem,
             Policy *policy, char *why, std::size_t cap) {
  if (candidate.policy == nullptr) return decline(why, cap, "not in this release");
  if (caps.is_cuda ? !candidate.on_cuda : !candidate.on_cpu) {
    return decline(why, cap,
                   "no %s kernel; a CPU handle takes auto, naive, vector, online and reference",
                   caps.is_cuda ? "CUDA" : "CPU");
  }
  if (!caps.is_cuda && !takes_on_cpu(candidate.algo, problem)) {
    return decline(why, cap,
                   candidate.algo == SOFTMAX_ALGO_ONLINE
                       ? "takes any layout of the headline types, and nothing else"
                       : "takes contiguous rows of the headline types, and nothing else");
  }
  *policy = Policy{};
  if (caps.is_cuda && !candidate.policy(caps, problem, policy, why, cap)) return false;
  if (caps.is_cuda && policy->smem_bytes > caps.smem_per_block_bytes) {
    return decline(why, cap,
                   "needs %" PRId64 " bytes of shared memory a block, and the device has %" PRId64,
                   policy->smem_bytes, caps.smem_per_block_bytes);
  }
  policy->algo = candidate.algo;
  return true;
}

// The row for N, and where its range begins.
const TuningRow *row_for(const TuningTable &table, std::int64_t cols, std::int64_t *min_cols) {
  *min_cols = 1;
  int i = 0;
  while (i + 1 < table.count && cols > table.rows[i].max_cols) {
    *min_cols = table.rows[i].max_cols + 1;
    ++i;
  }
  return &table.rows[i];
}

// One AUTO question on its way through the candidates.
class AutoCall {
 public:
  AutoCall(const Candidates &candidates, const DeviceCaps &caps, const Problem &problem,
           Selection *selection)
      : candidates_(candidates), caps_(caps), problem_(problem), selection_(selection) {}

  bool run(const TuningTable &table, const TuningTable &ladder) {
    const TuningRow &row = *use(table);
    const bool is_adaptive = (problem_.flags & SOFTMAX_FLAG_M_ADAPTIVE) != 0;
    if (is_adaptive && row.adaptive_algo != SOFTMAX_ALGO_AUTO &&
        problem_.rows <= row.adaptive_rows && take(row.adaptive_algo, Why::kAdaptive)) {
      return true;
    }
    if (row.few_algo != SOFTMAX_ALGO_AUTO && problem_.rows <= row.few_rows &&
        take(row.few_algo, Why::kFewRows)) {
      return true;
    }
    if (take(row.algo, Why::kTable)) return true;
    selection_->passed_over = row.algo;
    for (const std::int32_t algo : kReadOnce) {
      if (algo != row.algo && take(algo, Why::kNext)) return true;
    }
    if (take(use(ladder)->algo, Why::kLadder)) return true;
    use(table);
    for (const std::int32_t algo : kTakesAll) {
      if (take(algo, Why::kNext)) return true;
    }
    return false;
  }

 private:
  const TuningRow *use(const TuningTable &table) {
    selection_->table = table.name;
    selection_->row = row_for(table, problem_.cols, &selection_->min_cols);
    return selection_->row;
  }

  bool take(std::int32_t algo, Why why) {
    const Candidate *candidate = find(candidates_, algo);
    if (candidate == nullptr ||
        !can_run(*candidate, caps_, problem_, &selection_->policy, nullptr, 0)) {
      return false;
    }
    selection_->why = why;
    return true;
  }

  const Candidates &candidates_;
  const DeviceCaps &caps_;
  const Problem &problem_;
  Selection *selection_;
};

// Tells why each candidate but the chosen one was not taken.
void list_others(const Candidates &candidates, const TuningTable &table, const DeviceCaps &caps,
                 const Problem &problem, const DeclineSink &sink, const Selection &selection) {
  for (int i = 0; i < candidates.count; ++i) {
    const Candidate &candidate = candidates.items[i];
    if (candidate.algo == selection.policy.algo) continue;
    Policy policy;
    char why[sizeof selection.declined];
    if (can_run(candidate, caps, problem, &policy, why, sizeof why)) {
      std::int64_t min_cols;
      decline(why, sizeof why, "the %s table has %s at N = %" PRId64, table.name,
              algo_name(row_for(table, problem.cols, &min_cols)->algo), problem.cols);
    }
    sink.fn(sink.user, algo_name(candidate.algo), why);
  }
}

}  // namespace

SelectOutcome select_from(const Candidates &candidates, const TuningTable &table,
                          const TuningTable &ladder, const DeviceCaps &caps, std::int32_t algo,
                          const Problem &asked, const DeclineSink &sink, Selection *selection) {
  // A matrix without elements is answered as the smallest with some: nothing will run, so nobody
  // declines for want of room, and no policy has to guard its arithmetic.
  Problem problem = asked;
  if (!problem.has_work()) problem.rows = problem.cols = 1;
  if (algo == SOFTMAX_ALGO_AUTO) {
    if (!AutoCall(candidates, caps, problem, selection).run(table, ladder)) {
      selection->why = Why::kDeclined;
      selection->policy = Policy{};
      decline(selection->declined, sizeof selection->declined, "no candidate accepts the problem");
    }
    if (sink.fn != nullptr) list_others(candidates, table, caps, problem, sink, *selection);
    return selection->why == Why::kDeclined ? SelectOutcome::kDeclined : SelectOutcome::kChosen;
  }
  const Candidate *candidate = find(candidates, algo);
  if (candidate == nullptr) return SelectOutcome::kNoSuchAlgo;
  if (!can_run(*candidate, caps, problem, &selection->policy, selection->declined,
               sizeof selection->declined)) {
    selection->why = Why::kDeclined;
    if (sink.fn != nullptr) sink.fn(sink.user, algo_name(algo), selection->declined);
    return SelectOutcome::kDeclined;
  }
  selection->why = Why::kByName;
  return SelectOutcome::kChosen;
}

SelectOutcome select(const DeviceCaps &caps, std::int32_t algo, const Problem &problem,
                     const DeclineSink &sink, Selection *selection) {
  constexpr Candidates candidates{kCandidates, sizeof kCandidates / sizeof kCandidates[0]};
  if (caps.is_cuda && problem.is_general()) {
    constexpr Candidates general{kGeneralCandidates,
                                 sizeof kGeneralCandidates / sizeof kGeneralCandidates[0]};
    const TuningTable table = general_table(caps, problem.features);
    return select_from(general, table, table, caps, algo, problem, sink, selection);
  }
  return select_from(candidates, tuning_table(caps, problem),
                     ladder_table(caps, problem.x_dtype, problem.cols), caps, algo, problem, sink,
                     selection);
}

void reason_text(const Selection &selection, char *buf, std::size_t cap) {
  if (selection.why == Why::kByName || selection.why == Why::kDeclined) {
    std::snprintf(buf, cap, "%s",
                  selection.why == Why::kByName ? "asked for by name" : selection.declined);
    return;
  }
  const TuningRow &row = *selection.row;
  char range[64];
  if (row.max_cols == kNoLimit) {
    std::snprintf(range, sizeof range, "at N of %" PRId64 " and above", selection.min_cols);
  } else {
    std::snprintf(range, sizeof range, "at N of %" PRId64 " to %" PRId64, selection.min_cols,
                  row.max_cols);
  }
  switch (selection.why) {
    case Why::kFewRows:
      std::snprintf(buf, cap, "the %s table has it %s and M of at most %" PRId64, selection.table,
                    range, row.few_rows);
      return;
    case Why::kAdaptive:
      std::snprintf(buf, cap, "the %s table has it %s and M of at most %" PRId64 " with M_ADAPTIVE",
                    selection.table, range, row.adaptive_rows);
      return;
    case Why::kNext:
      std::snprintf(buf, cap, "%s declined, which the %s table has %s: the next that accepts",
                    algo_name(selection.passed_over), selection.table, range);
      return;
    case Why::kLadder:
      std::snprintf(buf, cap, "%s declined: the %s table has it %s",
                    algo_name(selection.passed_over), selection.table, range);
      return;
    default: std::snprintf(buf, cap, "the %s table has it %s", selection.table, range); return;
  }
}

void kernel_name(const Policy &policy, const Problem &problem, const DeviceCaps &caps, char *buf,
                 std::size_t cap) {
  const char *prefix = caps.is_cuda ? "" : "cpu_";
  const bool is_backward = (problem.features & kFeatureBackward) != 0;
  const char *op = problem.op == SOFTMAX_OP_STATS ? "stats"
                   : is_backward ? (problem.is_log() ? "logsoftmax_backward" : "softmax_backward")
                                 : (problem.is_log() ? "logsoftmax" : "softmax");
  if (problem.x_dtype == problem.y_dtype) {
    std::snprintf(buf, cap, "%s%s_%s_%s", prefix, op, algo_name(policy.algo),
                  dtype_name(problem.x_dtype));
  } else {
    std::snprintf(buf, cap, "%s%s_%s_%s_%s", prefix, op, algo_name(policy.algo),
                  dtype_name(problem.x_dtype), dtype_name(problem.y_dtype));
  }
}

}  // namespace softmax
