// Which algorithms take a problem. See device.h.
#include "support/device.h"

#include "support/element.h"

namespace softmax_test {
namespace {

// Bytes of a row that an algorithm must take on every device that has it: what WARP and TILE are
// for; for BLOCK and CLUSTER far below what fits on a device with much memory on chip, for one that
// has little; for the others any number.
std::int64_t must_take_bytes(softmax_algo_t algo) {
  switch (algo) {
    case SOFTMAX_ALGO_WARP: return 4 << 10;
    case SOFTMAX_ALGO_BLOCK: return 16 << 10;
    case SOFTMAX_ALGO_TILE: return 2 << 10;
    case SOFTMAX_ALGO_CLUSTER: return 256 << 10;
    default: return INT64_MAX;
  }
}

bool must_take(softmax_algo_t algo, softmax_dtype_t x_dtype, std::int64_t cols) {
  return cols <= must_take_bytes(algo) / format_of(x_dtype).size_bytes;
}

softmax_status_t choose(softmax_handle_t handle, softmax_algo_t algo, softmax_dtype_t x_dtype,
                        softmax_dtype_t y_dtype, std::int64_t rows, std::int64_t cols,
                        softmax_choice_t *choice) {
  softmax_desc_t desc;
  const softmax_status_t status =
      softmax_desc_init(&desc, sizeof desc, SOFTMAX_OP_SOFTMAX, x_dtype, rows, cols);
  if (status != SOFTMAX_SUCCESS) return status;
  desc.y_dtype = y_dtype;
  *choice = {};
  choice->struct_size = sizeof *choice;
  return softmax_select(handle, algo, &desc, choice);
}

bool is_declined(softmax_handle_t handle, softmax_algo_t algo, softmax_dtype_t x_dtype,
                 softmax_dtype_t y_dtype, std::int64_t cols) {
  softmax_choice_t choice;
  return choose(handle, algo, x_dtype, y_dtype, 1, cols, &choice) ==
         SOFTMAX_STATUS_NOT_SUPPORTED_ALGO;
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

std::int64_t Device::least_many_rows(softmax_algo_t algo, softmax_dtype_t x_dtype,
                                     softmax_dtype_t y_dtype, std::int64_t cols) {
  if (algo != SOFTMAX_ALGO_WARP && algo != SOFTMAX_ALGO_BLOCK && algo != SOFTMAX_ALGO_TILE &&
      algo != SOFTMAX_ALGO_CLUSTER && algo != SOFTMAX_ALGO_GRID) {
    return 1;
  }
  const auto shared_bytes = [&](std::int64_t rows) {
    softmax_choice_t choice;
    choose(handle(), algo, x_dtype, y_dtype, rows, cols, &choice);
    return choice.smem_bytes;
  };
  constexpr std::int64_t kMany = 1 << 16;
  const std::int64_t bytes = shared_bytes(kMany);
  std::int64_t few = 0, many = kMany;
  while (many - few > 1) {
    const std::int64_t middle = few + (many - few) / 2;
    (shared_bytes(middle) == bytes ? many : few) = middle;
  }
  return many;
}

}  // namespace softmax_test
