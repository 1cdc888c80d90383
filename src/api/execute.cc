// The computing calls: check -> problem -> select -> run.
#include <cstring>

#include "api/entry.h"
#include "api/handle.h"
#include "api/intake.h"
#include "api/log.h"
#include "api/status.h"
#include "core/dtype.h"
#include "core/general.h"
#include "cpu/backend.h"
#include "select/select.h"

namespace softmax {
namespace {

void log_decline(void *, const char *candidate, const char *reason) {
  log_line(SOFTMAX_LOG_DEBUG, "%s declined: %s", candidate, reason);
}

Status choose(const softmax_context &handle, softmax_algo_t algo, const Problem &problem,
              Selection *selection) {
  const DeclineSink sink{log_enabled(SOFTMAX_LOG_DEBUG) ? log_decline : nullptr, nullptr};
  const SelectOutcome outcome = select(handle.caps, algo, problem, sink, selection);
  switch (outcome) {
    case SelectOutcome::kChosen: break;
    case SelectOutcome::kNoSuchAlgo:
      return fail(SOFTMAX_STATUS_BAD_ENUM, "algo = %d does not exist", static_cast<int>(algo));
    case SelectOutcome::kDeclined:
      return fail(SOFTMAX_STATUS_NOT_SUPPORTED_ALGO, "%s: %s", algo_name(algo),
                  selection->declined);
  }
  if (log_enabled(SOFTMAX_LOG_INFO)) {
    char kernel[64];
    char reason[128];
    kernel_name(selection->policy, problem, handle.caps, kernel, sizeof kernel);
    reason_text(*selection, reason, sizeof reason);
    log_line(SOFTMAX_LOG_INFO, "M = %lld, N = %lld: %s (%s)", static_cast<long long>(problem.rows),
             static_cast<long long>(problem.cols), kernel, reason);
  }
  return SOFTMAX_SUCCESS;
}

// A problem that was checked, with buffers that were not.
Status run(softmax_context &handle, softmax_algo_t algo, const Problem &problem,
           const Buffers &buffers, softmax_stream_t stream) {
  if (!handle.caps.is_cuda && stream != nullptr) {
    return fail(SOFTMAX_STATUS_WRONG_DEVICE, "stream must be NULL on a CPU handle");
  }
  Selection selection;
  if (Status s = choose(handle, algo, problem, &selection)) return s;
  if (!problem.has_work()) return SOFTMAX_SUCCESS;
  if (Status s = check_buffers(problem, buffers.x, buffers.y)) return s;
  if (!handle.caps.is_cuda) {
    cpu_run(selection.policy, problem, buffers);
    return SOFTMAX_SUCCESS;
  }
  if ((problem.flags & SOFTMAX_FLAG_TRUST_POINTERS) == 0) {
    if (Status s = cuda_check_buffers(handle.caps, handle.cuda, problem, buffers)) return s;
  }
  return cuda_run(handle.caps, handle.cuda, selection.policy, problem, buffers, stream);
}

// The same for a problem with features.
Status run_general(softmax_context &handle, softmax_algo_t algo, const Problem &problem,
                   const General &general, const GeneralBuffers &buffers, softmax_stream_t stream) {
  if (!handle.caps.is_cuda && stream != nullptr) {
    return fail(SOFTMAX_STATUS_WRONG_DEVICE, "stream must be NULL on a CPU handle");
  }
  Selection selection;
  if (Status s = choose(handle, algo, problem, &selection)) return s;
  if (!problem.has_work()) return SOFTMAX_SUCCESS;
  if (Status s = check_general_buffers(problem, general, buffers)) return s;
  if (!handle.caps.is_cuda) {
    cpu_run_general(selection.policy, problem, general, buffers);
    return SOFTMAX_SUCCESS;
  }
  if ((problem.flags & SOFTMAX_FLAG_TRUST_POINTERS) == 0) {
    if (Status s = cuda_check_general_buffers(handle.caps, handle.cuda, buffers)) return s;
  }
  return cuda_run_general(handle.caps, handle.cuda, selection.policy, problem, general, buffers,
                          stream);
}

Status run_matrix(std::int32_t op, softmax_handle_t handle, softmax_algo_t algo, const void *x,
                  softmax_dtype_t x_dtype, void *y, softmax_dtype_t y_dtype, int64_t rows,
                  int64_t cols, softmax_stream_t stream) {
  if (Status s = check_handle(handle)) return s;
  Problem problem;
  if (Status s = check_matrix(op, x_dtype, y_dtype, rows, cols, &problem)) return s;
  if (problem.is_general()) {
    General general;
    make_matrix_general(problem, &general);
    GeneralBuffers buffers;
    buffers.x = x;
    buffers.y = y;
    return run_general(*handle, algo, problem, general, buffers, stream);
  }
  return run(*handle, algo, problem, {x, y, handle->workspace, handle->workspace_bytes}, stream);
}

}  // namespace
}  // namespace softmax

