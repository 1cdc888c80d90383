// Looking up the driver's calls, and the context scope.
#include "cuda/driver.h"

namespace softmax {
namespace {

// Every call here has had its present form since CUDA 7; 11.0 is as old as anything this builds
// with.
constexpr unsigned kDriverApiVersion = 11000;

template <typename Function>
bool look_up(const char *name, Function *function) {
  void *address = nullptr;
  cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
  const cudaError_t result = cudaGetDriverEntryPointByVersion(name, &address, kDriverApiVersion,
                                                              cudaEnableDefault, &found);
#else
  const cudaError_t result = cudaGetDriverEntryPoint(name, &address, cudaEnableDefault, &found);
#endif
  if (result != cudaSuccess || found != cudaDriverEntryPointSuccess) return false;
  *function = reinterpret_cast<Function>(address);
  return true;
}

bool load(Driver *driver) {
  return look_up("cuCtxGetCurrent", &driver->ctx_get_current) &&
         look_up("cuCtxPushCurrent", &driver->ctx_push_current) &&
         look_up("cuCtxPopCurrent", &driver->ctx_pop_current) &&
         look_up("cuDeviceGet", &driver->device_get) &&
         look_up("cuDevicePrimaryCtxRetain", &driver->primary_ctx_retain);
}

}  // namespace

const Driver *driver() {
  struct Loaded {
    Driver calls = {};
    bool ok = load(&calls);
  };
  static const Loaded loaded;
  return loaded.ok ? &loaded.calls : nullptr;
}

ContextScope::ContextScope(CUcontext context) {
  const Driver *calls = driver();
  CUcontext current = nullptr;
  if (calls == nullptr || calls->ctx_get_current(&current) != CUDA_SUCCESS) return;
  if (current == context) {
    ok_ = true;
    return;
  }
  pushed_ = calls->ctx_push_current(context) == CUDA_SUCCESS;
  ok_ = pushed_;
}

ContextScope::~ContextScope() {
  CUcontext popped;
  if (pushed_) driver()->ctx_pop_current(&popped);
}

}  // namespace softmax
