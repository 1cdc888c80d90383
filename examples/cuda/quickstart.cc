// Softmax on a GPU, in a stream of the caller's. No CUDA compiler is needed, its runtime is:
//   g++ quickstart.cc $(pkg-config --cflags --libs softmax)
//     -I/usr/local/cuda/include -L/usr/local/cuda/lib64 -lcudart                  (in one line)
#include <cuda_runtime_api.h>
#include <softmax.h>

#include <cstdio>
#include <vector>

int main() {
  constexpr int64_t kRows = 1000, kCols = 32000;
  softmax_handle_t handle;
  if (softmax_create(&handle, 0) != SOFTMAX_SUCCESS) {
    char sentence[512];
    softmax_last_error(sentence, sizeof sentence);
    std::fprintf(stderr, "%s\n", sentence);
    return 1;
  }
  std::vector<float> rows(kRows * kCols, 0.5f);
  const size_t bytes = rows.size() * sizeof(float);
  void *device_rows = nullptr;
  cudaStream_t stream;
  if (cudaMalloc(&device_rows, bytes) != cudaSuccess || cudaStreamCreate(&stream) != cudaSuccess) {
    return 1;
  }
  cudaMemcpyAsync(device_rows, rows.data(), bytes, cudaMemcpyHostToDevice, stream);
  // Enqueued behind the copy; returns at once.
  auto *const matrix = static_cast<float *>(device_rows);
  if (softmax_forward(handle, SOFTMAX_ALGO_AUTO, matrix, kRows, kCols, stream)) return 1;
  cudaMemcpyAsync(rows.data(), device_rows, bytes, cudaMemcpyDeviceToHost, stream);
  if (cudaStreamSynchronize(stream) != cudaSuccess) return 1;
  std::printf("every class has probability %g = 1/%lld\n", rows[0], static_cast<long long>(kCols));
  cudaStreamDestroy(stream);
  cudaFree(device_rows);
  softmax_destroy(handle);
}
