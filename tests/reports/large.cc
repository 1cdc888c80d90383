// Matrices of 2^27 to 2^32 elements on a CUDA device: the input is made there, every element or row
// is looked at there, and some rows are compared with the reference here.
#include <algorithm>
#include <cmath>
#include <set>

#include "cuda_device.h"
#include "cuda_specials.h"
#include "cuda_tools.h"
#include "element.h"
#include "matrix.h"

namespace reports {
namespace {

constexpr std::int64_t kCanaryElements = 4096;
constexpr std::int64_t kLast32 = (std::int64_t{1} << 31) - 1;  // element 2^31 - 1
constexpr double kSpareBytes = 1e9;

// A single row of 2^31 elements: what gives a row one thread, one warp or one block's loads of one
// element takes from seconds to minutes.
constexpr std::int64_t kLongRow = std::int64_t{1} << 27;

// In place, between nothing and a canary.
class LargeRun {
 public:
  LargeRun(CudaDevice *device, const Entry &entry, const Input &input, Verdict *verdict)
      : device_(device),
        entry_(entry),
        input_(input),
        verdict_(verdict),
        element_(static_cast<std::size_t>(format_of(input.dtype).bytes)) {
    const std::size_t bytes = (count() + kCanaryElements) * element_;
    std::size_t available = 0, total = 0;
    must(cudaMemGetInfo(&available, &total));
    if (static_cast<double>(bytes) + kSpareBytes > static_cast<double>(available)) {
      throw Unavailable("needs " + std::to_string(bytes >> 20) + " MiB of GPU memory, and " +
                        std::to_string(available >> 20) + " are free");
    }
    memory_ = static_cast<unsigned char *>(device->allocate(bytes));
  }
  ~LargeRun() { device_->release(memory_); }
  LargeRun(const LargeRun &) = delete;
  LargeRun &operator=(const LargeRun &) = delete;

  void run(softmax_algo_t algo, bool is_log) {
    verdict_->set_context("[" + std::to_string(input_.rows) + ", " +
                          std::to_string(input_.columns) + "] " + algo_label(algo) +
                          (is_log ? ", log" : ""));
    device_->generate(memory_, input_);
    unsigned char *const canary = memory_ + count() * element_;
    device_->fill(canary, 0xff, kCanaryElements * element_);
    for (const std::int64_t row : sampled_rows()) {
      verdict_->expect(read_row(row) == encode_rows(input_, row, 1),
                       "the device makes the input of the file");
    }
    const Call call{algo,    is_log,       memory_,     input_.dtype,
                    memory_, input_.dtype, input_.rows, input_.columns};
    verdict_->expect_status(make_call(call, *device_), SOFTMAX_SUCCESS, "the call");
    const std::string error = device_->finish();
    verdict_->expect(error.empty(), error);

    std::vector<unsigned char> after(kCanaryElements * element_);
    device_->read(after.data(), canary, after.size());
    verdict_->expect(after == std::vector<unsigned char>(after.size(), 0xff),
                     "the canary after the end is untouched");
    if (is_one_value()) {
      check_every_element(is_log);
    } else {
      check_row_sums(is_log);
      for (const std::int64_t row : sampled_rows()) check_row(row, is_log);
    }
    verdict_->set_context("");
  }

 private:
  std::size_t count() const { return static_cast<std::size_t>(input_.count()); }

  // Every output is the same number: equal inputs, or rows of one element.
  bool is_one_value() const {
    const bool constant =
        input_.program.length == 1 && input_.program.at[0].code == OpCode::kNumber;
    return input_.columns == 1 || (constant && input_.sets.empty());
  }

  std::set<std::int64_t> sampled_rows() const {
    if (is_one_value()) return {};
    const std::int64_t last = input_.rows - 1;
    const std::int64_t middle = kLast32 / input_.columns;
    std::set<std::int64_t> rows;
    for (const std::int64_t row : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, middle - 1,
                                   middle, middle + 1, last - 2, last - 1, last}) {
      if (row >= 0 && row <= last) rows.insert(row);
    }
    return rows;
  }

  std::vector<unsigned char> read_row(std::int64_t row) const {
    const std::size_t row_bytes = static_cast<std::size_t>(input_.columns) * element_;
    std::vector<unsigned char> bytes(row_bytes);
    device_->read(bytes.data(), memory_ + static_cast<std::size_t>(row) * row_bytes, row_bytes);
    return bytes;
  }

  // The accuracy of softmax.h, and the entry's own tolerance where it speaks of this operation.
  void check_every_element(bool is_log) {
    const long double n = static_cast<long double>(input_.columns);
    Bounds bounds = bounds_of(input_.dtype, is_log ? -std::log(n) : 1 / n);
    if (entry_.check.contains("uniform") && (entry_.op == "log_softmax") == is_log) {
      const double value = number_of(entry_.check["uniform"]);
      const double slack =
          entry_.check.value("atol", 0.0) + entry_.check.value("rtol", 0.0) * std::fabs(value);
      bounds.low = std::max(bounds.low, value - slack);
      bounds.high = std::min(bounds.high, value + slack);
    }
    launch_count_outside(memory_, input_.dtype, input_.count(), bounds.low, bounds.high,
                         device_->counter(), device_->stream());
    const std::int64_t wrong = device_->differences();
    verdict_->add_comparisons(input_.count());
    verdict_->expect(wrong == 0, std::to_string(wrong) + " elements are wrong");
  }

