// Catch2, version 3 or 2, under one name.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#define SOFTMAX_CATCH_VERSION 3
#else
#include <catch2/catch.hpp>
#define SOFTMAX_CATCH_VERSION 2
#endif

namespace softmax_test {

// Marks the running test case as skipped, for the reason given; main.cc counts it as such, never as
// passed, and the process exits with 77 where every case that ran was skipped.
void mark_skipped(const char *reason);

}  // namespace softmax_test

// Ends the running test case as skipped. Write it at the top of the case, before any assertion.
#define SOFTMAX_SKIP(reason)              \
  do {                                    \
    softmax_test::mark_skipped((reason)); \
    SUCCEED("skipped");                   \
    return;                               \
  } while (false)
