// Compares an output with what an entry's `check` says and with the accuracy that softmax.h
// promises. NaN never passes a comparison that did not ask for it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "input.h"
#include "verdict.h"

namespace reports {

// An input, and what is expected of each operation on it.
struct Case {
  std::string label;
  Input input;
  std::int32_t y_dtype = 0;
  std::string op;        // the operation that `check` speaks of
  nlohmann::json check;  // the keys of is_value_key

  bool speaks_of(bool is_log) const { return (op == "log_softmax") == is_log; }
};

// Keys of `check` that check_output understands. All others are for the code that drives the entry.
bool is_value_key(const std::string &key);

// `output` holds input.count() elements of y_dtype, `reference` the exact results.
void check_output(const Case &c, bool is_log, const std::vector<long double> &reference,
                  const unsigned char *output, Verdict *verdict);

// The promise of softmax.h sections 2 and 3 for one element.
bool within_contract(std::int32_t y_dtype, long double exact, double got);

}  // namespace reports
