// See ctc.h.
#include "ctc.h"

#include <fmt/format.h>

#include <cmath>

#include "text.h"

namespace tool {

CtcDecoder::CtcDecoder(std::int64_t blank, std::int64_t steps_a_line, const ClassNames &classes,
                       bool is_log)
    : blank_(blank), steps_(steps_a_line), classes_(classes), is_log_(is_log) {
  lines_.push_back({"rows", "text", "least certain", is_log ? "log p" : "p"});
}

void CtcDecoder::add(const std::vector<ClassValue> &best) {
  const bool is_nan = best.empty();
  const std::int64_t index = is_nan ? -1 : best.front().index;
  const double value = is_nan ? std::nan("") : best.front().value;
  const bool is_first = row_ % steps_ == 0;
  if (is_first) {
    line_.clear();
    previous_ = blank_;
  }
  // Once NaN, the least certain step stays NaN.
  if (is_first || (!std::isnan(least_) && !(value >= least_))) {
    least_ = value;
    least_row_ = row_;
  }
  if (is_nan) {
    line_ += "\xef\xbf\xbd";  // U+FFFD: something stood here
  } else if (index != blank_ && index != previous_) {
    // Label files write a space as this word, since a line of one space is easily lost.
    line_ += classes_.raw(index) == "<space>" ? " " : classes_.raw(index);
  }
  previous_ = index;
  ++row_;
  if (row_ % steps_ != 0) return;
  lines_.push_back({fmt::format("{}-{}", row_ - steps_, row_ - 1), printable_label(line_),
                    fmt::format("row {}", least_row_), value_text(least_, is_log_)});
}

std::string CtcDecoder::text() const { return lay_out(lines_, {false, false, false, true}); }

}  // namespace tool
