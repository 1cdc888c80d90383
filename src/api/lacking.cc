// What of the general call a device lacks. See lacking.h.
#include "api/lacking.h"

#include "core/dtype.h"

namespace softmax {
namespace {

// The features that each backend takes: a bit that is set here is lifted.
constexpr std::uint32_t kCudaFeatures = 0;
constexpr std::uint32_t kCpuFeatures = ~std::uint32_t{0};

struct Lack {
  std::uint32_t feature;
  Status status;
  const char *what;
};

// In the order in which they are named.
constexpr Lack kLacks[] = {
    {kFeatureStats, SOFTMAX_STATUS_NOT_SUPPORTED, "op STATS"},
    {kFeatureBackward, SOFTMAX_STATUS_NOT_SUPPORTED, "direction BACKWARD"},
    {kFeatureGivenStats, SOFTMAX_STATUS_NOT_SUPPORTED, "flag GIVEN_STATS"},
    {kFeatureBoolMask, SOFTMAX_STATUS_NOT_SUPPORTED, "mask BOOL_KEEP"},
    {kFeatureAdditiveMask, SOFTMAX_STATUS_NOT_SUPPORTED, "mask ADDITIVE"},
    {kFeatureCausalMask, SOFTMAX_STATUS_NOT_SUPPORTED, "mask CAUSAL"},
    {kFeatureRowLength, SOFTMAX_STATUS_NOT_SUPPORTED, "mask ROW_LENGTH"},
    {kFeatureScale, SOFTMAX_STATUS_NOT_SUPPORTED, "a scale other than 1"},
    {kFeatureSoftcap, SOFTMAX_STATUS_NOT_SUPPORTED, "softcap"},
    {kFeatureYScale, SOFTMAX_STATUS_NOT_SUPPORTED, "y_scale"},
    {kFeatureRowScale, SOFTMAX_STATUS_NOT_SUPPORTED, "row_scale"},
    {kFeatureSink, SOFTMAX_STATUS_NOT_SUPPORTED, "sink"},
    {kFeatureStatsOutputs, SOFTMAX_STATUS_NOT_SUPPORTED, "an output row_max, row_sum or lse"},
    {kFeatureF8, SOFTMAX_STATUS_NOT_SUPPORTED_DTYPE, "an 8-bit type"},
    {kFeatureTypes, SOFTMAX_STATUS_NOT_SUPPORTED_DTYPE, "this pair of types"},
    {kFeatureRows, SOFTMAX_STATUS_NOT_SUPPORTED_LAYOUT, "rows with space between them"},
    {kFeatureInner, SOFTMAX_STATUS_NOT_SUPPORTED_LAYOUT, "an axis that is not the innermost"},
    {kFeatureStrides, SOFTMAX_STATUS_NOT_SUPPORTED_LAYOUT, "strides that are not contiguous"},
};

}  // namespace

Status check_device_has(const DeviceCaps &caps, const Problem &problem) {
  const std::uint32_t missing = problem.features & ~(caps.is_cuda ? kCudaFeatures : kCpuFeatures);
  if (missing == 0) return SOFTMAX_SUCCESS;
  for (const Lack &lack : kLacks) {
    if ((missing & lack.feature) == 0) continue;
    return fail(lack.status, "%s is not in this release%s (%s -> %s, %lld rows of %lld)", lack.what,
                caps.is_cuda ? " on CUDA" : "", dtype_name(problem.x_dtype),
                dtype_name(problem.y_dtype), static_cast<long long>(problem.rows),
                static_cast<long long>(problem.cols));
  }
  return fail(SOFTMAX_STATUS_INTERNAL, "features 0x%x have no sentence",
              static_cast<unsigned>(missing));
}

}  // namespace softmax
