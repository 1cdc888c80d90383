// What each test program defines for the common main.
#pragma once

#include <string>

namespace softmax_test {

// Why this program cannot test anything on this machine ("no CUDA device"), or "".
std::string what_is_missing();

}  // namespace softmax_test
