// The selector's candidates. See select.h.
#include "select/select.h"

#include <cinttypes>
#include <cstdio>

#include "core/dtype.h"
#include "select/tuning.h"

namespace softmax {
namespace {

constexpr int kWarp = 32;
constexpr int kBlockThreads = 256;
constexpr int kVectorBytes = 16;

// The least power of two that is >= value, between 32 and 256: threads that share a row.
int threads_for(std::int64_t value) {
  int threads = kWarp;
  while (threads < kBlockThreads && threads < value) threads *= 2;
  return threads;
}

// Shared memory that one participant of a block reduction needs: a maximum and a compensated sum.
std::int64_t reduction_slot_bytes(const Problem &p) {
  return p.x_dtype == SOFTMAX_DTYPE_F64 ? 24 : 12;
}

// ---- policies, one function a stem. They look at N and the types, never at M. ----

Policy naive_policy(const Problem &) {
  Policy policy;
  policy.threads_per_row = 1;
  policy.rows_per_block = 64;
  return policy;
}

Policy shared_policy(const Problem &p) {
  Policy policy;
  policy.threads_per_row = kBlockThreads;
  policy.rows_per_block = 1;
  policy.smem_bytes = kBlockThreads * reduction_slot_bytes(p);
  return policy;
}

// A thread takes four elements of a short row before another warp is added: below that, the second
// stage of the reduction costs more than the warp brings.
Policy shuffle_policy(const Problem &p) {
  Policy policy;
  policy.threads_per_row = threads_for((p.cols + 3) / 4);
  policy.rows_per_block = kBlockThreads / policy.threads_per_row;
  policy.smem_bytes = kBlockThreads / kWarp * reduction_slot_bytes(p);
  return policy;
}

Policy vector_policy(const Problem &p) {
  const int per_load = kVectorBytes / dtype_size(p.x_dtype);
  Policy policy;
  policy.threads_per_row = threads_for((p.cols + per_load - 1) / per_load);
  policy.rows_per_block = kBlockThreads / policy.threads_per_row;
  policy.vec_bytes = kVectorBytes;
  policy.smem_bytes = kBlockThreads / kWarp * reduction_slot_bytes(p);
  return policy;
}

Policy online_policy(const Problem &p) {
  Policy policy;
  policy.threads_per_row = kBlockThreads;
  policy.rows_per_block = 1;
  policy.vec_bytes = kVectorBytes;
  policy.smem_bytes = kBlockThreads / kWarp * reduction_slot_bytes(p);
  return policy;
}

Policy warp_online_policy(const Problem &) {
  Policy policy;
  policy.threads_per_row = kWarp;
  policy.rows_per_block = kBlockThreads / kWarp;
  policy.vec_bytes = kVectorBytes;
  return policy;
}

Policy reference_policy(const Problem &) {
  Policy policy;
  policy.threads_per_row = 1;
  policy.rows_per_block = kWarp;
  return policy;
}

// ---- candidates ----

struct Candidate {
  std::int32_t algo;
  bool on_cuda;
  bool on_cpu;
  Policy (*policy)(const Problem &);  // null: not in this release
};

// In the order in which AUTO asks. The ladder comes last, from its top.
constexpr Candidate kCandidates[] = {
    {SOFTMAX_ALGO_COLUMN, true, false, nullptr},
    {SOFTMAX_ALGO_WARP, true, false, nullptr},
    {SOFTMAX_ALGO_BLOCK, true, false, nullptr},
    {SOFTMAX_ALGO_TILE, true, false, nullptr},
    {SOFTMAX_ALGO_CLUSTER, true, false, nullptr},
    {SOFTMAX_ALGO_GRID, true, false, nullptr},
    {SOFTMAX_ALGO_WARP_ONLINE, true, false, warp_online_policy},
    {SOFTMAX_ALGO_ONLINE, true, true, online_policy},
    {SOFTMAX_ALGO_VECTOR, true, true, vector_policy},
    {SOFTMAX_ALGO_SHUFFLE, true, false, shuffle_policy},
    {SOFTMAX_ALGO_SHARED, true, false, shared_policy},
    {SOFTMAX_ALGO_NAIVE, true, true, naive_policy},
    {SOFTMAX_ALGO_REFERENCE, true, true, reference_policy},
};

Policy make_policy(const Candidate &candidate, const DeviceCaps &caps, const Problem &problem) {
  Policy policy;
  if (caps.is_cuda) policy = candidate.policy(problem);
  policy.algo = candidate.algo;
  return policy;
}

// Why the candidate cannot run the problem at all; false where it can.
bool cannot_run(const Candidate &candidate, const DeviceCaps &caps, char *why, std::size_t cap) {
  if (candidate.policy == nullptr) {
    std::snprintf(why, cap, "not in this release");
    return true;
  }
  if (caps.is_cuda ? !candidate.on_cuda : !candidate.on_cpu) {
    std::snprintf(why, cap,
                  "no %s kernel; a CPU handle takes auto, naive, vector, online and reference",
                  caps.is_cuda ? "CUDA" : "CPU");
    return true;
  }
  return false;
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
    if (cannot_run(candidate, caps, why, sizeof why)) {
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
    selection->policy = make_policy(candidate, caps, problem);
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
    if (cannot_run(candidate, caps, selection->reason, sizeof selection->reason)) {
      if (sink.fn != nullptr) sink.fn(sink.user, algo_name(algo), selection->reason);
      return SelectOutcome::kDeclined;
    }
    selection->policy = make_policy(candidate, caps, problem);
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
