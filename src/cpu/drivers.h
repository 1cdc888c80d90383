// How the kernels are spread over rows, parts of rows and OpenMP threads: one driver a strategy.
#pragma once

#include "core/problem.h"

namespace softmax {

// Scalar, three passes, straight from core/numerics.h.
void run_naive(const Problem &problem, const Buffers &buffers);

// Slow and obvious, in float64 (long double for float64), with the C library's functions.
void run_reference(const Problem &problem, const Buffers &buffers);

// SIMD, three passes: maximum, sum, outputs.
void run_vector(const Problem &problem, const Buffers &buffers);

// SIMD, two reads of the row: a running (max, sum), outputs.
void run_online(const Problem &problem, const Buffers &buffers);

// Threads for a problem: 1 where opening a parallel region would cost more than it brings.
int threads_for(const Problem &problem);

}  // namespace softmax
