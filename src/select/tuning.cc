// The tuning tables. Every row says when and where it was measured, its score, and what lost.
#include "select/tuning.h"

#include "softmax.h"

namespace softmax {
namespace {

// PLACEHOLDER ROWS: replaced by measured ones.
constexpr TuningRow kSm90[] = {
    {1024, SOFTMAX_ALGO_WARP_ONLINE},
    {kNoLimit, SOFTMAX_ALGO_ONLINE},
};

constexpr TuningRow kCpu[] = {
    {131072, SOFTMAX_ALGO_VECTOR},
    {kNoLimit, SOFTMAX_ALGO_ONLINE},
};

template <int Count>
constexpr TuningTable table(const char *name, const TuningRow (&rows)[Count]) {
  return {name, rows, Count};
}

}  // namespace

TuningTable tuning_table(const DeviceCaps &caps, std::int32_t x_dtype) {
  (void)x_dtype;
  if (!caps.is_cuda) return table("cpu", kCpu);
  return table("sm_90", kSm90);
}

}  // namespace softmax
