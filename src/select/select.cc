// The selector's candidates. See select.h.
#include "select/select.h"

#include <cinttypes>
#include <cstdio>

#include "core/dtype.h"
#include "select/policy.h"
#include "select/tuning.h"

namespace softmax {
namespace {

// ---- candidates ----

struct Candidate {
  std::int32_t algo;
  bool on_cuda;
  bool on_cpu;
  PolicyFunction *policy;  // null: not in this release
};

// In the order in which AUTO asks. The ladder comes last, from its top.
constexpr Candidate kCandidates[] = {
    {SOFTMAX_ALGO_COLUMN, true, false, nullptr},
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

// Fills in the policy, or says why the candidate cannot run the problem at all and returns false.
bool can_run(const Candidate &candidate, const DeviceCaps &caps, const Problem &problem,
             Policy *policy, char *why, std::size_t cap) {
  if (candidate.policy == nullptr) {
    std::snprintf(why, cap, "not in this release");
    return false;
  }
  if (caps.is_cuda ? !candidate.on_cuda : !candidate.on_cpu) {
    std::snprintf(why, cap,
                  "no %s kernel; a CPU handle takes auto, naive, vector, online and reference",
                  caps.is_cuda ? "CUDA" : "CPU");
    return false;
  }
  *policy = Policy{};
  if (caps.is_cuda && !candidate.policy(caps, problem, policy, why, cap)) return false;
  policy->algo = candidate.algo;
  return true;
}

// The tuning row for N and where its range begins.
const TuningRow &row_for(const TuningTable &table, std::int64_t cols, std::int64_t *min_cols) {
  *min_cols = 1;
  int i = 0;
  while (i + 1 < table.count && cols > table.rows[i].max_cols) {
    *min_cols = table.rows[i].max_cols + 1;
    ++i;
  }
  return table.rows[i];
}

SelectOutcome select_auto(const DeviceCaps &caps, const Problem &problem, const DeclineSink &sink,
                          Selection *selection) {
  const TuningTable table = tuning_table(caps, problem.x_dtype, problem.cols);
  std::int64_t min_cols;
  const TuningRow &row = row_for(table, problem.cols, &min_cols);
  for (const Candidate &candidate : kCandidates) {
    char why[sizeof selection->reason];
    if (!can_run(candidate, caps, problem, &selection->policy, why, sizeof why)) {
      if (sink.fn != nullptr) sink.fn(sink.user, algo_name(candidate.algo), why);
      continue;
    }
    if (candidate.algo != row.algo) {
      if (sink.fn != nullptr) {
        std::snprintf(why, sizeof why, "the %s table has %s at N = %" PRId64, table.name,
                      algo_name(row.algo), problem.cols);
        sink.fn(sink.user, algo_name(candidate.algo), why);
      }
      continue;
    }
    if (row.max_cols == kNoLimit) {
      std::snprintf(selection->reason, sizeof selection->reason,
                    "the %s table has it at N of %" PRId64 " and above", table.name, min_cols);
    } else {
      std::snprintf(selection->reason, sizeof selection->reason,
                    "the %s table has it at N of %" PRId64 " to %" PRId64, table.name, min_cols,
                    row.max_cols);
    }
    return SelectOutcome::kChosen;
  }
  std::snprintf(selection->reason, sizeof selection->reason, "no candidate accepts the problem");
  return SelectOutcome::kDeclined;
}

}  // namespace

SelectOutcome select(const DeviceCaps &caps, std::int32_t algo, const Problem &problem,
                     const DeclineSink &sink, Selection *selection) {
  if (algo == SOFTMAX_ALGO_AUTO) return select_auto(caps, problem, sink, selection);
  for (const Candidate &candidate : kCandidates) {
    if (candidate.algo != algo) continue;
    if (!can_run(candidate, caps, problem, &selection->policy, selection->reason,
                 sizeof selection->reason)) {
      if (sink.fn != nullptr) sink.fn(sink.user, algo_name(algo), selection->reason);
      return SelectOutcome::kDeclined;
    }
    std::snprintf(selection->reason, sizeof selection->reason, "asked for by name");
    return SelectOutcome::kChosen;
  }
  return SelectOutcome::kNoSuchAlgo;
}

void kernel_name(const Policy &policy, const Problem &problem, const DeviceCaps &caps, char *buf,
                 std::size_t cap) {
  const char *prefix = caps.is_cuda ? "" : "cpu_";
  const char *op = problem.is_log() ? "logsoftmax" : "softmax";
  if (problem.x_dtype == problem.y_dtype) {
    std::snprintf(buf, cap, "%s%s_%s_%s", prefix, op, algo_name(policy.algo),
                  dtype_name(problem.x_dtype));
  } else {
    std::snprintf(buf, cap, "%s%s_%s_%s_%s", prefix, op, algo_name(policy.algo),
                  dtype_name(problem.x_dtype), dtype_name(problem.y_dtype));
  }
}

}  // namespace softmax
