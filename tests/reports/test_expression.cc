// Tests of the formula language: every operator against what Python gives for the same text.
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>

#include "expression.h"

namespace {

int failures = 0;
int checks = 0;

void fail(const char *claim, const std::string &text, const std::string &seen) {
  ++failures;
  std::printf("FAILED: %s: %s gave %s\n", claim, text.c_str(), seen.c_str());
}

double value_of(const std::string &text) {
  // i = 2, j = 3, M = 5, N = 7, so k = 17.
  return reports::evaluate(reports::compile_expression(text), {2, 3, 5, 7});
}

void gives(const char *claim, const std::string &text, double expected) {
  ++checks;
  double seen = 0.0;
  try {
    seen = value_of(text);
  } catch (const std::invalid_argument &error) {
    return fail(claim, text, error.what());
  }
  const bool same = std::isnan(expected) ? std::isnan(seen) : seen == expected;
  if (!same) fail(claim, text, std::to_string(seen) + ", not " + std::to_string(expected));
}

void refuses(const char *claim, const std::string &text) {
  ++checks;
  try {
    fail(claim, text, std::to_string(value_of(text)));
  } catch (const std::invalid_argument &) {
  }
}

}  // namespace

int main() {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();

  gives("the place is known by its row", "i", 2);
  gives("and column", "j", 3);
  gives("and linear index", "k", 17);
  gives("the extents are known", "M*100 + N", 507);
  gives("numbers have fractions and exponents", "1.5e1 + .25", 15.25);
  gives("pi is a name", "pi", 3.14159265358979323846);
  gives("inf is a name", "-inf", -inf);
  gives("float(\"nan\") is NaN", "float(\"nan\")", nan);
  gives("float('-inf') is -inf", "float('-inf')", -inf);

  gives("* binds before +", "1 + 2*3", 7);
  gives("- goes from the left", "10 - 4 - 3", 3);
  gives("/ goes from the left and divides truly", "7 / 2 / 2", 1.75);
  gives("parentheses come first", "(1 + 2)*3", 9);
  gives("** binds before the sign on its left", "-2**2", -4);
  gives("** goes from the right", "2**3**2", 512);
  gives("** takes a sign on its right", "2**-1", 0.5);
  gives("** is not two *", "2 ** 3 * 2", 16);
  gives("signs stack", "--3 - -2", 5);

  gives("% has the divisor's sign: positive", "-7 % 3", -7 + 9);
  gives("% has the divisor's sign: negative", "7 % -3", -2);
  gives("% of fractions", "5.5 % 2", 1.5);
  gives("% of a multiple is 0", "-6 % 3", 0);
  gives("% binds as * does", "1 + k % 5 * 2", 5);

  gives("a true comparison is 1", "i < j", 1);
  gives("a false comparison is 0", "i > j", 0);
  gives("<= holds at equality", "i <= 2", 1);
  gives(">= holds at equality", "j >= 3", 1);
  gives("== compares values", "k == 17", 1);
  gives("!= compares values", "k != 17", 0);
  gives("comparisons chain", "1 < i < 3", 1);
  gives("a chain fails by its second link", "1 < i < 2", 0);
  gives("a chain fails by its first link", "5 < i < 9", 0);
  gives("NaN equals nothing", "float(\"nan\") == float(\"nan\")", 0);

  gives("a if c else b: true", "10 if i < j else 20", 10);
  gives("a if c else b: false", "10 if i > j else 20", 20);
  gives("conditionals nest to the right", "1 if i == 0 else 2 if i == 2 else 3", 2);
  gives("a conditional is an operand in parentheses", "5 + (1 if j == 3 else 0)", 6);
  gives("both branches may be sums", "i + 1 if j == 3 else i - 1", 3);

  gives("floor rounds down below zero", "floor(-1.5)", -2);
  gives("sqrt", "sqrt(2.25)", 1.5);
  gives("log is the natural logarithm", "log(1)", 0);
  gives("cos takes radians", "cos(0)", 1);
  gives("functions take expressions", "sqrt(k - 1)", 4);

  // From a few lines of Python, written from the definition of lowbias32.
  gives("u(0) is 0", "u(0)", 0);
  gives("u(1) is the hash of 1", "u(1)*2**32", 1753845952.0);
  gives("u(17) is the hash of 17", "u(k)*2**32", 1285909221.0);
  gives("u(12345) is the hash of 12345", "u(12345)*2**32", 2435775735.0);
  gives("u takes the high word in", "u(2**32)*2**32", 1492470133.0);
  gives("u takes both words in", "u(5*2**32 + 7)*2**32", 558758004.0);
  gives("u is below 1", "u(12345) < 1", 1);

  refuses("an empty text is no expression", "");
  refuses("an operator needs its right side", "1 +");
  refuses("names must exist", "x + 1");
  refuses("a call needs its parenthesis", "sqrt 4");
  refuses("parentheses close", "(1 + 2");
  refuses("nothing may follow", "1 2");
  refuses("a conditional needs its else", "1 if i");
  refuses("float takes three words only", "float(\"1\")");
  std::string deep = "1";
  for (int n = 0; n < 60; ++n) deep = "(1 + " + deep + ")";
  refuses("what does not fit the stack is refused, not cut", deep);

  std::printf("%d checks, %d failed\n", checks, failures);
  return failures == 0 && checks > 50 ? 0 : 1;
}
