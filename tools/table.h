// The most likely classes of each row, as a table for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "npy.h"

namespace tool {

struct ClassValue {
  std::int64_t index;
  double value;
};

// The k largest of a row, largest first, equal ones by index; empty for a row of NaN.
std::vector<ClassValue> top_classes(const void *row, const Dtype &dtype, std::int64_t cols,
                                    std::int64_t k);

// Class names from a file, or the class numbers where no file is given.
class ClassNames {
 public:
  // Fails unless the file has `classes` lines. An empty path stands for no file.
  ClassNames(const std::string &path, std::int64_t classes);
  bool are_given() const { return !names_.empty(); }
  std::string shown(std::int64_t index) const;  // safe to print
  const std::string &raw(std::int64_t index) const {
    return names_[static_cast<std::size_t>(index)];
  }

 private:
  std::vector<std::string> names_;
};

// Row names: a line for each row of the file, or a line for each index of the axis before the last
// (then put behind the row's index), or the row's index alone.
class RowNames {
 public:
  RowNames(const std::string &path, const NpyArray &array);
  std::string shown(std::int64_t row) const;  // safe to print

 private:
  const std::vector<std::int64_t> leading_;  // the shape without its last extent
  std::vector<std::string> names_;
  bool one_a_row_ = false;
};

// "12.3400%", or the value itself for log-softmax; "nan".
std::string value_text(double value, bool is_log);

// Lays cells out in columns: the first row is the header, cells of right_aligned columns end at one
// edge, and no line ends in spaces.
std::string lay_out(const std::vector<std::vector<std::string>> &lines,
                    const std::vector<bool> &right_aligned);

// The table's lines for lay_out.
class TopTable {
 public:
  TopTable(std::int64_t k, bool is_log);
  void add(const std::string &row_name, const std::vector<ClassValue> &top,
           const ClassNames &classes);
  std::string text() const;

 private:
  const std::int64_t k_;
  const bool is_log_;
  std::vector<std::vector<std::string>> lines_;
};

}  // namespace tool
