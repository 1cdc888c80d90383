/* What a stranger's first C program does: one row on the CPU, and the numbers checked. */
#include <softmax.h>
#include <stdio.h>

static int is_close(float a, float b) { return a - b < 1e-6f && b - a < 1e-6f; }

int main(void) {
  const float expected[4] = {0.0320586033f, 0.0871443187f, 0.236882818f, 0.643914260f};
  float row[4] = {1, 2, 3, 4};
  softmax_handle_t handle = NULL;
  int i;
  if (softmax_version() / 100 != SOFTMAX_VERSION_MAJOR * 100 + SOFTMAX_VERSION_MINOR) return 10;
  if (softmax_create(&handle, SOFTMAX_DEVICE_CPU) != SOFTMAX_SUCCESS) return 11;
  if (softmax_forward(handle, SOFTMAX_ALGO_AUTO, row, 1, 4, NULL) != SOFTMAX_SUCCESS) return 12;
  for (i = 0; i < 4; ++i) {
    if (!is_close(row[i], expected[i])) return 13;
  }
  if (softmax_forward(handle, SOFTMAX_ALGO_AUTO, row, -1, 4, NULL) != SOFTMAX_STATUS_BAD_SHAPE)
    return 14;
  if (softmax_destroy(handle) != SOFTMAX_SUCCESS) return 15;
  printf("softmax %s works\n", softmax_version_string());
  return 0;
}
