// The process-wide log: a callback, or stderr when the environment variable SOFTMAX_LOG asks for
// it.
#pragma once

#include <cstdint>

namespace softmax {

// True where a line of this level would go somewhere: ask before doing work for a line.
bool log_enabled(std::int32_t level);

__attribute__((format(printf, 2, 3))) void log_line(std::int32_t level, const char *format, ...);

}  // namespace softmax
