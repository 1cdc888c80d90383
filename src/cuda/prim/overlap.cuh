// Kernels of one stream that overlap: this one's blocks begin while the last blocks of the kernel
// before it still run (programmatic dependent launch, compute capability 9.0 and above). See
// overlap_of in run.cc for which launches ask for it.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/row_args.h"

namespace softmax {

// Every thread, before the first access to global memory, reads and writes alike: returns when the
// kernel before this one has ended and what it wrote can be seen. Until then shared memory and
// registers may be made ready.
//
// Where the launch says so it also lets the kernel after this one begin as soon as all blocks here
// have come so far, if that one asks for it: such a kernel waits for the end of this one likewise.
__device__ __forceinline__ void wait_for_kernel_before(const RowArgs &args) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if (args.overlap == Overlap::kNone) return;
  if (args.overlap == Overlap::kBoth) cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
#endif
}

}  // namespace softmax
