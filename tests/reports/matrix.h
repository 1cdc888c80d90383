// Entries that are a matrix and what must come out of it: the cases of each, and how one is run.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "check.h"
#include "device.h"
#include "entry.h"
#include "verdict.h"

namespace reports {

// The cases of an entry whose input and check are a matrix and values: its own shape, or the shapes
// and types that its words name. `handled` gets the keys of `check`, beyond those of is_value_key,
// that running the cases answers.
std::vector<Case> cases_of(const Entry &entry, std::set<std::string> *handled);

// One case of this shape with the entry's own input and check.
Case case_of(const Entry &entry, std::int32_t dtype, std::int64_t rows, std::int64_t columns);

// Runs a case with every algorithm of the device, softmax and log-softmax, in place and to another
// buffer at other alignments, between guards, and checks all of it.
void run_case(Device *device, const Case &c, Verdict *verdict);

}  // namespace reports
