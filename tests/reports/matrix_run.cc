// Runs one case on one device. See matrix.h.
#include <algorithm>
#include <cstring>

#include "element.h"
#include "matrix.h"

namespace reports {
namespace {

constexpr std::int64_t kMaxGuardElements = 4096;

// Offsets in elements, so that neither buffer's rows begin at a vector's alignment.
constexpr std::size_t kXOffset = 1;
constexpr std::size_t kYOffset = 3;

class CaseRun {
 public:
  CaseRun(Device *device, const Case &c, Verdict *verdict)
      : device_(device),
        case_(c),
        verdict_(verdict),
        x_bytes_(static_cast<std::size_t>(format_of(c.input.dtype).bytes)),
        y_bytes_(static_cast<std::size_t>(format_of(c.y_dtype).bytes)),
        count_(static_cast<std::size_t>(c.input.count())),
        guard_(static_cast<std::size_t>(std::min(c.input.columns + 1, kMaxGuardElements)) * 8),
        input_(encode_all(c.input)) {}

  void run() {
    for (const bool is_log : {false, true}) {
      const Expected expected = expected_of(case_, is_log);
      accepted_.clear();
      for (const softmax_algo_t algo :
           device_->algos_for(case_.input.dtype, case_.y_dtype, case_.input.columns)) {
        if (!device_->affords(algo, case_.input.columns)) {
          verdict_->note(algo_label(algo) +
                         " is too slow at N = " + std::to_string(case_.input.columns));
          continue;
        }
        verdict_->set_context(case_.label + ", " + device_->name() + " " + algo_label(algo) +
                              (is_log ? ", log" : ""));
        const std::vector<unsigned char> output = out_of_place(algo, is_log);
        if (case_.input.dtype == case_.y_dtype) in_place(algo, is_log, output);
        check(is_log, expected, output);
      }
    }
    verdict_->set_context("");
  }

 private:
  std::vector<unsigned char> out_of_place(softmax_algo_t algo, bool is_log) {
    Guarded x(device_, count_ * x_bytes_, guard_, kXOffset * x_bytes_);
    Guarded y(device_, count_ * y_bytes_, guard_, kYOffset * y_bytes_);
    x.write(input_);
    call(algo, is_log, x, y);
    verdict_->expect(x.read() == input_, "the input is unchanged");
    verdict_->expect(x.guards_untouched(), "the input's guards are untouched");
    verdict_->expect(y.guards_untouched(), "the output's guards are untouched");
    return y.read();
  }

  void in_place(softmax_algo_t algo, bool is_log, const std::vector<unsigned char> &expected) {
    Guarded x(device_, count_ * x_bytes_, guard_, 0);
    x.write(input_);
    call(algo, is_log, x, x);
    verdict_->expect(x.guards_untouched(), "in place, the guards are untouched");
    verdict_->expect(same_values(x.read(), expected), "in place gives the bits of out of place");
  }

  void call(softmax_algo_t algo, bool is_log, const Guarded &x, const Guarded &y) {
    const Call call{algo,     is_log,        x.data(),         case_.input.dtype,
                    y.data(), case_.y_dtype, case_.input.rows, case_.input.columns};
    verdict_->expect_status(make_call(call, *device_), SOFTMAX_SUCCESS, "the call");
    const std::string error = device_->finish();
    verdict_->expect(error.empty(), error);
  }

  // Equal bits, but for the sign and payload of NaNs, which softmax.h leaves open.
  bool same_values(const std::vector<unsigned char> &a, const std::vector<unsigned char> &b) const {
    if (a == b) return true;
    for (std::size_t e = 0; e < count_; ++e) {
      if (std::memcmp(&a[e * y_bytes_], &b[e * y_bytes_], y_bytes_) == 0) continue;
      const double left = decode(case_.y_dtype, &a[e * y_bytes_]);
      const double right = decode(case_.y_dtype, &b[e * y_bytes_]);
      if (left == left || right == right) return false;
    }
    return true;
  }

  // An output that equals one that was found right need not be looked at again.
  void check(bool is_log, const Expected &expected, const std::vector<unsigned char> &output) {
    if (output == accepted_) {
      verdict_->add_comparisons(case_.input.count());
      return;
    }
    const std::int64_t failures = verdict_->failures();
    check_output(case_, is_log, expected, output.data(), verdict_);
    if (verdict_->failures() == failures) accepted_ = output;
  }

  Device *device_;
  const Case &case_;
  Verdict *verdict_;
  const std::size_t x_bytes_;
  const std::size_t y_bytes_;
  const std::size_t count_;
  const std::size_t guard_;
  const std::vector<unsigned char> input_;
  std::vector<unsigned char> accepted_;
};

}  // namespace

void run_case(Device *device, const Case &c, Verdict *verdict) {
  CaseRun(device, c, verdict).run();
}

}  // namespace reports
