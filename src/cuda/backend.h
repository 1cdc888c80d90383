// The CUDA backend as the entry points see it: no CUDA header is needed to call it. A build without
// CUDA has the same functions, from absent.cc, which refuse.
#pragma once

#include <cstdint>

#include "api/status.h"
#include "core/general.h"
#include "core/problem.h"

struct CUctx_st;

namespace softmax {

struct CudaDevice {
  CUctx_st *context = nullptr;  // the device's primary context
};

// The number of CUDA devices, 0 where there is no driver. Creates no context.
std::int32_t cuda_device_count();

// The calling thread's current device; false where CUDA cannot be used at all.
bool cuda_current_device(std::int32_t *ordinal);

// Reads a device's capabilities and retains its primary context for the life of the process.
Status cuda_open(std::int32_t ordinal, DeviceCaps *caps, CudaDevice *device);

// Refuses buffers that the device cannot reach: see SOFTMAX_STATUS_WRONG_DEVICE.
Status cuda_check_buffers(const DeviceCaps &caps, const CudaDevice &device, const Problem &problem,
                          const Buffers &buffers);

// Enqueues the kernel that `policy` names. Everything has been checked.
Status cuda_run(const DeviceCaps &caps, const CudaDevice &device, const Policy &policy,
                const Problem &problem, const Buffers &buffers, softmax_stream_t stream);

// The same for problems with features.
Status cuda_check_general_buffers(const DeviceCaps &caps, const CudaDevice &device,
                                  const GeneralBuffers &buffers);
Status cuda_run_general(const DeviceCaps &caps, const CudaDevice &device, const Policy &policy,
                        const Problem &problem, const General &general,
                        const GeneralBuffers &buffers, softmax_stream_t stream);

// softmax_merge_stats, whose buffers may be no memory of the device's.
Status cuda_merge_stats(const DeviceCaps &caps, const CudaDevice &device, std::int64_t parts,
                        std::int64_t rows, const float *part_max, const float *part_sum,
                        float *row_max, float *row_sum, float *lse, softmax_stream_t stream);

// "CUDA runtime 13.0, sm_90" or "no CUDA".
const char *cuda_build_text();

}  // namespace softmax
