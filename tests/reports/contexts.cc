// Entries about the CUDA runtime's state: the current device, contexts, older errors, failures.
#include <dlfcn.h>

#include <cstring>

#include "cuda_device.h"
#include "cuda_specials.h"
#include "element.h"
#include "matrix.h"
#include "process.h"

namespace reports {
namespace {

constexpr const char *kFirstCapture = "--part-first-capture";
constexpr const char *kOnlyDevice = "--part-only-device";

void expect_two_devices() {
  if (cuda_devices() < 2) throw Unavailable("needs two GPUs");
}

int current_device() {
  int current = -1;
  must(cudaGetDevice(&current));
  return current;
}

Case case_of_entry(const Entry &entry) {
  return case_of(entry, dtype_of(entry.dtype), entry.shape.at(0), entry.shape.at(1));
}

// 0 where the primary context of a device is inactive; the driver is asked, since the runtime would
// make a context by asking.
int primary_context_state(int ordinal) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return -1;
  const auto get = reinterpret_cast<int (*)(int, unsigned *, int *)>(
      dlsym(driver, "cuDevicePrimaryCtxGetState"));
  unsigned flags = 0;
  int active = -1;
  return get != nullptr && get(ordinal, &flags, &active) == 0 ? active : -1;
}

// A process that uses one device only.
int only_device_part(std::int32_t ordinal) {
  CudaDevice device(ordinal);
  Verdict verdict;
  Case c;
  c.input = formula_input("u(k)", SOFTMAX_DTYPE_F32, 8, 128);
  c.y_dtype = SOFTMAX_DTYPE_F32;
  c.op = "softmax";
  run_case(&device, c, &verdict);
  if (verdict.failures() > 0) return 1;
  return primary_context_state(0) == 0 ? 0 : 2;
}

}  // namespace

