// softmax_merge_stats on the device: the CPU's bits, its refusals, and rows whose parts are
// computed apart.
#include <cmath>
#include <cstring>
#include <limits>

#include "support/catch.h"
#include "support/general_calls.h"
#include "support/inputs.h"

namespace softmax_test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Floats in the device's memory.
class Floats {
 public:
  explicit Floats(const std::vector<float> &values) : count_(values.size()) {
    memory_ = device().allocate(count_ * 4 + 4);
    REQUIRE(memory_ != nullptr);
    device().upload(memory_, values.data(), count_ * 4);
  }
  ~Floats() { device().release(memory_); }
  Floats(const Floats &) = delete;
  Floats &operator=(const Floats &) = delete;
  float *data() const { return static_cast<float *>(memory_); }
  std::vector<float> get() const {
    std::vector<float> values(count_);
    device().download(values.data(), memory_, count_ * 4);
    return values;
  }

 private:
  std::size_t count_;
  void *memory_;
};

bool same_bits(float a, float b) {
  return std::memcmp(&a, &b, 4) == 0 || (std::isnan(a) && std::isnan(b));
}

}  // namespace

TEST_CASE("general: merged statistics have the CPU's bits", "[general][merge]") {
  constexpr float kEdges[] = {0,      -kInf, kInf,    NAN,      1e30f, -1e30f,
                              1e-40f, -88,   3.4e38f, -3.4e38f, 700,   -745};
  softmax_handle_t cpu = nullptr;
  REQUIRE(softmax_create(&cpu, SOFTMAX_DEVICE_CPU) == SOFTMAX_SUCCESS);
  for (const std::int64_t parts : {1, 2, 3, 8, 100}) {
    for (const std::int64_t rows : {1, 33, 5000}) {
      const auto count = static_cast<std::size_t>(parts * rows);
      std::vector<float> part_max(count), part_sum(count);
      for (std::size_t i = 0; i < count; ++i) {
        part_max[i] = static_cast<float>((i % 3 == 0 ? 1 : 40) * normal(7, i));
        part_sum[i] = static_cast<float>(1 + 100 * uniform(8, i));
        if (uniform(9, i) < 0.1) part_max[i] = kEdges[i % 12];
        if (uniform(10, i) < 0.05) part_sum[i] = kEdges[(i + 5) % 12];
      }
      const Floats maxima(part_max), sums(part_sum);
      const std::vector<float> blank(static_cast<std::size_t>(rows + 1), 7.0f);
      const Floats row_max(blank), row_sum(blank), lse(blank);
      REQUIRE(softmax_merge_stats(device().handle(), parts, rows, maxima.data(), sums.data(),
                                  row_max.data(), row_sum.data(), lse.data(),
                                  device().stream()) == SOFTMAX_SUCCESS);
      const std::vector<float> max = row_max.get(), sum = row_sum.get(), log = lse.get();
      std::vector<float> cpu_max(blank), cpu_sum(blank), cpu_lse(blank);
      REQUIRE(softmax_merge_stats(cpu, parts, rows, part_max.data(), part_sum.data(),
                                  cpu_max.data(), cpu_sum.data(), cpu_lse.data(),
                                  nullptr) == SOFTMAX_SUCCESS);
      std::int64_t wrong = 0;
      for (std::size_t r = 0; r <= static_cast<std::size_t>(rows); ++r) {
        const bool right = same_bits(max[r], cpu_max[r]) && same_bits(sum[r], cpu_sum[r]) &&
                           same_bits(log[r], cpu_lse[r]);
        wrong += right ? 0 : 1;
      }
      INFO(parts << " parts of " << rows << " rows");
      CHECK(wrong == 0);
      CHECK((max.back() == 7 && sum.back() == 7 && log.back() == 7));
      CHECK(std::memcmp(maxima.get().data(), part_max.data(), count * 4) == 0);
      CHECK(std::memcmp(sums.get().data(), part_sum.data(), count * 4) == 0);

      // One output alone is the same.
      const Floats only(blank);
      REQUIRE(softmax_merge_stats(device().handle(), parts, rows, maxima.data(), sums.data(),
                                  nullptr, nullptr, only.data(),
                                  device().stream()) == SOFTMAX_SUCCESS);
      CHECK(std::memcmp(only.get().data(), log.data(), log.size() * 4) == 0);
    }
  }
  softmax_destroy(cpu);
}

