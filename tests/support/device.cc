// Which algorithms take a problem. See device.h.
#include "support/device.h"

#include "support/element.h"

namespace softmax_test {
namespace {

// Bytes of a row that every device must take: far below what the registers of a warp and of a block
// hold, for a device with little shared memory, and far above 0.
bool must_take(softmax_algo_t algo, softmax_dtype_t x_dtype, std::int64_t cols) {
  const std::int64_t most_bytes = algo == SOFTMAX_ALGO_WARP    ? 4 << 10
                                  : algo == SOFTMAX_ALGO_BLOCK ? 16 << 10
                                                               : INT64_MAX;
  return cols <= most_bytes / format_of(x_dtype).size_bytes;
}

bool is_declined(softmax_handle_t handle, softmax_algo_t algo, softmax_dtype_t x_dtype,
                 softmax_dtype_t y_dtype, std::int64_t cols) {
  softmax_desc_t desc;
  if (softmax_desc_init(&desc, sizeof desc, SOFTMAX_OP_SOFTMAX, x_dtype, 1, cols) !=
      SOFTMAX_SUCCESS) {
    return false;
  }
  desc.y_dtype = y_dtype;
  softmax_choice_t choice = {};
  choice.struct_size = sizeof choice;
  return softmax_select(handle, algo, &desc, &choice) == SOFTMAX_STATUS_NOT_SUPPORTED_ALGO;
}

}  // namespace

std::vector<softmax_algo_t> Device::algorithms_for(softmax_dtype_t x_dtype, softmax_dtype_t y_dtype,
                                                   std::int64_t cols) {
  std::vector<softmax_algo_t> taking;
  for (const softmax_algo_t algo : algorithms()) {
    if (!must_take(algo, x_dtype, cols) && is_declined(handle(), algo, x_dtype, y_dtype, cols)) {
      ++left_out_;
    } else {
      taking.push_back(algo);
    }
  }
  return taking;
}

}  // namespace softmax_test
