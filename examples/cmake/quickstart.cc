// Log-softmax of one long row, and what the library would run for it.
#include <softmax.h>

#include <cstdio>
#include <vector>

int main() {
  std::vector<float> row(50000, 0.0f);
  row[7] = 20.0f;
  softmax_handle_t handle;
  if (softmax_create(&handle, SOFTMAX_DEVICE_CPU) != SOFTMAX_SUCCESS) return 1;
  const auto cols = static_cast<int64_t>(row.size());
  if (logsoftmax_forward(handle, SOFTMAX_ALGO_AUTO, row.data(), 1, cols, nullptr)) return 1;
  std::printf("log p of class 7: %.4g, of any other: %.4f\n", row[7], row[0]);
  softmax_destroy(handle);
}