  void check_row_sums(bool is_log) {
    launch_count_bad_sums(memory_, input_.dtype, input_.rows, input_.columns, is_log,
                          number_of(entry_.check.at("row_sum_tol")), device_->counter(),
                          device_->stream());
    const std::int64_t wrong = device_->differences();
    verdict_->add_comparisons(input_.rows);
    verdict_->expect(wrong == 0, std::to_string(wrong) + " rows do not sum to 1");
  }

  void check_row(std::int64_t row, bool is_log) {
    Case c;
    c.input.dtype = input_.dtype;
    c.input.rows = 1;
    c.input.columns = input_.columns;
    const std::vector<unsigned char> x = encode_rows(input_, row, 1);
    for (std::int64_t j = 0; j < input_.columns; ++j) {
      c.input.literal.push_back(decode_at(input_.dtype, x.data(), j));
    }
    c.y_dtype = input_.dtype;
    c.op = entry_.op;
    auto known = references_.find({row, is_log});
    if (known == references_.end()) {
      known = references_.emplace(std::make_pair(row, is_log), expected_of(c, is_log)).first;
    }
    check_output(c, is_log, known->second, read_row(row).data(), verdict_);
  }

  CudaDevice *device_;
  const Entry &entry_;
  const Input &input_;
  Verdict *verdict_;
  const std::size_t element_;
  unsigned char *memory_ = nullptr;
  std::map<std::pair<std::int64_t, bool>, Expected> references_;
};

// The gradient where y and dy are 0.5 throughout: 0.5 (0.5 - n / 4), on top of dy.
void run_large_gradient(CudaDevice *device, const Input &shape, Verdict *verdict) {
  const std::int32_t dtype = shape.dtype;
  const std::size_t bytes =
      static_cast<std::size_t>(shape.count()) * static_cast<std::size_t>(format_of(dtype).bytes);
  std::size_t available = 0, total = 0;
  must(cudaMemGetInfo(&available, &total));
  if (2 * static_cast<double>(bytes) + kSpareBytes > static_cast<double>(available)) {
    verdict->note("the gradient needs " + std::to_string(bytes >> 19) + " MiB of GPU memory");
    return;
  }
  Input half = shape;
  half.literal.clear();
  half.sets.clear();
  half.program = constant_program(0.5);
  const std::size_t canary_bytes =
      kCanaryElements * static_cast<std::size_t>(format_of(dtype).bytes);
  void *const y = device->allocate(bytes);
  auto *const dy = static_cast<unsigned char *>(device->allocate(bytes + canary_bytes));
  device->generate(y, half);
  device->generate(dy, half);
  device->fill(dy + bytes, 0xff, canary_bytes);
  softmax_desc_t desc;
  softmax_desc_init(&desc, sizeof desc, SOFTMAX_OP_SOFTMAX, dtype, shape.rows, shape.columns);
  desc.direction = SOFTMAX_DIRECTION_BACKWARD;
  softmax_args_t args = {};
  args.struct_size = sizeof args;
  args.y = y;
  args.dy = args.dx = dy;
  verdict->expect_status(
      softmax_execute(device->handle(), SOFTMAX_ALGO_AUTO, &desc, &args, device->stream()),
      SOFTMAX_SUCCESS, "the gradient");
  const std::string error = device->finish();
  verdict->expect(error.empty(), error);
  std::vector<unsigned char> after(canary_bytes);
  device->read(after.data(), dy + bytes, canary_bytes);
  verdict->expect(after == std::vector<unsigned char>(canary_bytes, 0xff),
                  "the canary after the end is untouched");
  const Bounds bounds = bounds_of(dtype, 0.5L * (0.5L - shape.columns / 4.0L));
  launch_count_outside(dy, dtype, shape.count(), bounds.low, bounds.high, device->counter(),
                       device->stream());
  const std::int64_t wrong = device->differences();
  verdict->add_comparisons(shape.count());
  verdict->expect(wrong == 0, std::to_string(wrong) + " elements of the gradient are wrong");
  device->release(y);
  device->release(dy);
}

}  // namespace

void run_large(Device *device, const Entry &entry, Verdict *verdict) {
  // An entry of a backward report has a forward half, of both operations.
  const bool is_backward = entry.op == "backward";
  Entry forward = entry;
  if (is_backward) forward.op = "softmax";
  std::set<std::string> handled;
  std::vector<Input> gradients;
  for (const Case &c : cases_of(forward, &handled)) {
    LargeRun run(static_cast<CudaDevice *>(device), forward, c.input, verdict);
    const bool long_row = c.input.columns >= kLongRow;
    if (long_row) {
      verdict->note(
          "AUTO only: the others give a row of this length to one thread, one warp or "
          "one block, for seconds to minutes");
    }
    for (const softmax_algo_t algo :
         device->algos_for(c.input.dtype, c.input.dtype, c.input.columns)) {
      if (long_row && algo != SOFTMAX_ALGO_AUTO) continue;
      for (const bool is_log : {false, true}) {
        if (is_backward || (forward.op == "log_softmax") == is_log) run.run(algo, is_log);
      }
    }
    if (is_backward) gradients.push_back(c.input);
  }
  for (const Input &shape : gradients) {
    run_large_gradient(static_cast<CudaDevice *>(device), shape, verdict);
  }
}

}  // namespace reports
