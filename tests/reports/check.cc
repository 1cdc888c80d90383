// The checks. See check.h.
#include "check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "element.h"
#include "expression.h"
#include "reference.h"

namespace reports {
namespace {

constexpr double kPlacesOfSupportValues = 1e-6;  // they are given to nine digits

std::string text_of(long double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.9Lg", value);
  return text;
}

// The nearest double that is not outside: `toward` is 1 for a lower bound, -1 for an upper one.
double rounded_inward(long double bound, int toward) {
  const double rounded = static_cast<double>(bound);
  const bool outside = toward > 0 ? rounded < bound : rounded > bound;
  return outside ? std::nextafter(rounded, toward * HUGE_VAL) : rounded;
}

class Output {
 public:
  Output(const Case &c, const unsigned char *bytes, Verdict *verdict)
      : case_(c), bytes_(bytes), verdict_(verdict) {}

  std::int64_t rows() const { return case_.input.rows; }
  std::int64_t columns() const { return case_.input.columns; }
  double at(std::int64_t i, std::int64_t j) const {
    return decode_at(case_.y_dtype, bytes_, i * columns() + j);
  }

  // Calls wrong(i, j, got) for every element; a non-empty answer is a failure. The first is told.
  template <typename Wrong>
  void for_each(const char *claim, Wrong wrong) const {
    const std::int64_t all = rows() * columns();
    std::int64_t count = 0;
    std::int64_t first = all;
#pragma omp parallel for collapse(2) reduction(+ : count) reduction(min : first)
    for (std::int64_t i = 0; i < rows(); ++i) {
      for (std::int64_t j = 0; j < columns(); ++j) {
        if (wrong(i, j, at(i, j)).empty()) continue;
        ++count;
        first = std::min(first, i * columns() + j);
      }
    }
    verdict_->add_comparisons(all);
    if (count == 0) return;
    const std::int64_t i = first / columns();
    const std::int64_t j = first % columns();
    verdict_->fail(std::string(claim) + ": [" + std::to_string(i) + ", " + std::to_string(j) +
                   "] is " + text_of(at(i, j)) + ", " + wrong(i, j, at(i, j)) + " (" +
                   std::to_string(count) + " of " + std::to_string(all) + ")");
  }

 private:
  const Case &case_;
  const unsigned char *bytes_;
  Verdict *verdict_;
};

bool close(double got, long double expected, double rtol, double atol) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected)) return got == expected;
  return std::fabs(got - expected) <= atol + rtol * std::fabs(expected);
}

std::string unless_close(double got, long double expected, double rtol, double atol) {
  return close(got, expected, rtol, atol) ? "" : "expected " + text_of(expected);
}

void check_matrix(const Output &out, const char *claim, const nlohmann::json &matrix, double rtol,
                  double atol, Verdict *verdict) {
  std::vector<double> expected;
  for (const nlohmann::json &row : matrix) {
    for (const nlohmann::json &value : row) expected.push_back(number_of(value));
  }
  if (!verdict->expect(static_cast<std::int64_t>(matrix.size()) == out.rows() &&
                           static_cast<std::int64_t>(expected.size()) == out.rows() * out.columns(),
                       std::string(claim) + ": the file's matrix has the output's shape")) {
    return;
  }
  out.for_each(claim, [&](std::int64_t i, std::int64_t j, double got) {
    return unless_close(got, expected[static_cast<std::size_t>(i * out.columns() + j)], rtol, atol);
  });
}

void check_nan_rows(const Output &out, const nlohmann::json &rows) {
  std::vector<bool> is_nan(static_cast<std::size_t>(out.rows()), rows == "all");
  if (rows.is_array()) {
    for (const nlohmann::json &row : rows) is_nan.at(row.get<std::size_t>()) = true;
  }
  out.for_each("nan_rows", [&](std::int64_t i, std::int64_t, double got) {
    const bool expected = is_nan[static_cast<std::size_t>(i)];
    return std::isnan(got) == expected ? std::string()
           : expected                  ? "expected NaN"
                                       : "expected none";
  });
}

void check_row_sums(const Output &out, bool is_log, double tolerance, Verdict *verdict) {
  for (std::int64_t i = 0; i < out.rows(); ++i) {
    long double sum = 0;
    for (std::int64_t j = 0; j < out.columns(); ++j) {
      const double value = out.at(i, j);
      sum += is_log ? std::exp(value) : value;
    }
    verdict->expect(std::fabs(sum - 1) <= tolerance,
                    "row_sum_tol: row " + std::to_string(i) + " sums to " + text_of(sum));
  }
}

// The elements that gen sets have support_values, in order in each row; all others `elsewhere`.
void check_support(const Case &c, const Output &out) {
  const nlohmann::json &values = c.check["support_values"];
  const double elsewhere = number_of(c.check.at("elsewhere"));
  std::vector<double> expected(static_cast<std::size_t>(c.input.count()), elsewhere);
  std::vector<std::size_t> seen(static_cast<std::size_t>(c.input.rows), 0);
  for (const SetElement &set : c.input.sets) {
    expected[static_cast<std::size_t>(set.row * c.input.columns + set.column)] =
        number_of(values.at(seen[static_cast<std::size_t>(set.row)]++));
  }
  out.for_each("support_values", [&](std::int64_t i, std::int64_t j, double got) {
    return unless_close(got, expected[static_cast<std::size_t>(i * c.input.columns + j)],
                        kPlacesOfSupportValues, 0);
  });
}

