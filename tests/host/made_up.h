// Devices and problems for the selector's tests: nothing here is asked of a real card.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/problem.h"
#include "select/select.h"
#include "support/element.h"

namespace softmax_test {

struct NamedCaps {
  const char *name;
  softmax::DeviceCaps caps;
};

inline softmax::DeviceCaps cuda_caps(int compute_capability, int sm_count, int threads_per_sm,
                                     int l2_mib, int smem_per_block_kib, int smem_per_sm_kib = 0) {
  softmax::DeviceCaps caps;
  caps.is_cuda = true;
  caps.ordinal = 0;
  caps.compute_capability = compute_capability;
  caps.sm_count = sm_count;
  caps.max_threads_per_sm = threads_per_sm;
  caps.l2_bytes = std::int64_t{l2_mib} << 20;
  caps.smem_per_block_bytes = std::int64_t{smem_per_block_kib} << 10;
  // As a rule a multiprocessor has as much as a block may have, and what the system reserves.
  const int per_sm_kib = smem_per_sm_kib == 0 ? smem_per_block_kib + 1 : smem_per_sm_kib;
  caps.smem_per_sm_bytes = std::int64_t{per_sm_kib} << 10;
  return caps;
}

// A card of each architecture that the library is built for, one that is not known yet, one with
// next to nothing, and the CPU.
inline std::vector<NamedCaps> made_up_devices() {
  return {{"cpu", softmax::DeviceCaps{}},
          {"sm_75", cuda_caps(75, 40, 1024, 4, 64, 64)},
          {"sm_80", cuda_caps(80, 108, 2048, 40, 163, 164)},
          {"sm_86", cuda_caps(86, 84, 1536, 6, 99, 100)},
          {"sm_89", cuda_caps(89, 142, 1536, 96, 99, 100)},
          {"sm_90", cuda_caps(90, 132, 2048, 60, 227, 228)},
          {"sm_100", cuda_caps(100, 148, 2048, 126, 227, 228)},
          {"sm_120", cuda_caps(120, 84, 1536, 64, 99, 100)},
          {"sm_999", cuda_caps(999, 1, 1024, 1, 48, 48)}};
}

inline softmax::Problem make_problem(const TypePair &types, std::int64_t rows, std::int64_t cols,
                                     bool is_log = false) {
  softmax::Problem problem;
  problem.op = is_log ? SOFTMAX_OP_LOGSOFTMAX : SOFTMAX_OP_SOFTMAX;
  problem.x_dtype = types.x;
  problem.y_dtype = types.y;
  problem.rows = rows;
  problem.cols = cols;
  return problem;
}

inline softmax::SelectOutcome select_quietly(const softmax::DeviceCaps &caps, std::int32_t algo,
                                             const softmax::Problem &problem,
                                             softmax::Selection *selection) {
  return softmax::select(caps, algo, problem, softmax::DeclineSink{nullptr, nullptr}, selection);
}

inline std::string reason_of(const softmax::Selection &selection) {
  char text[128];
  softmax::reason_text(selection, text, sizeof text);
  return text;
}

// "warp: not in this release", ...: what a sink hears of one AUTO question.
inline std::vector<std::string> declines(const softmax::DeviceCaps &caps,
                                         const softmax::Problem &problem) {
  std::vector<std::string> lines;
  const softmax::DeclineSink sink{[](void *user, const char *candidate, const char *reason) {
                                    static_cast<std::vector<std::string> *>(user)->push_back(
                                        std::string(candidate) + ": " + reason);
                                  },
                                  &lines};
  softmax::Selection selection;
  softmax::select(caps, SOFTMAX_ALGO_AUTO, problem, sink, &selection);
  return lines;
}

}  // namespace softmax_test
