/* Softmax of two rows of logits: cc quickstart.c $(pkg-config --cflags --libs softmax) */
#include <softmax.h>
#include <stdio.h>

int main(void) {
  float rows[2][3] = {{1.0f, 2.0f, 3.0f}, {1000.0f, 1000.0f, 1000.0f}};
  softmax_handle_t handle;
  softmax_status_t status = softmax_create(&handle, SOFTMAX_DEVICE_CPU);
  if (status == SOFTMAX_SUCCESS)
    status = softmax_forward(handle, SOFTMAX_ALGO_AUTO, &rows[0][0], 2, 3, NULL);
  if (status != SOFTMAX_SUCCESS) {
    fprintf(stderr, "%s\n", softmax_status_string(status));
    return 1;
  }
  for (int i = 0; i < 2; ++i) printf("%.4f %.4f %.4f\n", rows[i][0], rows[i][1], rows[i][2]);
  softmax_destroy(handle);
  return 0;
}
