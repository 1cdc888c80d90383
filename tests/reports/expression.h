// The formula language of the public reports: an expression in i, j, k, M, N, compiled once to a
// postfix program that host code and CUDA kernels run alike, so that an input of 2^32 elements can
// be made where it is used and still be the one that the file describes.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#if defined(__CUDACC__)
#define REPORTS_HD __host__ __device__
#else
#define REPORTS_HD
#endif

namespace reports {

enum class OpCode : std::int32_t {
  kNumber,
  kRow,      // i
  kColumn,   // j
  kIndex,    // k = i*N + j
  kRows,     // M
  kColumns,  // N
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kModulo,
  kPower,
  kNegate,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kEqual,
  kNotEqual,
  kSelect,  // condition, value if true, value if false
  kFloor,
  kSqrt,
  kLog,
  kCos,
  kUniform,  // u(k)
};

struct Instruction {
  OpCode code;
  double number;  // kNumber only
};

constexpr int kMaxInstructions = 96;
constexpr int kMaxStack = 24;

// A plain value: small enough to be a kernel's argument.
struct Program {
  std::int32_t length = 0;
  Instruction at[kMaxInstructions] = {};
};

struct Point {
  std::int64_t row;
  std::int64_t column;
  std::int64_t rows;
  std::int64_t columns;
};

// Compiles `text`. Throws std::invalid_argument with the place and the reason.
Program compile_expression(const std::string &text);

// The program that is `value` everywhere.
Program constant_program(double value);

REPORTS_HD inline std::uint32_t lowbias32(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  x ^= x >> 16;
  return x;
}

// u(k): the hash of the low word xor the hash of the high word, over 2^32: in [0, 1).
REPORTS_HD inline double uniform_hash(double index) {
  const std::uint64_t k = static_cast<std::uint64_t>(static_cast<std::int64_t>(index));
  const std::uint32_t low = static_cast<std::uint32_t>(k);
  const std::uint32_t high = static_cast<std::uint32_t>(k >> 32);
  return static_cast<double>(lowbias32(low ^ lowbias32(high))) * (1.0 / 4294967296.0);
}

// Python's %: the result has the divisor's sign.
REPORTS_HD inline double floored_modulo(double a, double b) {
  const double r = fmod(a, b);
  return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;
}

REPORTS_HD inline double evaluate(const Program &program, const Point &p) {
  double stack[kMaxStack];
  int top = -1;
  for (int n = 0; n < program.length; ++n) {
    const Instruction &op = program.at[n];
    switch (op.code) {
      case OpCode::kNumber: stack[++top] = op.number; continue;
      case OpCode::kRow: stack[++top] = static_cast<double>(p.row); continue;
      case OpCode::kColumn: stack[++top] = static_cast<double>(p.column); continue;
      case OpCode::kIndex:
        stack[++top] = static_cast<double>(p.row * p.columns + p.column);
        continue;
      case OpCode::kRows: stack[++top] = static_cast<double>(p.rows); continue;
      case OpCode::kColumns: stack[++top] = static_cast<double>(p.columns); continue;
      case OpCode::kNegate: stack[top] = -stack[top]; continue;
      case OpCode::kFloor: stack[top] = floor(stack[top]); continue;
      case OpCode::kSqrt: stack[top] = sqrt(stack[top]); continue;
      case OpCode::kLog: stack[top] = log(stack[top]); continue;
      case OpCode::kCos: stack[top] = cos(stack[top]); continue;
      case OpCode::kUniform: stack[top] = uniform_hash(stack[top]); continue;
      case OpCode::kSelect:
        top -= 2;
        stack[top] = stack[top] != 0.0 ? stack[top + 1] : stack[top + 2];
        continue;
      default: break;
    }
    const double b = stack[top--];
    const double a = stack[top];
    double result = 0.0;
    switch (op.code) {
      case OpCode::kAdd: result = a + b; break;
      case OpCode::kSubtract: result = a - b; break;
      case OpCode::kMultiply: result = a * b; break;
      case OpCode::kDivide: result = a / b; break;
      case OpCode::kModulo: result = floored_modulo(a, b); break;
      case OpCode::kPower: result = pow(a, b); break;
      case OpCode::kLess: result = a < b; break;
      case OpCode::kLessEqual: result = a <= b; break;
      case OpCode::kGreater: result = a > b; break;
      case OpCode::kGreaterEqual: result = a >= b; break;
      case OpCode::kEqual: result = a == b; break;
      case OpCode::kNotEqual: result = a != b; break;
      default: break;
    }
    stack[top] = result;
  }
  return stack[0];
}

}  // namespace reports
