// Makes inputs. See input.h.
#include "input.h"

#include <stdexcept>

#include "element.h"

namespace reports {

Input make_input(const nlohmann::json &gen, std::int32_t dtype, std::int64_t rows,
                 std::int64_t columns) {
  Input input;
  input.dtype = dtype;
  input.rows = rows;
  input.columns = columns;
  if (gen.contains("rows")) {
    const nlohmann::json &matrix = gen["rows"];
    if (static_cast<std::int64_t>(matrix.size()) != rows) {
      throw std::runtime_error("gen has another number of rows than the shape");
    }
    for (const nlohmann::json &row : matrix) {
      if (static_cast<std::int64_t>(row.size()) != columns) {
        throw std::runtime_error("gen has a row of another length than the shape's");
      }
      for (const nlohmann::json &value : row) input.literal.push_back(number_of(value));
    }
  } else if (gen.contains("const")) {
    input.program = constant_program(number_of(gen["const"]));
  } else if (gen.contains("formula")) {
    input.program = compile_expression(gen["formula"].get<std::string>());
  } else {
    throw std::runtime_error("gen has none of rows, const, formula");
  }
  if (gen.contains("set")) {
    for (const nlohmann::json &item : gen["set"]) {
      const SetElement set{item.at(0), item.at(1), number_of(item.at(2))};
      if (set.row < 0 || set.row >= rows || set.column < 0 || set.column >= columns) {
        throw std::runtime_error("gen sets an element outside the shape");
      }
      input.sets.push_back(set);
    }
  }
  return input;
}

Input formula_input(const std::string &formula, std::int32_t dtype, std::int64_t rows,
                    std::int64_t columns) {
  return make_input({{"formula", formula}}, dtype, rows, columns);
}

std::vector<unsigned char> encode_rows(const Input &input, std::int64_t first, std::int64_t rows) {
  const std::int64_t bytes = format_of(input.dtype).bytes;
  std::vector<unsigned char> encoded(static_cast<std::size_t>(rows * input.columns * bytes));
  const auto put = [&](double value, unsigned char *at) {
    encode(input.dtype, round_to(input.dtype, value), at);
  };
#pragma omp parallel for collapse(2)
  for (std::int64_t i = first; i < first + rows; ++i) {
    for (std::int64_t j = 0; j < input.columns; ++j) {
      const double value = input.literal.empty()
                               ? evaluate(input.program, {i, j, input.rows, input.columns})
                               : input.literal[static_cast<std::size_t>(i * input.columns + j)];
      put(value, encoded.data() + ((i - first) * input.columns + j) * bytes);
    }
  }
  for (const SetElement &set : input.sets) {
    if (set.row < first || set.row >= first + rows) continue;
    put(set.value, encoded.data() + ((set.row - first) * input.columns + set.column) * bytes);
  }
  return encoded;
}

}  // namespace reports
