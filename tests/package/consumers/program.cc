// What a stranger's first C++ program does, through softmax.hpp.
#include <cmath>
#include <iostream>
#include <softmax.hpp>
#include <vector>

int main() {
  softmax::Handle first(SOFTMAX_DEVICE_CPU);
  softmax::Handle handle = std::move(first);
  if (first || !handle || handle.device() != SOFTMAX_DEVICE_CPU) return 10;
  if (handle.description().empty()) return 11;

  const std::vector<double> x = {1, 2, 3, 4};
  std::vector<double> y(4, -1.0);
  handle.log_forward(x.data(), y.data(), 1, 4);
  const double log_sum = 4 + std::log1p(std::exp(-1) + std::exp(-2) + std::exp(-3));
  for (int i = 0; i < 4; ++i) {
    if (!(std::fabs(y[i] - (x[i] - log_sum)) < 1e-14)) return 12;
  }

  softmax::F16 half[2] = {{0}, {0}};  // two zeros
  float wide[2] = {-1, -1};
  handle.forward(half, wide, 1, 2);
  if (wide[0] != 0.5f || wide[1] != 0.5f) return 13;
  softmax::BF16 brain[2] = {{0x7f80}, {0}};  // +inf makes the row NaN
  handle.forward(brain, 1, 2);
  if ((brain[0].bits & 0x7fff) <= 0x7f80 || (brain[1].bits & 0x7fff) <= 0x7f80) return 14;

  float row[3] = {7, 7, 7};
  handle.forward(row, 1, 3);
  if (!(std::fabs(row[0] - 1.0f / 3) < 1e-7f) || row[0] != row[2]) return 15;
#if defined(__cpp_lib_span)
  handle.log_forward(std::span(row), 3, 1);
  if (row[0] != 0 || row[1] != 0 || row[2] != 0) return 16;
  try {
    handle.forward(std::span(row), 2, 2);
    return 17;
  } catch (const softmax::Error &error) {
    if (error.status() != SOFTMAX_STATUS_BAD_SHAPE) return 18;
  }
#endif

  try {
    handle.forward(row, -5, 3);
    return 19;
  } catch (const softmax::Error &error) {
    if (error.status() != SOFTMAX_STATUS_BAD_SHAPE) return 20;
    if (std::string(error.what()).find("-5") == std::string::npos) return 21;
  }
  try {
    first.forward(row, 1, 3);  // moved from
    return 22;
  } catch (const softmax::Error &error) {
    if (error.status() != SOFTMAX_STATUS_NULL_POINTER &&
        error.status() != SOFTMAX_STATUS_BAD_HANDLE)
      return 23;
  }

  const softmax_desc_t desc = softmax::make_desc(SOFTMAX_OP_SOFTMAX, SOFTMAX_DTYPE_F32, 2, 3);
  const softmax_choice_t choice = handle.select(desc, softmax::algorithm_from_name("Naive"));
  if (choice.algo != SOFTMAX_ALGO_NAIVE) return 24;
  std::cout << "softmax " << softmax::version_string() << " works\n";
  return 0;
}
