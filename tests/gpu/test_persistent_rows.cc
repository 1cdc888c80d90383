// Many rows over clusters, which stay for softmax and take one row after another: as many as fill
// the card 70 times, so more than there are clusters, and more than a cluster's batch. They repeat,
// with factors of which some are for the kernel that computes single rows, and each has the bits
// that it has among few rows at an address where no such cluster takes it. Gradients likewise.
#include <cstring>
#include <vector>

#include "gpu/cuda_check.h"
#include "support/catch.h"
#include "support/general_calls.h"
#include "support/problem.h"

namespace softmax_test {
namespace {

constexpr std::int64_t kCols = 33000;
// At a scale of 1: usual ones, one of a row that is a one-hot, or without a gradient, and one that
// none but float64 can follow.
constexpr float kFactors[] = {1.0f, 0.5f, -2.0f, 0.0f, 3.0f, 1e-12f, 0.25f};
constexpr std::int64_t kPeriod = sizeof kFactors / sizeof kFactors[0];

// One row of x, or of y and dy, that all rows are, `offset` elements into their memory.
class SharedRow {
 public:
  SharedRow(softmax_dtype_t dtype, bool is_backward, std::int64_t offset) {
    Elements source(dtype, kCols), dy(dtype, kCols);
    for (std::int64_t i = 0; i < kCols; ++i) {
      const auto k = static_cast<std::uint64_t>(i);
      // Of a gradient log(p) around p = 1 / kCols, so that dy - p * sum(dy) is little beside dy for
      // some: those take another way than their neighbours in 16 bits.
      source.set(i, is_backward ? -10.4 + uniform(91, k) : 8 * uniform(92, k));
      dy.set(i, 0.5 + uniform(93, k));
    }
    source_ = placed(source, offset);
    if (is_backward) dy_ = placed(dy, offset);
  }
  ~SharedRow() {
    device().release(source_.memory);
    if (dy_.memory != nullptr) device().release(dy_.memory);
  }
  SharedRow(const SharedRow &) = delete;
  SharedRow &operator=(const SharedRow &) = delete;

  const void *source() const { return source_.first; }
  const void *dy() const { return dy_.first; }

 private:
  struct Placed {
    void *memory = nullptr;
    unsigned char *first = nullptr;
  };
  static Placed placed(const Elements &row, std::int64_t offset) {
    const auto size = static_cast<std::int64_t>(row.bytes.size()) / kCols;
    Placed p;
    p.memory = device().allocate(row.bytes.size() + static_cast<std::size_t>(offset * size));
    REQUIRE(p.memory != nullptr);
    p.first = static_cast<unsigned char *>(p.memory) + offset * size;
    device().upload(p.first, row.bytes.data(), row.bytes.size());
    return p;
  }
  Placed source_, dy_;
};

// The results of so many rows.
std::vector<unsigned char> results(softmax_dtype_t dtype, bool is_backward, std::int64_t rows,
                                   std::int64_t offset) {
  const SharedRow row(dtype, is_backward, offset);
  const auto size = static_cast<std::size_t>(format_of(dtype).size_bytes);
  const std::size_t bytes = static_cast<std::size_t>(rows * kCols) * size;
  const std::size_t skipped = static_cast<std::size_t>(offset) * size;
  std::vector<float> factors(static_cast<std::size_t>(rows));
  for (std::size_t r = 0; r < factors.size(); ++r) factors[r] = kFactors[r % kPeriod];
  auto *const memory = static_cast<unsigned char *>(device().allocate(bytes + skipped));
  auto *const to_factors = static_cast<float *>(device().allocate(factors.size() * sizeof(float)));
  REQUIRE((memory != nullptr && to_factors != nullptr));
  device().upload(to_factors, factors.data(), factors.size() * sizeof(float));
  device().fill(memory, 0x5a, bytes + skipped);

  softmax_desc_t desc;
  softmax_desc_init(&desc, sizeof desc, is_backward ? SOFTMAX_OP_LOGSOFTMAX : SOFTMAX_OP_SOFTMAX,
                    dtype, rows, kCols);
  desc.direction = is_backward ? SOFTMAX_DIRECTION_BACKWARD : SOFTMAX_DIRECTION_FORWARD;
  desc.x_stride[1] = desc.y_stride[1] = desc.dy_stride[1] = 1;
  (is_backward ? desc.x_stride : desc.y_stride)[0] = kCols;
  softmax_args_t args = {};
  args.struct_size = sizeof args;
  args.row_scale = to_factors;
  if (is_backward) {
    args.y = const_cast<void *>(row.source());
    args.dy = row.dy();
    args.dx = memory + skipped;
  } else {
    args.x = row.source();
    args.y = memory + skipped;
  }
  const softmax_status_t status =
      softmax_execute(device().handle(), SOFTMAX_ALGO_CLUSTER, &desc, &args, device().stream());
  INFO(last_error());
  REQUIRE(status == SOFTMAX_SUCCESS);
  std::vector<unsigned char> got(bytes);
  device().download(got.data(), memory + skipped, bytes);
  device().release(memory);
  device().release(to_factors);
  return got;
}

}  // namespace

TEST_CASE("general: many rows over clusters have the bits of few at another address",
          "[general][bits]") {
  if (!device().has_bulk_copies()) SOFTMAX_SKIP("this device has no clusters");
  int ordinal = 0;
  must(cudaGetDevice(&ordinal));
  cudaDeviceProp properties;
  must(cudaGetDeviceProperties(&properties, ordinal));
  // Half of a multiprocessor's 65536 registers hold elements, or fewer.
  const std::int64_t at_once = properties.multiProcessorCount * std::int64_t{32768} / kCols + 1;
  const std::int64_t rows = 70 * at_once;
  if (device().free_bytes() < static_cast<std::size_t>(rows * kCols) * 4 + (std::size_t{1} << 30)) {
    SOFTMAX_SKIP("needs 3 GB of device memory");
  }
  for (const softmax_dtype_t dtype : {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_BF16}) {
    for (const bool is_backward : {false, true}) {
      const std::vector<unsigned char> few = results(dtype, is_backward, kPeriod, 1);
      const std::vector<unsigned char> many = results(dtype, is_backward, rows, 0);
      const std::size_t row_bytes = few.size() / kPeriod;
      std::int64_t first = -1, wrong = 0;
      for (std::int64_t r = 0; r < rows; ++r) {
        if (std::memcmp(&many[static_cast<std::size_t>(r) * row_bytes],
                        &few[static_cast<std::size_t>(r % kPeriod) * row_bytes], row_bytes) != 0) {
          if (wrong++ == 0) first = r;
        }
      }
      INFO(format_of(dtype).name << (is_backward ? " backward" : "") << ": row " << first);
      CHECK(wrong == 0);
    }
  }
}

}  // namespace softmax_test
