// The CUDA backend of a build without CUDA: there are no devices, and asking for one says why.
#include "cuda/backend.h"

namespace softmax {

std::int32_t cuda_device_count() { return 0; }

bool cuda_current_device(std::int32_t *) { return false; }

Status cuda_open(std::int32_t ordinal, DeviceCaps *, CudaDevice *) {
  return fail(SOFTMAX_STATUS_NOT_SUPPORTED,
              "CUDA device %d was asked for, but this libsoftmax was built without CUDA",
              static_cast<int>(ordinal));
}

Status cuda_check_buffers(const DeviceCaps &, const CudaDevice &, const Problem &,
                          const Buffers &) {
  return fail(SOFTMAX_STATUS_INTERNAL, "a CUDA handle in a build without CUDA");
}

Status cuda_run(const DeviceCaps &, const CudaDevice &, const Policy &, const Problem &,
                const Buffers &, softmax_stream_t) {
  return fail(SOFTMAX_STATUS_INTERNAL, "a CUDA handle in a build without CUDA");
}

Status cuda_check_general_buffers(const DeviceCaps &, const CudaDevice &, const GeneralBuffers &) {
  return fail(SOFTMAX_STATUS_INTERNAL, "a CUDA handle in a build without CUDA");
}

Status cuda_run_general(const DeviceCaps &, const CudaDevice &, const Policy &, const Problem &,
                        const General &, const GeneralBuffers &, softmax_stream_t) {
  return fail(SOFTMAX_STATUS_INTERNAL, "a CUDA handle in a build without CUDA");
}

Status cuda_merge_stats(const DeviceCaps &, const CudaDevice &, std::int64_t, std::int64_t,
                        const float *, const float *, float *, float *, float *,
                        softmax_stream_t) {
  return fail(SOFTMAX_STATUS_INTERNAL, "a CUDA handle in a build without CUDA");
}

const char *cuda_build_text() { return "no CUDA"; }

}  // namespace softmax