void run_current_device(Device *device, const Entry &entry, Verdict *verdict) {
  expect_two_devices();
  const std::int32_t other = device->ordinal() == 1 ? 0 : 1;
  must(cudaSetDevice(device->ordinal()));
  const auto is_unchanged = [&](const char *after) {
    verdict->expect(current_device() == device->ordinal(),
                    std::string("the current device is unchanged after ") + after);
  };
  softmax_handle_t handle = nullptr;
  verdict->expect_status(softmax_create(&handle, other), SOFTMAX_SUCCESS, "create");
  is_unchanged("create");
  std::int32_t count = 0;
  softmax_device_count(&count);
  is_unchanged("device_count");

  must(cudaSetDevice(other));
  const Case c = case_of_entry(entry);
  const std::vector<unsigned char> bytes = encode_all(c.input);
  void *memory = nullptr;
  cudaStream_t stream = nullptr;
  must(cudaMalloc(&memory, bytes.size()));
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  must(cudaSetDevice(device->ordinal()));

  const Expected expected = expected_of(c, false);
  for (const softmax_algo_t algo : device->algos()) {
    must(cudaMemcpy(memory, bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
    const Call call{algo,   false,         memory,       c.input.dtype,
                    memory, c.input.dtype, c.input.rows, c.input.columns};
    verdict->expect_status(make_call(call, handle, stream), SOFTMAX_SUCCESS, "the call");
    is_unchanged("a call");
    must(cudaStreamSynchronize(stream));
    std::vector<unsigned char> output(bytes.size());
    must(cudaMemcpy(output.data(), memory, output.size(), cudaMemcpyDeviceToHost));
    check_output(c, false, expected, output.data(), verdict);
  }
  // Error paths: memory of this device on the other's handle, a bad shape, a bad device.
  Guarded here(device, bytes.size(), 64, 0);
  Call wrong{SOFTMAX_ALGO_AUTO, false,         here.data(),  c.input.dtype,
             here.data(),       c.input.dtype, c.input.rows, c.input.columns};
  verdict->expect_status(make_call(wrong, handle, stream), SOFTMAX_STATUS_WRONG_DEVICE,
                         "memory of another GPU");
  is_unchanged("a refused call");
  wrong.rows = -1;
  verdict->expect_status(make_call(wrong, handle, stream), SOFTMAX_STATUS_BAD_SHAPE, "M = -1");
  is_unchanged("a bad shape");
  softmax_handle_t none = nullptr;
  verdict->expect_status(softmax_create(&none, cuda_devices()), SOFTMAX_STATUS_WRONG_DEVICE,
                         "a device that does not exist");
  is_unchanged("a failed create");
  verdict->expect_status(softmax_destroy(handle), SOFTMAX_SUCCESS, "destroy");
  is_unchanged("destroy");
  cudaFree(memory);
  cudaStreamDestroy(stream);
  cudaGetLastError();
}

void run_other_context(Device *, const Entry &, Verdict *verdict) {
  expect_two_devices();
  const int status = run_self(std::string(kOnlyDevice) + " 1");
  verdict->expect(status != 2, "the primary context of device 0 stays inactive");
  verdict->expect(status == 0, "the process ends with " + std::to_string(status) + ", not 0");
}

// An error of the caller's that is pending is neither reported as the call's nor cleared.
void run_older_error(Device *device, const Entry &entry, Verdict *verdict) {
  const Case c = case_of_entry(entry);
  const Expected expected = expected_of(c, false);
  const std::vector<unsigned char> bytes = encode_all(c.input);
  for (const softmax_algo_t algo : device->algos()) {
    Guarded x(device, bytes.size(), 4096, 0);
    x.write(bytes);
    device->finish();
    cudaSetDevice(100);  // fails, and is ignored
    const cudaError_t older = cudaPeekAtLastError();
    verdict->expect(older != cudaSuccess, "there is an older error");
    const Call call{algo,     false,         x.data(),     c.input.dtype,
                    x.data(), c.input.dtype, c.input.rows, c.input.columns};
    verdict->expect_status(make_call(call, *device), SOFTMAX_SUCCESS, "the call after it");
    verdict->expect(cudaPeekAtLastError() == older, "the older error stays readable");
    cudaGetLastError();
    const std::string error = device->finish();
    verdict->expect(error.empty(), error);
    check_output(c, false, expected, x.read().data(), verdict);
  }
}

// A stream whose capture was broken refuses every launch.
void run_launch_failure(Device *base, const Entry &entry, Verdict *verdict) {
  auto *device = static_cast<CudaDevice *>(base);
  const Input input =
      make_input(entry.gen, dtype_of(entry.dtype), entry.shape.at(0), entry.shape.at(1));
  const std::vector<unsigned char> sevens = encode_all(input);
  for (const softmax_algo_t algo : device->algos()) {
    verdict->set_context(algo_label(algo));
    Guarded x(device, sevens.size(), 4096, 0);
    Guarded y(device, sevens.size(), 4096, 0);
    x.write(sevens);
    y.write(sevens);
    const softmax_stream_t stream = device->open_stream();
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    cudaStreamSynchronize(stream);  // not permitted: it breaks the capture
    cudaGetLastError();
    const Call call{algo,     false,       x.data(),   input.dtype,
                    y.data(), input.dtype, input.rows, input.columns};
    const softmax_status_t status = make_call(call, device->handle(), stream);
    verdict->expect_status(status, SOFTMAX_STATUS_CUDA, "the call whose launch fails");
    verdict->expect(softmax_last_cuda_error() != 0, "the CUDA error's number is told");
    verdict->expect(cudaGetLastError() == cudaSuccess, "the call leaves no error behind");
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(stream, &graph);
    cudaGetLastError();
    device->close_stream(stream);
    verdict->expect(y.read() == sevens, "the buffer is what it was");
    // And the handle goes on working.
    verdict->expect_status(make_call(call, *device), SOFTMAX_SUCCESS, "the next call");
    const std::string error = device->finish();
    verdict->expect(error.empty(), error);
    verdict->expect(y.read() != sevens, "the next call computes");
  }
}

bool run_as_cuda_part(int argc, char **argv, int *exit_status) {
  if (argc != 3) return false;
  const std::int32_t ordinal = std::atoi(argv[2]);
  if (std::strcmp(argv[1], kFirstCapture) == 0) {
    *exit_status = first_capture_part(ordinal);
  } else if (std::strcmp(argv[1], kOnlyDevice) == 0) {
    *exit_status = only_device_part(ordinal);
  } else {
    return false;
  }
  return true;
}

}  // namespace reports
