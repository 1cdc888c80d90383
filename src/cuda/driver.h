// The few driver calls that the runtime API has no word for, looked up at run time so that the
// library loads without libcuda.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace softmax {

struct Driver {
  CUresult (*ctx_get_current)(CUcontext *);
  CUresult (*ctx_push_current)(CUcontext);
  CUresult (*ctx_pop_current)(CUcontext *);
  CUresult (*device_get)(CUdevice *, int);
  CUresult (*primary_ctx_retain)(CUcontext *, CUdevice);
};

// The process's driver, or null where there is none or it lacks one of the calls.
const Driver *driver();

// Makes a device's primary context current for a scope and gives the thread back exactly what it
// had, a context of another kind or none at all included. (cudaSetDevice could not: setting the old
// device again would initialise its primary context.)
class ContextScope {
 public:
  explicit ContextScope(CUcontext context);
  ~ContextScope();
  ContextScope(const ContextScope &) = delete;
  ContextScope &operator=(const ContextScope &) = delete;
  bool ok() const { return ok_; }

 private:
  bool pushed_ = false;
  bool ok_ = false;
};

// The caller's pending CUDA error stays as it was: one that was there is kept, and one that this
// library's own calls leave behind is taken away.
class PendingErrorScope {
 public:
  PendingErrorScope() : clean_(cudaPeekAtLastError() == cudaSuccess) {}
  ~PendingErrorScope() {
    if (clean_ && failed_) cudaGetLastError();
  }
  PendingErrorScope(const PendingErrorScope &) = delete;
  PendingErrorScope &operator=(const PendingErrorScope &) = delete;

  // Passes a call's own result through and remembers a failure.
  cudaError_t operator()(cudaError_t result) {
    failed_ = failed_ || result != cudaSuccess;
    return result;
  }

 private:
  bool clean_;
  bool failed_ = false;
};

}  // namespace softmax
