// The caller's workspace: used where it serves, left alone where it does not, and never in the
// bits.
#include <cuda_runtime_api.h>

#include <cstring>
#include <string>
#include <vector>

#include "gpu/cuda_check.h"
#include "support/catch.h"
#include "support/device.h"
#include "support/problem.h"

namespace softmax_test {
namespace {

constexpr std::int64_t kCols = 131073;
constexpr std::size_t kMemoryBytes = std::size_t{1} << 20;

// GRID on x into y, in a workspace.
softmax_status_t run_grid(const float *x, float *y, std::int64_t rows, void *workspace,
                          std::size_t bytes, cudaStream_t stream) {
  softmax_desc_t desc;
  const softmax_status_t status =
      softmax_desc_init(&desc, sizeof desc, SOFTMAX_OP_SOFTMAX, SOFTMAX_DTYPE_F32, rows, kCols);
  if (status != SOFTMAX_SUCCESS) return status;
  softmax_args_t args = {};
  args.struct_size = sizeof args;
  args.x = x;
  args.y = y;
  args.workspace = workspace;
  args.workspace_bytes = bytes;
  return softmax_execute(device().handle(), SOFTMAX_ALGO_GRID, &desc, &args, stream);
}

void check_workspaces(std::int64_t rows) {
  const Stream stream;
  const Elements input = make_input(SOFTMAX_DTYPE_F32, rows, kCols, Pattern::kNormal3, 91);
  DeviceFloats x(rows * kCols), y(rows * kCols), memory(kMemoryBytes / 4);
  to_device(x.data(), input.bytes.data(), x.bytes());
  auto *const bytes = reinterpret_cast<unsigned char *>(memory.data());

  const struct {
    const char *what;
    std::size_t begin, size;
    bool serves;
  } cases[] = {{"none", 0, 0, false},
               {"large", 0, kMemoryBytes, true},
               {"large, from 128 bytes on", 128, kMemoryBytes - 128, true},
               {"too small", 0, 64, false},
               {"not aligned", 8, kMemoryBytes - 8, false}};
  Elements expected(SOFTMAX_DTYPE_F32, rows * kCols);
  for (const auto &c : cases) {
    INFO(c.what);
    must(cudaMemset(memory.data(), 0x5a, kMemoryBytes));
    must(cudaMemset(y.data(), 0x5a, y.bytes()));
    must(cudaDeviceSynchronize());
    void *const workspace = c.size == 0 ? nullptr : bytes + c.begin;
    // Twice: the second call finds what the first has left.
    for (int call = 0; call < 2; ++call) {
      CHECK(run_grid(x.data(), y.data(), rows, workspace, c.size, stream) == SOFTMAX_SUCCESS);
    }
    stream.synchronize();
    Elements output(SOFTMAX_DTYPE_F32, rows * kCols);
    must(cudaMemcpy(output.bytes.data(), y.data(), y.bytes(), cudaMemcpyDeviceToHost));
    std::vector<unsigned char> left(kMemoryBytes);
    must(cudaMemcpy(left.data(), bytes, kMemoryBytes, cudaMemcpyDeviceToHost));
    const bool is_touched = left != std::vector<unsigned char>(kMemoryBytes, 0x5a);
    CHECK(is_touched == c.serves);
    const std::vector<unsigned char> before(left.begin(),
                                            left.begin() + static_cast<std::ptrdiff_t>(c.begin));
    CHECK(before == std::vector<unsigned char>(c.begin, 0x5a));
    if (workspace == nullptr) {
      expected = output;
      CHECK(compare(output, make_reference(input, rows, kCols), false, kCols,
                    promised_bound(SOFTMAX_DTYPE_F32))
                .failure == "");
    }
    CHECK(output.bytes == expected.bytes);
  }
}

}  // namespace

TEST_CASE("GRID works in a workspace that serves and beside one that does not", "[workspace]") {
  if (!device().has_bulk_copies()) SOFTMAX_SKIP("this device has no bulk copies");
  check_workspaces(3);
}

TEST_CASE("GRID works on many rows in a workspace that serves and beside one", "[workspace]") {
  // What is left there of another call must not be taken for a message of this one.
  if (!device().has_bulk_copies()) SOFTMAX_SKIP("this device has no bulk copies");
  check_workspaces(
      device().least_many_rows(SOFTMAX_ALGO_GRID, SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F32, kCols));
}

}  // namespace softmax_test
