// Greedy CTC decoding: the best class of each step, repeats collapsed, blanks dropped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "table.h"

namespace tool {

class CtcDecoder {
 public:
  CtcDecoder(std::int64_t blank, std::int64_t steps_a_line, const ClassNames &classes, bool is_log);
  // The row's best class; rows come in order.
  void add(const std::vector<ClassValue> &best);
  // A line of text for each line of steps, with its least certain step.
  std::string text() const;

 private:
  const std::int64_t blank_;
  const std::int64_t steps_;
  const ClassNames &classes_;
  const bool is_log_;
  std::vector<std::vector<std::string>> lines_;
  std::int64_t row_ = 0;
  std::int64_t previous_ = -1;
  std::string line_;
  std::int64_t least_row_ = 0;
  double least_ = 0;
};

}  // namespace tool
