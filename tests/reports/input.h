// The input of a case: what an entry's gen says, element by element, rounded to the type.
#pragma once

#include <cstdint>
#include <vector>

#include "entry.h"
#include "expression.h"

namespace reports {

struct SetElement {
  std::int64_t row;
  std::int64_t column;
  double value;
};

struct Input {
  std::int32_t dtype = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<double> literal;  // rows*columns values, or empty: then the program
  Program program;
  std::vector<SetElement> sets;

  std::int64_t count() const { return rows * columns; }
};

// gen for a matrix of this shape. Throws where gen does not fit the shape.
Input make_input(const nlohmann::json &gen, std::int32_t dtype, std::int64_t rows,
                 std::int64_t columns);
Input formula_input(const std::string &formula, std::int32_t dtype, std::int64_t rows,
                    std::int64_t columns);

// The elements of `rows` rows from `first` on, encoded.
std::vector<unsigned char> encode_rows(const Input &input, std::int64_t first, std::int64_t rows);
inline std::vector<unsigned char> encode_all(const Input &input) {
  return encode_rows(input, 0, input.rows);
}

}  // namespace reports
