// The CPU backend as the entry points see it.
#pragma once

#include "core/general.h"
#include "core/problem.h"

namespace softmax {

// Describes the CPU: never fails.
void cpu_open(DeviceCaps *caps);

// OpenMP threads that a call would use at most, now.
int cpu_threads();

// Computes the whole problem before it returns. Everything has been checked; never fails: what
// scratch it cannot get, it does without.
void cpu_run(const Policy &policy, const Problem &problem, const Buffers &buffers);

// The same for a problem with features, which the selector has given to VECTOR, ONLINE or
// REFERENCE.
void cpu_run_general(const Policy &policy, const Problem &problem, const General &general,
                     const GeneralBuffers &buffers);

// Merges the statistics of rows: see softmax_merge_stats.
void cpu_merge_stats(std::int64_t parts, std::int64_t rows, const float *part_max,
                     const float *part_sum, float *row_max, float *row_sum, float *lse);

// The SIMD target in use, for people ("AVX3_ZEN4").
const char *cpu_simd_name();

}  // namespace softmax