extern "C" {

softmax_status_t softmax_forward(softmax_handle_t handle, softmax_algo_t algo, float *ptr,
                                 int64_t M, int64_t N, softmax_stream_t stream) {
  return softmax_forward_to(handle, algo, ptr, SOFTMAX_DTYPE_F32, ptr, SOFTMAX_DTYPE_F32, M, N,
                            stream);
}

softmax_status_t logsoftmax_forward(softmax_handle_t handle, softmax_algo_t algo, float *ptr,
                                    int64_t M, int64_t N, softmax_stream_t stream) {
  return logsoftmax_forward_to(handle, algo, ptr, SOFTMAX_DTYPE_F32, ptr, SOFTMAX_DTYPE_F32, M, N,
                               stream);
}

softmax_status_t softmax_forward_to(softmax_handle_t handle, softmax_algo_t algo, const void *x,
                                    softmax_dtype_t x_dtype, void *y, softmax_dtype_t y_dtype,
                                    int64_t M, int64_t N, softmax_stream_t stream) {
  return softmax::guarded([&] {
    return softmax::run_matrix(SOFTMAX_OP_SOFTMAX, handle, algo, x, x_dtype, y, y_dtype, M, N,
                               stream);
  });
}

softmax_status_t logsoftmax_forward_to(softmax_handle_t handle, softmax_algo_t algo, const void *x,
                                       softmax_dtype_t x_dtype, void *y, softmax_dtype_t y_dtype,
                                       int64_t M, int64_t N, softmax_stream_t stream) {
  return softmax::guarded([&] {
    return softmax::run_matrix(SOFTMAX_OP_LOGSOFTMAX, handle, algo, x, x_dtype, y, y_dtype, M, N,
                               stream);
  });
}

softmax_status_t softmax_desc_init(softmax_desc_t *desc, size_t struct_size, int32_t op,
                                   softmax_dtype_t dtype, int64_t M, int64_t N) {
  using namespace softmax;
  if (desc == nullptr) return fail(SOFTMAX_STATUS_NULL_POINTER, "desc is NULL");
  if (struct_size < kDescBytesV1 || struct_size > 65536) {
    return fail(SOFTMAX_STATUS_STRUCT_SIZE, "struct_size = %zu: pass sizeof(softmax_desc_t) = %zu",
                struct_size, sizeof(softmax_desc_t));
  }
  softmax_desc_t fresh;
  std::memset(&fresh, 0, sizeof fresh);
  fresh.struct_size = struct_size;
  fresh.op = op;
  fresh.x_dtype = dtype;
  fresh.y_dtype = dtype;
  fresh.ndim = 2;
  fresh.axis = -1;
  fresh.shape[0] = M;
  fresh.shape[1] = N;
  fresh.scale = 1.0;
  std::memset(desc, 0, struct_size);
  std::memcpy(desc, &fresh, struct_size < sizeof fresh ? struct_size : sizeof fresh);
  return SOFTMAX_SUCCESS;
}

softmax_status_t softmax_desc_check(const softmax_desc_t *desc) {
  using namespace softmax;
  softmax_desc_t known;
  Problem problem;
  if (Status s = take_in(desc, &known, sizeof known, kDescBytesV1, "softmax_desc_t")) return s;
  return check_desc(known, &problem);
}

softmax_status_t softmax_execute(softmax_handle_t handle, softmax_algo_t algo,
                                 const softmax_desc_t *desc, const softmax_args_t *args,
                                 softmax_stream_t stream) {
  using namespace softmax;
  return guarded([&]() -> Status {
    if (Status s = check_handle(handle)) return s;
    softmax_desc_t known_desc;
    softmax_args_t known_args;
    Problem problem;
    if (Status s = take_in(desc, &known_desc, sizeof known_desc, kDescBytesV1, "softmax_desc_t")) {
      return s;
    }
    if (Status s = take_in(args, &known_args, sizeof known_args, kArgsBytesV1, "softmax_args_t")) {
      return s;
    }
    if (Status s = check_desc(known_desc, &problem)) return s;
    if (Status s = check_args(known_args, known_desc, &problem)) return s;
    const bool own = known_args.workspace != nullptr;
    void *workspace = own ? known_args.workspace : handle->workspace;
    const std::size_t workspace_bytes =
        own ? static_cast<std::size_t>(known_args.workspace_bytes) : handle->workspace_bytes;
    if (problem.is_general()) {
      General general;
      if (Status s = make_general(known_desc, known_args.sink != nullptr, &general)) return s;
      GeneralBuffers buffers = buffers_of(known_args, problem, general);
      buffers.workspace = workspace;
      buffers.workspace_bytes = workspace_bytes;
      return run_general(*handle, algo, problem, general, buffers, stream);
    }
    return run(*handle, algo, problem, {known_args.x, known_args.y, workspace, workspace_bytes},
               stream);
  });
}

softmax_status_t softmax_select(softmax_handle_t handle, softmax_algo_t algo,
                                const softmax_desc_t *desc, softmax_choice_t *out) {
  using namespace softmax;
  return guarded([&]() -> Status {
    if (Status s = check_handle(handle)) return s;
    softmax_desc_t known;
    Problem problem;
    if (Status s = take_in(desc, &known, sizeof known, kDescBytesV1, "softmax_desc_t")) return s;
    if (out == nullptr) return fail(SOFTMAX_STATUS_NULL_POINTER, "out is NULL");
    if (out->struct_size < kChoiceBytesV1 || out->struct_size > 65536) {
      return fail(SOFTMAX_STATUS_STRUCT_SIZE,
                  "out->struct_size = %llu: set it to sizeof(softmax_choice_t) = %zu",
                  static_cast<unsigned long long>(out->struct_size), sizeof(softmax_choice_t));
    }
    if (Status s = check_desc(known, &problem)) return s;
    Selection selection;
    if (Status s = choose(*handle, algo, problem, &selection)) return s;

    softmax_choice_t choice;
    std::memset(&choice, 0, sizeof choice);
    const Policy &policy = selection.policy;
    choice.struct_size = out->struct_size;
    choice.workspace_bytes = static_cast<std::uint64_t>(policy.workspace_bytes);
    choice.algo = policy.algo;
    choice.rows_per_block = policy.rows_per_block;
    choice.threads =
        handle->caps.is_cuda ? policy.threads_per_row * policy.rows_per_block : cpu_threads();
    choice.cluster = policy.cluster;
    choice.stages = policy.stages;
    choice.vec_bytes = policy.vec_bytes;
    choice.smem_bytes = policy.smem_bytes;
    kernel_name(policy, problem, handle->caps, choice.kernel, sizeof choice.kernel);
    reason_text(selection, choice.reason, sizeof choice.reason);
    const std::size_t size = static_cast<std::size_t>(out->struct_size);
    std::memset(out, 0, size);
    std::memcpy(out, &choice, size < sizeof choice ? size : sizeof choice);
    return SOFTMAX_SUCCESS;
  });
}

}  // extern "C"
