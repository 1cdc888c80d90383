// The checks of the general call themselves: that no byte can change, no output be wrong and no
// refusal write without being noticed.
#include <cmath>
#include <cstring>

#include "host/api.h"
#include "support/catch.h"
#include "support/device.h"
#include "support/general.h"

namespace softmax_test {
namespace {

// The device under test, which flips one byte of what is downloaded.
class TamperingDevice : public Device {
 public:
  bool is_cuda() const override { return false; }
  softmax_handle_t handle() override { return device().handle(); }
  softmax_stream_t stream() override { return device().stream(); }
  void *allocate(std::size_t bytes) override { return device().allocate(bytes); }
  void release(void *memory) override { device().release(memory); }
  void upload(void *to, const void *from, std::size_t bytes) override {
    device().upload(to, from, bytes);
  }
  void download(void *to, const void *from, std::size_t bytes) override {
    device().download(to, from, bytes);
    size = bytes;
    if (at < bytes) static_cast<unsigned char *>(to)[at] ^= 0x10;
  }
  void fill(void *to, int byte, std::size_t bytes) override { device().fill(to, byte, bytes); }
  void copy(void *to, const void *from, std::size_t bytes) override {
    device().copy(to, from, bytes);
  }
  std::size_t free_bytes() override { return device().free_bytes(); }
  softmax_status_t run_otherwise(const std::function<softmax_status_t()> &call) override {
    return device().run_otherwise(call);
  }

  std::size_t at = SIZE_MAX;
  std::size_t size = 0;  // of the last download
};

// With every kind of buffer.
GeneralCase whole_case(Lie lie, bool in_place) {
  GeneralCase c;
  c.shape = {3, 4};
  c.x_lie = c.y_lie = c.mask_lie = lie;
  c.in_place = in_place;
  c.mask_kind = SOFTMAX_MASK_ADDITIVE;
  c.has_row_scale = c.has_sink = c.has_stats = true;
  c.offset = 1;
  return c;
}

}  // namespace

TEST_CASE("no byte around a general call can change without being noticed", "[support][general]") {
  TamperingDevice tampering;
  std::size_t tampered = 0;
  for (const Lie lie : {Lie::kContiguous, Lie::kPadded, Lie::kSpread}) {
    for (const bool in_place : {false, true}) {
      for (const bool given : {false, true}) {
        GeneralCase c = whole_case(lie, in_place);
        c.given_stats = given;
        const GeneralValues values = make_values(c);
        tampering.at = SIZE_MAX;
        const GeneralResult clean = run_general(tampering, c, values);
        REQUIRE(clean.status == SOFTMAX_SUCCESS);
        REQUIRE(clean.damage == "");
        CHECK_FALSE(clean.is_untouched);
        std::size_t unnoticed = 0;
        for (std::size_t at = 0; at < tampering.size; ++at) {
          tampering.at = at;
          const GeneralResult result = run_general(tampering, c, values);
          const auto differ = [](const std::vector<float> &a, const std::vector<float> &b) {
            return std::memcmp(a.data(), b.data(), a.size() * 4) != 0;
          };
          const bool noticed = !result.damage.empty() || result.y.bytes != clean.y.bytes ||
                               differ(result.row_max, clean.row_max) ||
                               differ(result.row_sum, clean.row_sum) ||
                               differ(result.lse, clean.lse);
          unnoticed += noticed ? 0 : 1;
          ++tampered;
        }
        INFO(c.text());
        CHECK(unnoticed == 0);
      }
    }
  }
  CHECK(tampered > 10000);
}

TEST_CASE("a refused general call that writes is noticed", "[support][general]") {
  TamperingDevice tampering;
  GeneralCase c = whole_case(Lie::kPadded, false);
  c.algo = SOFTMAX_ALGO_NAIVE;
  const GeneralValues values = make_values(c);
  GeneralResult result = run_general(tampering, c, values);
  REQUIRE(result.status == SOFTMAX_STATUS_NOT_SUPPORTED_ALGO);
  CHECK(result.is_untouched);
  const std::size_t size = tampering.size;
  std::size_t unnoticed = 0;
  for (tampering.at = 0; tampering.at < size; ++tampering.at) {
    result = run_general(tampering, c, values);
    unnoticed += result.is_untouched ? 1 : 0;
  }
  CHECK(unnoticed == 0);
}

TEST_CASE("results of a general call that are a little wrong are noticed", "[support][general]") {
  for (const int direction : {SOFTMAX_DIRECTION_FORWARD, SOFTMAX_DIRECTION_BACKWARD}) {
    for (const softmax_dtype_t dtype : {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_F64}) {
      GeneralCase c;
      c.direction = direction;
      c.shape = {4, 9};
      c.x_dtype = c.y_dtype = dtype;
      c.has_stats = !c.is_backward();
      c.mask_kind = SOFTMAX_MASK_BOOL_KEEP;
      c.empty_row = SOFTMAX_EMPTY_ROW_ZERO;
      const GeneralValues values = make_values(c);
      const GeneralReference reference = make_general_reference(c, values);
      const GeneralResult right = run_general(device(), c, values);
      INFO(c.text());
      REQUIRE(judge_general(c, reference, right) == "");
      // A gradient may lose what cancels.
      const bool is_wide = dtype == SOFTMAX_DTYPE_F64;
      const int steps =
          c.is_backward() ? (is_wide ? 1 << 16 : 2) : (dtype == SOFTMAX_DTYPE_F16 ? 2 : 9);
      for (std::int64_t i = 0; i < right.y.count(); ++i) {
        GeneralResult wrong = right;
        const double y = right.y[i];
        const double unit =
            y == 0 ? 1e-3 : std::ldexp(steps, std::ilogb(y) - format_of(dtype).precision + 1);
        wrong.y.set(i, y + unit);
        CHECK(judge_general(c, reference, wrong) != "");
        wrong.y.set(i, std::nan(""));
        CHECK(judge_general(c, reference, wrong) != "");
      }
      for (std::size_t r = 0; c.has_stats && r < 4; ++r) {
        for (auto member :
             {&GeneralResult::row_max, &GeneralResult::row_sum, &GeneralResult::lse}) {
          GeneralResult wrong = right;
          float &value = (wrong.*member)[r];
          value = std::nextafter(std::nextafter(value, 1e30f), 1e30f);
          if (std::isinf((right.*member)[r])) value = 0;
          CHECK(judge_general(c, reference, wrong) != "");
        }
      }
      GeneralResult refused = right;
      refused.status = SOFTMAX_STATUS_NOT_SUPPORTED;
      CHECK(judge_general(c, reference, refused) != "");
      GeneralResult damaged = right;
      damaged.damage = "x was written";
      CHECK(judge_general(c, reference, damaged) != "");
    }
  }
}

}  // namespace softmax_test
