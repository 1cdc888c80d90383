// See device.h.
#include "device.h"

#include "error.h"
#include "text.h"

namespace tool {

std::int32_t device_from_name(const std::string &name) {
  if (name == "auto") return SOFTMAX_DEVICE_AUTO;
  if (name == "cpu") return SOFTMAX_DEVICE_CPU;
  const std::string prefix = "cuda:";
  const std::string digits = name == "cuda"                    ? "0"
                             : name.compare(0, 5, prefix) == 0 ? name.substr(5)
                                                               : "";
  const bool is_number = !digits.empty() && digits.size() <= 4 &&
                         digits.find_first_not_of("0123456789") == std::string::npos;
  if (!is_number) fail_input("'{}' is no device: take auto, cpu or cuda:K", printable(name));
  return std::stoi(digits);
}

softmax_algo_t algo_from_name(const std::string &name) {
  softmax_algo_t algo = SOFTMAX_ALGO_AUTO;
  if (softmax_algo_from_name(name.c_str(), &algo) != SOFTMAX_SUCCESS) {
    fail_input("'{}' is no algorithm: softmax info lists them", printable(name));
  }
  return algo;
}

Device::Device(std::int32_t device) {
  check(softmax_create(&handle_, device));
  check(softmax_handle_device(handle_, &ordinal_));
  if (is_cuda()) use_cuda_device(ordinal_);
}

std::string Device::description() const {
  char line[512];
  softmax_handle_description(handle_, line, sizeof line);
  return line;
}

void enqueue_softmax(const Device &device, const Operation &operation, const void *x, void *y,
                     std::int64_t rows, std::int64_t cols, softmax_stream_t stream) {
  const auto call = operation.is_log ? logsoftmax_forward_to : softmax_forward_to;
  check(call(device.handle(), operation.algo, x, operation.x_dtype->id, y, operation.y_dtype->id,
             rows, cols, stream));
}

RowComputer::RowComputer(const Device &device, const Operation &operation,
                         std::int64_t max_elements)
    : device_(device), operation_(operation) {
  // A call without rows checks everything about the operation and does nothing.
  enqueue_softmax(device, operation, nullptr, nullptr, 0, max_elements, nullptr);
  if (!device.is_cuda()) return;
  x_.emplace(static_cast<std::size_t>(max_elements * operation.x_dtype->bytes));
  if (operation.x_dtype != operation.y_dtype) {
    y_.emplace(static_cast<std::size_t>(max_elements * operation.y_dtype->bytes));
  }
}

void RowComputer::compute(const void *x, void *y, std::int64_t rows, std::int64_t cols) {
  if (!device_.is_cuda()) {
    enqueue_softmax(device_, operation_, x, y, rows, cols, nullptr);
    return;
  }
  void *device_y = y_ ? y_->data() : x_->data();
  x_->upload(x, static_cast<std::size_t>(rows * cols * operation_.x_dtype->bytes));
  enqueue_softmax(device_, operation_, x_->data(), device_y, rows, cols, nullptr);
  (y_ ? *y_ : *x_).download(y, static_cast<std::size_t>(rows * cols * operation_.y_dtype->bytes));
}

}  // namespace tool
