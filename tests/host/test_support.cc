// The tests' own tools: the reference against known values, and proof that the comparison, the
// guards and the rounding can fail.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <thread>

#include "support/buffer.h"
#include "support/catch.h"
#include "support/child.h"
#include "support/compare.h"
#include "support/inputs.h"
#include "support/problem.h"
#include "support/reference.h"
#include "support/watchdog.h"

namespace softmax_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kNever = std::numeric_limits<double>::infinity();

Elements elements(softmax_dtype_t dtype, std::initializer_list<double> values) {
  Elements result(dtype, static_cast<std::int64_t>(values.size()));
  std::int64_t i = 0;
  for (const double value : values) result.set(i++, value);
  return result;
}

}  // namespace

TEST_CASE("support: the reference has the values of the definition", "[support]") {
  const Elements x = elements(SOFTMAX_DTYPE_F64, {1, 2, 3});
  const Reference reference = make_reference(x, 1, 3);
  // exp(-2), exp(-1), 1 over their sum, to 21 digits.
  const long double expected[] = {0.0900305731703804579980L, 0.244728471054797652012L,
                                  0.665240955774821889522L};
  for (int i = 0; i < 3; ++i) {
    CHECK(std::fabs(reference.wide_softmax[i] - expected[i]) < 1e-18L);
    CHECK(std::fabs(reference.wide_log_softmax[i] - std::log(expected[i])) < 4e-18L);
  }
}

TEST_CASE("support: the references in double and in long double agree", "[support]") {
  for (const Pattern pattern : kPatterns) {
    if (pattern == Pattern::kLarge) continue;  // the two types' largest numbers differ
    const Elements narrow = make_input(SOFTMAX_DTYPE_F32, 3, 500, pattern, 3);
    Elements wide(SOFTMAX_DTYPE_F64, 1500);
    for (std::int64_t i = 0; i < 1500; ++i) wide.set(i, narrow[i]);
    const Reference a = make_reference(narrow, 3, 500);
    const Reference b = make_reference(wide, 3, 500);
    double worst = 0;
    for (std::size_t i = 0; i < 1500; ++i) {
      for (const bool is_log : {false, true}) {
        const double value = is_log ? a.log_softmax[i] : a.softmax[i];
        const long double exact = is_log ? b.wide_log_softmax[i] : b.wide_softmax[i];
        worst = std::max(worst, error_ulps(format_of(SOFTMAX_DTYPE_F64), value, exact));
      }
    }
    INFO(pattern_name(pattern));
    CHECK(worst < 64);  // of float64: a billionth of an ulp of float32
  }
}

TEST_CASE("support: the reference keeps the rules of edge rows", "[support]") {
  const Elements x =
      elements(SOFTMAX_DTYPE_F32, {kNan, 1, HUGE_VAL, 1, -HUGE_VAL, 1, -HUGE_VAL, -HUGE_VAL});
  const Reference keep = make_reference(x, 4, 2, false);
  const Reference zero = make_reference(x, 4, 2, true);
  for (const int i : {0, 1, 2, 3, 6, 7}) {
    CHECK(std::isnan(keep.softmax[i]));
    CHECK(std::isnan(keep.log_softmax[i]));
  }
  CHECK(keep.softmax[4] == 0);
  CHECK(keep.softmax[5] == 1);
  CHECK(keep.log_softmax[4] == -kNever);
  CHECK(keep.log_softmax[5] == 0);
  CHECK(zero.softmax[6] == 0);
  CHECK(zero.log_softmax[7] == -kNever);
  CHECK(std::isnan(zero.softmax[0]));
}

TEST_CASE("support: the distance counts units in the last place of the format", "[support]") {
  const Format &f32 = format_of(SOFTMAX_DTYPE_F32);
  const Format &f16 = format_of(SOFTMAX_DTYPE_F16);
  CHECK(error_ulps(f32, 1.0, 1.0) == 0);
  CHECK(error_ulps(f32, 1.0 + 0x1p-23, 1.0) == 1);
  CHECK(error_ulps(f32, 0.5, 0.5 + 0x1p-25) == 0.5);
  CHECK(error_ulps(f16, 1.0 + 0x1p-10, 1.0) == 1);
  CHECK(error_ulps(f16, 0x1p-24, 0x1p-24 * 1.5) == 0.5);  // subnormal: steps of 2^-24
  CHECK(error_ulps(f32, -3.0, 3.0) > 1e6);
}

TEST_CASE("support: a NaN passes for a NaN alone, and infinities are exact", "[support]") {
  const Format &f32 = format_of(SOFTMAX_DTYPE_F32);
  CHECK(error_ulps(f32, kNan, 1.0) == kNever);
  CHECK(error_ulps(f32, 1.0, kNan) == kNever);
  CHECK(error_ulps(f32, kNan, kNan) == 0);
  CHECK(error_ulps(f32, kNan, kNever) == kNever);
  CHECK(error_ulps(f32, kNan, 0.0) == kNever);
  CHECK(error_ulps(f32, -kNever, -kNever) == 0);
  CHECK(error_ulps(f32, kNever, -kNever) == kNever);
  CHECK(error_ulps(f32, 3e38, kNever) == kNever);
  CHECK(error_ulps(f32, -kNever, -7.0) > 1e6);
  CHECK(error_ulps(f32, 1e-45, 0.0) == kNever);
  CHECK(error_ulps(f32, -kNever, -1e39) == 0);  // not representable: -inf is the answer
  CHECK(error_ulps(f32, -kNever, -3.4028235e38) <= 1);
  CHECK(error_ulps(f32, -kNever, -3.3e38) > 1e5);
}

