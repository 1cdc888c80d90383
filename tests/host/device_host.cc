// The device under test of the host program: a CPU handle and host memory.
#include <omp.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "support/device.h"
#include "support/program.h"

namespace softmax_test {
namespace {

class HostDevice : public Device {
 public:
  HostDevice() {
    if (softmax_create(&handle_, SOFTMAX_DEVICE_CPU) != SOFTMAX_SUCCESS) std::abort();
  }
  ~HostDevice() override { softmax_destroy(handle_); }

  bool is_cuda() const override { return false; }
  softmax_handle_t handle() override { return handle_; }
  softmax_stream_t stream() override { return nullptr; }
  void *allocate(std::size_t bytes) override {
    return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  }
  void release(void *memory) override { std::free(memory); }
  void upload(void *to, const void *from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void download(void *to, const void *from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void fill(void *to, int byte, std::size_t bytes) override { std::memset(to, byte, bytes); }
  void copy(void *to, const void *from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  std::size_t free_bytes() override {
    return static_cast<std::size_t>(sysconf(_SC_AVPHYS_PAGES)) *
           static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  }
  softmax_status_t run_otherwise(const std::function<softmax_status_t()> &call) override {
    const int before = omp_get_max_threads();
    omp_set_num_threads(before == 1 ? 3 : before + 1);
    const softmax_status_t status = call();
    omp_set_num_threads(before);
    return status;
  }

 private:
  softmax_handle_t handle_ = nullptr;
};

}  // namespace

Device &device() {
  static HostDevice the_device;
  return the_device;
}

std::string what_is_missing() { return ""; }

}  // namespace softmax_test
