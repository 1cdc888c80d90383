// The compiler of the formula language: recursive descent, with Python's precedences.
#include "expression.h"

#include <cctype>
#include <cstdlib>
#include <limits>
#include <stdexcept>

namespace reports {
namespace {

constexpr double kPi = 3.14159265358979323846;

class Compiler {
 public:
  explicit Compiler(const std::string &text) : text_(text) {}

  Program compile() {
    conditional();
    skip_space();
    if (at_ != text_.size()) fail("unexpected text");
    check_depth();
    return program_;
  }

 private:
  // value [if condition else conditional]: the condition comes after the value that it guards, so
  // the value's code is moved behind the condition's.
  void conditional() {
    const Program value = code_of([&] { comparison(); });
    if (!take_word("if")) {
      append(value);
      return;
    }
    comparison();
    append(value);
    if (!take_word("else")) fail("expected 'else'");
    conditional();
    emit(OpCode::kSelect);
  }

  // a < b < c is (a < b) and (b < c): the middle operand's code is emitted twice.
  void comparison() {
    const Program first = code_of([&] { sum(); });
    append(first);
    Program left = first;
    for (int links = 0;; ++links) {
      OpCode code;
      if (!take_comparison(&code)) return;
      const Program right = code_of([&] { sum(); });
      if (links > 0) append(left);
      append(right);
      emit(code);
      if (links > 0) emit(OpCode::kMultiply);
      left = right;
    }
  }

  void sum() {
    product();
    for (;;) {
      if (take("+")) {
        product();
        emit(OpCode::kAdd);
      } else if (take("-")) {
        product();
        emit(OpCode::kSubtract);
      } else {
        return;
      }
    }
  }

  void product() {
    signed_value();
    for (;;) {
      if (!peek("**") && take("*")) {
        signed_value();
        emit(OpCode::kMultiply);
      } else if (take("/")) {
        signed_value();
        emit(OpCode::kDivide);
      } else if (take("%")) {
        signed_value();
        emit(OpCode::kModulo);
      } else {
        return;
      }
    }
  }

  // A sign binds less tightly than **: -2**2 is -4.
  void signed_value() {
    if (take("-")) {
      signed_value();
      emit(OpCode::kNegate);
    } else if (take("+")) {
      signed_value();
    } else {
      power();
    }
  }

  // To the right, and the exponent may have a sign: 2**-3**2 is 2**(-(3**2)).
  void power() {
    atom();
    if (take("**")) {
      signed_value();
      emit(OpCode::kPower);
    }
  }

  void atom() {
    skip_space();
    if (at_ >= text_.size()) fail("the expression ends too early");
    const unsigned char c = static_cast<unsigned char>(text_[at_]);
    if (std::isdigit(c) || c == '.') {
      number();
    } else if (std::isalpha(c)) {
      name();
    } else if (take("(")) {
      conditional();
      expect(")");
    } else {
      fail("expected a number, a name or '('");
    }
  }

  void number() {
    const char *begin = text_.c_str() + at_;
    char *end = nullptr;
    const double value = std::strtod(begin, &end);
    if (end == begin) fail("not a number");
    at_ += static_cast<std::size_t>(end - begin);
    emit_number(value);
  }

  void name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && std::isalnum(static_cast<unsigned char>(text_[at_]))) ++at_;
    const std::string word = text_.substr(begin, at_ - begin);
    if (word == "i") return emit(OpCode::kRow);
    if (word == "j") return emit(OpCode::kColumn);
    if (word == "k") return emit(OpCode::kIndex);
    if (word == "M") return emit(OpCode::kRows);
    if (word == "N") return emit(OpCode::kColumns);
    if (word == "pi") return emit_number(kPi);
    if (word == "inf") return emit_number(std::numeric_limits<double>::infinity());
    if (word == "float") return float_call();
    if (word == "floor") return call(OpCode::kFloor);
    if (word == "sqrt") return call(OpCode::kSqrt);
    if (word == "log") return call(OpCode::kLog);
    if (word == "cos") return call(OpCode::kCos);
    if (word == "u") return call(OpCode::kUniform);
    at_ = begin;
    fail("no such name: " + word);
  }

  void call(OpCode code) {
    expect("(");
    conditional();
    expect(")");
    emit(code);
  }

  void float_call() {
    expect("(");
    if (!take("\"") && !take("'")) fail("float() takes a quoted word");
    const double inf = std::numeric_limits<double>::infinity();
    if (take("nan")) {
      emit_number(std::numeric_limits<double>::quiet_NaN());
    } else if (take("inf")) {
      emit_number(inf);
    } else if (take("-inf")) {
      emit_number(-inf);
    } else {
      fail("float() takes \"nan\", \"inf\" or \"-inf\"");
    }
    if (!take("\"") && !take("'")) fail("the quote is not closed");
    expect(")");
  }

  // ---- code ----

  // What `part` emits, kept aside.
  template <typename Part>
  Program code_of(Part part) {
    const Program before = program_;
    program_ = Program{};
    part();
    const Program code = program_;
    program_ = before;
    return code;
  }

  void append(const Program &code) {
    for (int n = 0; n < code.length; ++n) push(code.at[n]);
  }

  void push(const Instruction &instruction) {
    if (program_.length == kMaxInstructions) fail("the expression is too long");
    program_.at[program_.length++] = instruction;
  }

  void emit(OpCode code, double value = 0.0) { push({code, value}); }
  void emit_number(double value) { emit(OpCode::kNumber, value); }

  // evaluate() checks nothing: what it will do is known here.
  void check_depth() const {
    int depth = 0;
    for (int n = 0; n < program_.length; ++n) {
      const OpCode code = program_.at[n].code;
      if (code <= OpCode::kColumns) {
        ++depth;
      } else if (code == OpCode::kSelect) {
        depth -= 2;
      } else if (code != OpCode::kNegate && code < OpCode::kSelect) {
        --depth;
      }
      if (depth > kMaxStack) fail("the expression nests too deeply");
    }
  }

  // ---- text ----

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool peek(const std::string &token) {
    skip_space();
    return text_.compare(at_, token.size(), token) == 0;
  }
  bool take(const std::string &token) {
    if (!peek(token)) return false;
    at_ += token.size();
    return true;
  }
  bool take_word(const std::string &word) {
    if (!peek(word)) return false;
    const std::size_t end = at_ + word.size();
    if (end < text_.size() && std::isalnum(static_cast<unsigned char>(text_[end]))) return false;
    at_ = end;
    return true;
  }
  bool take_comparison(OpCode *code) {
    // The longer operators first.
    const struct {
      const char *token;
      OpCode code;
    } operators[] = {{"<=", OpCode::kLessEqual}, {">=", OpCode::kGreaterEqual},
                     {"==", OpCode::kEqual},     {"!=", OpCode::kNotEqual},
                     {"<", OpCode::kLess},       {">", OpCode::kGreater}};
    for (const auto &op : operators) {
      if (take(op.token)) {
        *code = op.code;
        return true;
      }
    }
    return false;
  }
  void expect(const std::string &token) {
    if (!take(token)) fail("expected '" + token + "'");
  }
  [[noreturn]] void fail(const std::string &reason) const {
    throw std::invalid_argument("\"" + text_ + "\" at " + std::to_string(at_) + ": " + reason);
  }

  const std::string text_;
  std::size_t at_ = 0;
  Program program_;
};

}  // namespace

Program compile_expression(const std::string &text) { return Compiler(text).compile(); }

Program constant_program(double value) {
  Program program;
  program.length = 1;
  program.at[0] = {OpCode::kNumber, value};
  return program;
}

}  // namespace reports