void check_argmax(const Output &out, const std::string &formula, Verdict *verdict) {
  const Program column = compile_expression(formula);
  for (std::int64_t i = 0; i < out.rows(); ++i) {
    std::int64_t top = 0;
    for (std::int64_t j = 1; j < out.columns(); ++j) {
      if (out.at(i, j) > out.at(i, top)) top = j;
    }
    const double expected = evaluate(column, {i, 0, out.rows(), out.columns()});
    verdict->expect(static_cast<double>(top) == expected,
                    "argmax: row " + std::to_string(i) + " has it at " + std::to_string(top));
  }
}

// What the entry itself says of its own operation.
void check_entry(const Case &c, bool is_log, const Output &out,
                 const std::vector<long double> &reference, Verdict *verdict) {
  const nlohmann::json &check = c.check;
  const auto exact = [&](std::int64_t i, std::int64_t j) {
    return reference[static_cast<std::size_t>(i * c.input.columns + j)];
  };
  const bool has_tolerance = check.contains("rtol") || check.contains("atol");
  // Where two tiers are given, the strict one holds.
  const bool strict = check.contains("rtol_strict");
  const double rtol = strict ? number_of(check["rtol_strict"]) : check.value("rtol", 0.0);
  const double atol = strict ? 0.0 : check.value("atol", 0.0);

  if (check.contains("values")) {
    check_matrix(out, "values", check["values"], rtol, atol, verdict);
  }
  if (check.contains("uniform")) {
    const double value = number_of(check["uniform"]);
    out.for_each("uniform", [&](std::int64_t, std::int64_t, double got) {
      return unless_close(got, value, rtol, atol);
    });
  }
  if (check.contains("row_sum_tol")) {
    check_row_sums(out, is_log, number_of(check["row_sum_tol"]), verdict);
  }
  if (check.contains("nan_rows")) check_nan_rows(out, check["nan_rows"]);
  if (check.value("nan", "") == "none") {
    out.for_each("nan", [](std::int64_t, std::int64_t, double got) {
      return std::isnan(got) ? std::string("expected none") : std::string();
    });
  }
  if (check.value("inf", "") == "none") {
    out.for_each("inf", [](std::int64_t, std::int64_t, double got) {
      return std::isinf(got) ? std::string("expected none") : std::string();
    });
  }
  if (check.contains("ulp")) {
    const double bound = number_of(check["ulp"]);
    out.for_each("ulp", [&](std::int64_t i, std::int64_t j, double got) {
      return unless_close(got, exact(i, j), 0,
                          bound * static_cast<double>(ulp_at(c.y_dtype, exact(i, j))));
    });
  }
  if (check.contains("support_values")) check_support(c, out);
  if (check.contains("argmax")) check_argmax(out, check["argmax"], verdict);
  if (check.contains("ref") && has_tolerance) {  // without one, the contract below is the check
    out.for_each("ref", [&](std::int64_t i, std::int64_t j, double got) {
      return unless_close(got, exact(i, j), rtol, atol);
    });
  }
}

}  // namespace

bool is_value_key(const std::string &key) {
  // or_zero permits a flush to zero, which softmax.h does not make use of; atol_min is the lower of
  // two tiers.
  for (const char *known : {"values", "rtol", "atol", "rtol_strict", "atol_min", "or_zero",
                            "uniform", "row_sum_tol", "nan_rows", "nan", "inf", "ulp", "ref",
                            "support_values", "elsewhere", "argmax", "softmax"}) {
    if (key == known) return true;
  }
  return false;
}

Bounds bounds_of(std::int32_t y_dtype, long double exact) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (std::isnan(exact)) return {kNan, kNan};
  const long double rounded = round_to(y_dtype, exact);
  if (std::isinf(rounded)) return {static_cast<double>(rounded), static_cast<double>(rounded)};
  const bool wide = y_dtype == SOFTMAX_DTYPE_F32 || y_dtype == SOFTMAX_DTYPE_F64;
  const bool subnormal = std::fabs(exact) < std::ldexp(1.0L, format_of(y_dtype).minimum_exponent);
  const long double ulps = !wide ? 0.51L : subnormal ? 1.0L : 4.0L;
  // 0 stays 0: a true zero is promised, not a small number.
  const long double slack = exact == 0 ? 0 : ulps * ulp_at(y_dtype, exact);
  return {rounded_inward(exact - slack, 1), rounded_inward(exact + slack, -1)};
}

Expected expected_of(const Case &c, bool is_log) {
  Expected expected;
  expected.exact = reference_of(c.input, is_log);
  expected.low.resize(expected.exact.size());
  expected.high.resize(expected.exact.size());
  const auto count = static_cast<std::int64_t>(expected.exact.size());
#pragma omp parallel for
  for (std::int64_t e = 0; e < count; ++e) {
    const std::size_t n = static_cast<std::size_t>(e);
    const Bounds bounds = bounds_of(c.y_dtype, expected.exact[n]);
    expected.low[n] = bounds.low;
    expected.high[n] = bounds.high;
  }
  return expected;
}

void check_output(const Case &c, bool is_log, const Expected &expected, const unsigned char *output,
                  Verdict *verdict) {
  const Output out(c, output, verdict);
  if (c.speaks_of(is_log)) check_entry(c, is_log, out, expected.exact, verdict);
  if (!is_log && c.check.contains("softmax")) {
    check_matrix(out, "softmax", c.check["softmax"], c.check.value("rtol", 0.0),
                 c.check.value("atol", 0.0), verdict);
  }
  out.for_each("accuracy", [&](std::int64_t i, std::int64_t j, double got) {
    const std::size_t n = static_cast<std::size_t>(i * c.input.columns + j);
    const double low = expected.low[n];
    if (std::isnan(low) ? std::isnan(got) : got >= low && got <= expected.high[n]) {
      return std::string();
    }
    return "exact " + text_of(expected.exact[n]);
  });
}

}  // namespace reports