TEST_CASE("general: rows in slices of the axis, merged, are the rows as a whole",
          "[general][merge]") {
  constexpr std::int64_t kParts = 4;
  for (const std::int64_t cols : {8, 900, 20000}) {
    for (const int op : {0, 1}) {
      for (const softmax_dtype_t dtype : {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_BF16}) {
        GeneralCase whole;
        whole.shape = {37, cols};
        whole.x_dtype = whole.y_dtype = dtype;
        whole.op = op;
        whole.spread = 5;
        whole.empty_row = SOFTMAX_EMPTY_ROW_ZERO;
        whole.scale = 0.7;
        GeneralValues values = make_values(whole);
        const std::int64_t rows = whole.rows(), slice = cols / kParts;
        for (std::int64_t j = 0; j < cols; ++j) {
          // Row 1 has a slice without anything, row 2 nothing at all.
          if (j < slice) values.x[static_cast<std::size_t>(cols + j)] = -HUGE_VAL;
          values.x[static_cast<std::size_t>(2 * cols + j)] = -HUGE_VAL;
        }
        const GeneralReference reference = make_general_reference(whole, values);

        GeneralCase part = whole;
        part.shape = {rows, slice};
        part.op = SOFTMAX_OP_STATS;
        part.has_stats = true;
        std::vector<GeneralValues> slices(kParts);
        std::vector<float> part_max, part_sum;
        for (std::int64_t p = 0; p < kParts; ++p) {
          GeneralValues &mine = slices[static_cast<std::size_t>(p)];
          for (std::int64_t r = 0; r < rows; ++r) {
            const auto first = values.x.begin() + r * cols + p * slice;
            mine.x.insert(mine.x.end(), first, first + slice);
          }
          const GeneralResult stats = run_general(device(), part, mine);
          REQUIRE(stats.status == SOFTMAX_SUCCESS);
          part_max.insert(part_max.end(), stats.row_max.begin(), stats.row_max.end());
          part_sum.insert(part_sum.end(), stats.row_sum.begin(), stats.row_sum.end());
        }
        const Floats maxima(part_max), sums(part_sum);
        const Floats row_max(std::vector<float>(37)), row_sum(std::vector<float>(37)),
            lse(std::vector<float>(37));
        REQUIRE(softmax_merge_stats(device().handle(), kParts, rows, maxima.data(), sums.data(),
                                    row_max.data(), row_sum.data(), lse.data(),
                                    device().stream()) == SOFTMAX_SUCCESS);
        const std::vector<float> log = lse.get();
        for (std::size_t r = 0; r < 37; ++r) {
          const auto expected = static_cast<double>(reference.lse[r]);
          INFO("row " << r);
          CHECK((log[r] == expected ||
                 std::fabs(log[r] - expected) <= 6e-7 * (1 + std::fabs(expected))));
        }
        part.op = op;
        part.has_stats = false;
        part.given_stats = true;
        std::int64_t wrong = 0;
        for (std::int64_t p = 0; p < kParts; ++p) {
          GeneralValues &mine = slices[static_cast<std::size_t>(p)];
          mine.row_max = row_max.get();
          mine.row_sum = row_sum.get();
          const GeneralResult last = run_general(device(), part, mine);
          REQUIRE(last.status == SOFTMAX_SUCCESS);
          for (std::int64_t i = 0; i < rows * slice; ++i) {
            const auto at = static_cast<std::size_t>(i / slice * cols + p * slice + i % slice);
            const auto expected = static_cast<double>(reference.y[at]);
            // What float32 statistics and the type leave.
            const double allowed = (dtype == SOFTMAX_DTYPE_BF16 ? 4.1e-3 : 1e-6) *
                                   (op == 1 ? 1 + std::fabs(expected) : std::fabs(expected));
            const double got = last.y[i];
            wrong += got == expected || std::fabs(got - expected) <= allowed + 1e-40 ? 0 : 1;
          }
        }
        INFO(whole.text());
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("general: softmax_merge_stats refuses what is wrong and takes no rows",
          "[general][merge]") {
  const Floats m(std::vector<float>(12, 1.0f)), s(std::vector<float>(12, 1.0f)),
      out(std::vector<float>(12, 7.0f));
  std::vector<float> host(12, 1.0f);
  const auto call = [&](std::int64_t parts, std::int64_t rows, const float *part_max,
                        float *row_max, const float *part_sum) {
    return softmax_merge_stats(device().handle(), parts, rows, part_max, part_sum, row_max, nullptr,
                               nullptr, device().stream());
  };
  CHECK(call(0, 4, m.data(), out.data(), s.data()) == SOFTMAX_STATUS_BAD_SHAPE);
  CHECK(call(3, -1, m.data(), out.data(), s.data()) == SOFTMAX_STATUS_BAD_SHAPE);
  CHECK(call(3, 0, nullptr, nullptr, nullptr) == SOFTMAX_SUCCESS);
  CHECK(call(3, 4, nullptr, out.data(), s.data()) == SOFTMAX_STATUS_NULL_POINTER);
  CHECK(call(3, 4, m.data(), nullptr, s.data()) == SOFTMAX_STATUS_NULL_POINTER);
  CHECK(call(3, 4, m.data(), m.data() + 4, s.data()) == SOFTMAX_STATUS_OVERLAP);
  if (device().is_cuda()) {
    CHECK(call(3, 4, host.data(), out.data(), s.data()) == SOFTMAX_STATUS_WRONG_DEVICE);
    CHECK(call(3, 4, m.data(), out.data(), host.data()) == SOFTMAX_STATUS_WRONG_DEVICE);
    CHECK(call(3, 4, m.data(), host.data(), s.data()) == SOFTMAX_STATUS_WRONG_DEVICE);
  }
  CHECK(out.get() == std::vector<float>(12, 7.0f));
  CHECK(host == std::vector<float>(12, 1.0f));
  REQUIRE(call(3, 4, m.data(), out.data(), s.data()) == SOFTMAX_SUCCESS);
  const std::vector<float> result = out.get();
  CHECK((result[3] == 1.0f && result[4] == 7.0f));
}

}  // namespace softmax_test
