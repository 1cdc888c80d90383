// What only a CUDA device can run; the rows are in cuda_table.cc.
#pragma once

#include "special.h"

namespace reports {

// large.cc: 2^27 elements and more, made and looked at on the device.
void run_large(Device *device, const Entry &entry, Verdict *verdict);

// streams.cc
void run_stream_order(Device *device, const Entry &entry, Verdict *verdict);
void run_first_capture(Device *device, const Entry &entry, Verdict *verdict);
void run_destroy_around_capture(Device *device, const Entry &entry, Verdict *verdict);
void run_capture_beside_calls(Device *device, const Entry &entry, Verdict *verdict);
void run_replays(Device *device, const Entry &entry, Verdict *verdict);

// contexts.cc
void run_current_device(Device *device, const Entry &entry, Verdict *verdict);
void run_other_context(Device *device, const Entry &entry, Verdict *verdict);
void run_older_error(Device *device, const Entry &entry, Verdict *verdict);
void run_launch_failure(Device *device, const Entry &entry, Verdict *verdict);

// Parts that run in a process of their own; see run_as_part.
bool run_as_cuda_part(int argc, char **argv, int *exit_status);
int first_capture_part(std::int32_t ordinal);  // streams.cc

}  // namespace reports
