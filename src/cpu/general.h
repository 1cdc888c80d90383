// The drivers of the general call, one a direction and strategy. Everything has been checked.
#pragma once

#include "cpu/call.h"

namespace softmax {

// Forward and STATS. ONLINE takes problems whose layout is their only feature.
void run_vector_general(const Call &call);
void run_online_general(const Call &call);

void run_vector_backward(const Call &call);

// Slow and obvious, both directions.
void run_reference_general(const Call &call);

}  // namespace softmax
