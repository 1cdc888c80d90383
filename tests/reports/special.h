// Entries that are more than a matrix and its values: sequences of calls, repetitions, threads,
// refusals.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "device.h"
#include "entry.h"
#include "verdict.h"

namespace reports {

enum class Where { kBoth, kCpu, kCuda };

struct Special {
  const char *id;
  void (*run)(Device *device, const Entry &entry, Verdict *verdict);
  Where where;
  bool matrix_too;                   // the entry's matrix is run as well
  std::vector<std::string> handled;  // the keys of check that run answers

  bool runs_on(const Device &device) const {
    return where == Where::kBoth || (where == Where::kCuda) == device.is_cuda();
  }
};

// calls.cc: statuses, refusals, empty shapes, pairs of types.
extern const std::vector<Special> kCallSpecials;
// repeat.cc: bits over repetitions, over M, over threads.
extern const std::vector<Special> kRepeatSpecials;
// process.cc: what concerns a whole process or the machine.
extern const std::vector<Special> kProcessSpecials;
// cuda_table.cc: what only a CUDA device can run.
extern const std::vector<Special> kCudaSpecials;

std::vector<Special> all_specials();

// Thrown where the machine cannot run an entry: it is skipped with the reason.
struct Unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Every entry of op "backward".
void expect_backward(Device *device, const Entry &entry, Verdict *verdict);

}  // namespace reports