TEST_CASE("support: one wrong element fails the comparison", "[support]") {
  for (const TypePair &types : kTypePairs) {
    if (types.x != types.y) continue;
    const Elements x = make_input(types.x, 2, 50, Pattern::kNormal1, 9);
    const Reference reference = make_reference(x, 2, 50);
    Elements y(types.y, 100);
    for (std::int64_t i = 0; i < 100; ++i) {
      const auto k = static_cast<std::size_t>(i);
      y.set(i, reference.is_wide ? static_cast<double>(reference.wide_softmax[k])
                                 : reference.softmax[k]);
    }
    const Bound bound = promised_bound(types.y);
    CHECK(compare(y, reference, false, 50, bound).failure == "");
    CHECK(compare(y, reference, true, 50, bound).failure != "");
    const Elements right = y;
    for (const double wrong : {kNan, kNever, -kNever, 0.0, 203.0, right[77] * 1.05}) {
      y = right;
      y.set(77, wrong);
      INFO(types.name << " " << wrong);
      CHECK(compare(y, reference, false, 50, bound).failure != "");
    }
    Elements shorter(types.y, 99);
    CHECK(compare(shorter, reference, false, 50, bound).failure != "");
  }
}

TEST_CASE("support: a byte written outside a buffer is found", "[support]") {
  Buffer buffer(device());
  const Elements x = make_input(SOFTMAX_DTYPE_F16, 1, 33, Pattern::kNormal1, 9);
  std::string damage;
  for (const int offset : {0, 1, 3}) {
    buffer.put(x, offset);
    auto *bytes = static_cast<unsigned char *>(buffer.data());
    CHECK(buffer.get(&damage).bytes == x.bytes);
    CHECK(damage == "");
    for (const std::ptrdiff_t at : {-4096, -1, 66, 67, 4000}) {
      buffer.put(x, offset);
      bytes[at] = 0;
      buffer.get(&damage);
      CHECK(damage != "");
    }
  }
}

TEST_CASE("support: rounding to 16 bits is to nearest even", "[support]") {
  const struct {
    softmax_dtype_t dtype;
    double value, rounded;
  } cases[] = {
      {SOFTMAX_DTYPE_F16, 1 + 0x1p-11, 1},
      {SOFTMAX_DTYPE_F16, 1 + 0x3p-11, 1 + 0x1p-9},
      {SOFTMAX_DTYPE_F16, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-10},
      {SOFTMAX_DTYPE_F16, 0x1p-25, 0},
      {SOFTMAX_DTYPE_F16, 0x1.8p-24, 0x1p-23},
      {SOFTMAX_DTYPE_F16, 65519.99, 65504},
      {SOFTMAX_DTYPE_F16, 65520, HUGE_VAL},
      {SOFTMAX_DTYPE_BF16, 1 + 0x1p-8, 1},
      {SOFTMAX_DTYPE_BF16, 1 + 0x3p-8, 1 + 0x1p-6},
      {SOFTMAX_DTYPE_BF16, -0x1.ffp127, -HUGE_VAL},
      {SOFTMAX_DTYPE_BF16, 0x1p-134, 0},
  };
  for (const auto &c : cases) {
    Elements e(c.dtype, 1);
    e.set(0, c.value);
    INFO(format_of(c.dtype).name << " " << c.value);
    CHECK(e[0] == c.rounded);
  }
}

TEST_CASE("support: every input pattern has a maximum that is finite", "[support]") {
  for (const TypePair &types : kTypePairs) {
    for (const Pattern pattern : kPatterns) {
      for (const std::int64_t cols : {1, 2, 33, 1000}) {
        const Elements x = make_input(types.x, 4, cols, pattern, 5);
        int bad_rows = 0;
        for (std::int64_t i = 0; i < 4; ++i) {
          double max = -HUGE_VAL;
          for (std::int64_t j = 0; j < cols; ++j) {
            bad_rows += std::isnan(x[i * cols + j]) ? 1 : 0;
            max = std::max(max, x[i * cols + j]);
          }
          bad_rows += std::isfinite(max) ? 0 : 1;
        }
        INFO(types.name << " " << pattern_name(pattern) << " " << cols);
        CHECK(bad_rows == 0);
      }
    }
  }
}

namespace {
int chatty_child() {
  std::printf("to stdout");
  std::fprintf(stderr, "to stderr");
  return 5;
}
const Child chatty("chatty", chatty_child);
}  // namespace

TEST_CASE("support: a child's exit code and both its streams are seen", "[support]") {
  const ChildResult result = run_child("chatty");
  CHECK(result.exit_code == 5);
  CHECK(result.out == "to stdout");
  CHECK(result.err == "to stderr");
  CHECK(run_child("no such child").exit_code == 255);
}

namespace {
void say_late(const std::string &name, const std::string &doing) {
  std::printf("late: %s, %s", name.c_str(), doing.c_str());
  std::fflush(stdout);
}
void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}
// The last case never ends; the ones before it do.
int late_child() {
  watch("ends", 1.0, say_late);
  unwatch();
  sleep_for(1.3);
  watch("ends too", 50, say_late);
  watch("hangs", 0.2, say_late);
  const Doing doing([] { return "asleep"; });
  sleep_for(60);
  return 5;
}
const Child late("late", late_child);
}  // namespace

TEST_CASE("support: a case that does not end ends the program, and is named", "[support]") {
  const ChildResult result = run_child("late");
  CHECK(result.exit_code == 1);
  CHECK(result.out == "late: hangs, asleep");
}

}  // namespace softmax_test
