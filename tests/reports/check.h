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
  std::string op;                                   // the operation that `check` speaks of
  nlohmann::json check = nlohmann::json::object();  // the keys of is_value_key

  bool speaks_of(bool is_log) const { return (op == "log_softmax") == is_log; }
};

// Keys of `check` that check_output understands. All others are for the code that drives the entry.
bool is_value_key(const std::string &key);

// The exact results of a case's operation, and the bounds that softmax.h sections 2 and 3 put on
// each element; a bound that is NaN asks for NaN.
struct Expected {
  std::vector<long double> exact;
  std::vector<double> low;
  std::vector<double> high;
};
Expected expected_of(const Case &c, bool is_log);

struct Bounds {
  double low;
  double high;
};
Bounds bounds_of(std::int32_t y_dtype, long double exact);

// `output` holds input.count() elements of y_dtype.
void check_output(const Case &c, bool is_log, const Expected &expected, const unsigned char *output,
                  Verdict *verdict);

}  // namespace reports
