// See table.h.
#include "table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "error.h"
#include "text.h"

namespace tool {

std::vector<ClassValue> top_classes(const void *row, const Dtype &dtype, std::int64_t cols,
                                    std::int64_t k) {
  const auto count = static_cast<std::size_t>(std::min(k, cols));
  const auto comes_first = [](const ClassValue &a, const ClassValue &b) {
    return a.value > b.value || (a.value == b.value && a.index < b.index);
  };
  // A heap whose front is the last of the best so far.
  std::vector<ClassValue> best;
  best.reserve(count + 1);
  for (std::int64_t j = 0; j < cols; ++j) {
    const ClassValue candidate{j, load_element(row, dtype, j)};
    if (std::isnan(candidate.value)) return {};
    if (best.size() == count && !comes_first(candidate, best.front())) continue;
    best.push_back(candidate);
    std::push_heap(best.begin(), best.end(), comes_first);
    if (best.size() > count) {
      std::pop_heap(best.begin(), best.end(), comes_first);
      best.pop_back();
    }
  }
  std::sort_heap(best.begin(), best.end(), comes_first);
  return best;
}

ClassNames::ClassNames(const std::string &path, std::int64_t classes) {
  if (path.empty()) return;
  names_ = read_lines(path);
  if (static_cast<std::int64_t>(names_.size()) != classes) {
    fail_input("{}: {} lines for {} classes (the extent of the last axis)", printable(path),
               names_.size(), classes);
  }
}

std::string ClassNames::shown(std::int64_t index) const {
  return are_given() ? printable_label(raw(index)) : fmt::format("{}", index);
}

RowNames::RowNames(const std::string &path, const NpyArray &array)
    : leading_(array.shape.begin(), array.shape.end() - 1) {
  if (path.empty()) return;
  names_ = read_lines(path);
  const auto count = static_cast<std::int64_t>(names_.size());
  one_a_row_ = count == array.rows;
  const bool repeats = leading_.size() > 1 && count == leading_.back();
  if (!one_a_row_ && !repeats) {
    fail_input("{}: {} lines for {} rows (shape {})", printable(path), names_.size(), array.rows,
               shape_text(array.shape));
  }
}

std::string RowNames::shown(std::int64_t row) const {
  if (one_a_row_) return printable_label(names_[static_cast<std::size_t>(row)]);
  std::vector<std::int64_t> index(leading_.size());
  for (std::size_t d = leading_.size(); d-- > 0; row /= leading_[d]) index[d] = row % leading_[d];
  if (index.empty()) return "0";
  std::string text = fmt::format("{}", fmt::join(index, ","));
  if (!names_.empty())
    text += ' ' + printable_label(names_[static_cast<std::size_t>(index.back())]);
  return text;
}

std::string value_text(double value, bool is_log) {
  constexpr double kSmallestShown = 0.5e-6;  // of 1; it rounds to 0.0001%
  if (std::isnan(value)) return "nan";
  if (is_log) return fmt::format("{:.6g}", value);
  if (value > 0 && value < kSmallestShown) return "<0.0001%";
  return fmt::format("{:.4f}%", 100 * value);
}

std::string lay_out(const std::vector<std::vector<std::string>> &lines,
                    const std::vector<bool> &right_aligned) {
  std::vector<int> widths(right_aligned.size(), 0);
  for (const auto &line : lines) {
    for (std::size_t c = 0; c < line.size(); ++c) {
      widths[c] = std::max(widths[c], display_width(line[c]));
    }
  }
  std::string text;
  for (const auto &line : lines) {
    std::string out;
    for (std::size_t c = 0; c < line.size(); ++c) {
      if (c > 0) out += "  ";
      out += right_aligned[c] ? pad_left(line[c], widths[c]) : pad_right(line[c], widths[c]);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + '\n';
  }
  return text;
}

TopTable::TopTable(std::int64_t k, bool is_log) : k_(k), is_log_(is_log) {
  std::vector<std::string> header{"row"};
  for (std::int64_t i = 1; i <= k; ++i) {
    header.push_back(fmt::format("top {}", i));
    header.push_back(is_log ? "log p" : "p");
  }
  lines_.push_back(header);
}

void TopTable::add(const std::string &row_name, const std::vector<ClassValue> &top,
                   const ClassNames &classes) {
  std::vector<std::string> line{row_name};
  for (const ClassValue &entry : top) {
    line.push_back(classes.shown(entry.index));
    line.push_back(value_text(entry.value, is_log_));
  }
  if (top.empty()) line.insert(line.end(), {"the row is NaN", "nan"});
  lines_.push_back(line);
}

std::string TopTable::text() const {
  std::vector<bool> right_aligned(static_cast<std::size_t>(1 + 2 * k_), false);
  for (std::size_t c = 2; c < right_aligned.size(); c += 2) right_aligned[c] = true;
  return lay_out(lines_, right_aligned);
}

}  // namespace tool
