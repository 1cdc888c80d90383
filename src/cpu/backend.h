// The CPU backend as the entry points see it.
#pragma once

#include "core/problem.h"

namespace softmax {

// Describes the CPU: never fails.
void cpu_open(DeviceCaps *caps);

// OpenMP threads that a call would use at most, now.
int cpu_threads();

// Computes the whole problem before it returns. Everything has been checked; never fails: what
// scratch it cannot get, it does without.
void cpu_run(const Policy &policy, const Problem &problem, const Buffers &buffers);

// The SIMD target in use, for people ("AVX3_ZEN4").
const char *cpu_simd_name();

}  // namespace softmax
