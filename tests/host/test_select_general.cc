// The selector's answers to problems with features on CUDA: gradients that are read once.
#include <string>

#include "core/features.h"
#include "host/api.h"
#include "host/made_up.h"
#include "select/select.h"
#include "support/catch.h"

namespace softmax_test {
namespace {

using softmax::Policy;
using softmax::Problem;
using softmax::Selection;
using softmax::SelectOutcome;

const softmax::DeviceCaps kSm90 = cuda_caps(90, 132, 2048, 60, 227, 228);

Problem gradient_problem(std::int32_t y, std::int32_t dx, std::int64_t cols,
                         std::uint32_t features = 0, bool is_log = false) {
  Problem problem = make_problem({dx, y, ""}, 1000, cols, is_log);
  problem.features = softmax::kFeatureBackward | features;
  return problem;
}

Selection chosen(const Problem &problem, std::int32_t algo = SOFTMAX_ALGO_AUTO) {
  Selection selection;
  select_quietly(kSm90, algo, problem, &selection);
  return selection;
}
std::int32_t algo_of(const Problem &problem) { return chosen(problem).policy.algo; }

}  // namespace

TEST_CASE("gradients of dense rows take the algorithm whose registers hold them",
          "[select][backward]") {
  for (const std::int32_t type : {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_BF16}) {
    for (const bool is_log : {false, true}) {
      for (const std::uint32_t features :
           {0u, softmax::kFeatureScale | softmax::kFeatureRowScale, 0u + softmax::kFeatureBoolMask,
            0u + softmax::kFeatureGivenStats,
            softmax::kFeatureRows | softmax::kFeatureCausalMask}) {
        const auto algo_at = [&](std::int64_t cols) {
          return algo_of(gradient_problem(type, type, cols, features, is_log));
        };
        // 16-bit log-softmax that is made of x again has half of the registers.
        const bool is_few = is_log && features == softmax::kFeatureGivenStats;
        const std::int64_t values = type == SOFTMAX_DTYPE_F32 || is_few ? 16 : 32;
        CHECK(algo_at(1) == SOFTMAX_ALGO_WARP);
        CHECK(algo_at(32 * values) == SOFTMAX_ALGO_WARP);
        CHECK(algo_at(32 * values + 1) == SOFTMAX_ALGO_BLOCK);
        CHECK(algo_at(8192) == SOFTMAX_ALGO_BLOCK);
        CHECK(algo_at(8193) == SOFTMAX_ALGO_CLUSTER);
        CHECK(algo_at(16 * 512 * values) == SOFTMAX_ALGO_CLUSTER);
        CHECK(algo_at(16 * 512 * values + 1) == SOFTMAX_ALGO_ONLINE);
      }
    }
  }
}

TEST_CASE("8-bit types are read once where their conversions are instructions", "[select]") {
  for (const std::uint32_t layout : {0u, 0u + softmax::kFeatureInner}) {
    for (const bool is_input : {false, true}) {
      const std::int32_t f8 = SOFTMAX_DTYPE_F8_E4M3, f32 = SOFTMAX_DTYPE_F32;
      Problem problem =
          make_problem({is_input ? f8 : f32, is_input ? f32 : f8, ""}, 1000, 300, false);
      problem.features = softmax::kFeatureF8 | softmax::kFeatureYScale | layout;
      const auto algo_on = [&](std::int32_t compute_capability) {
        Selection selection;
        select_quietly(cuda_caps(compute_capability, 108, 2048, 40, 163, 164), SOFTMAX_ALGO_AUTO,
                       problem, &selection);
        return selection.policy.algo;
      };
      const std::int32_t once = layout == 0 ? SOFTMAX_ALGO_WARP : SOFTMAX_ALGO_COLUMN;
      CHECK(algo_on(75) == SOFTMAX_ALGO_ONLINE);
      CHECK(algo_on(86) == SOFTMAX_ALGO_ONLINE);
      CHECK(algo_on(89) == once);
      CHECK(algo_on(90) == once);
    }
  }
}

TEST_CASE("threads that hold a gradient's row have all of its columns", "[select][backward]") {
  for (const std::int32_t type : {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_BF16}) {
    const int word = type == SOFTMAX_DTYPE_F32 ? 4 : 8;
    for (std::int64_t cols = 1; cols <= 131072; cols += 1 + cols / 50) {
      const Policy policy = chosen(gradient_problem(type, type, cols)).policy;
      INFO("N = " << cols);
      const int values = policy.packs * word;
      CHECK((policy.packs == 2 || policy.packs == 4));
      CHECK(std::int64_t{policy.threads_per_row} * policy.row_blocks * values >= cols);
      CHECK(policy.threads_per_row <= 512);
      CHECK(policy.threads_per_row * policy.rows_per_block <= 512);
      CHECK((policy.threads_per_row <= 32 || policy.rows_per_block == 1));
    }
  }
}

TEST_CASE("what gradients in registers are not for goes to ONLINE", "[select][backward]") {
  constexpr std::int64_t kCols = 4096;
  const auto algo = [&](std::int32_t y, std::int32_t dx, std::uint32_t features = 0) {
    return algo_of(gradient_problem(y, dx, kCols, features));
  };
  const auto f32 = SOFTMAX_DTYPE_F32, bf16 = SOFTMAX_DTYPE_BF16, f16 = SOFTMAX_DTYPE_F16;
  CHECK(algo(f32, bf16) == SOFTMAX_ALGO_BLOCK);
  CHECK(algo(f32, f16) == SOFTMAX_ALGO_BLOCK);
  CHECK(algo(bf16, f32) == SOFTMAX_ALGO_ONLINE);
  CHECK(algo(f16, bf16) == SOFTMAX_ALGO_ONLINE);
  CHECK(algo(SOFTMAX_DTYPE_F64, SOFTMAX_DTYPE_F64) == SOFTMAX_ALGO_ONLINE);
  CHECK(algo(SOFTMAX_DTYPE_F8_E4M3, bf16) == SOFTMAX_ALGO_ONLINE);
  // y takes no part where p comes from x.
  CHECK(algo(SOFTMAX_DTYPE_F64, bf16, softmax::kFeatureGivenStats) == SOFTMAX_ALGO_BLOCK);
  for (const std::uint32_t feature :
       {softmax::kFeatureDyType, softmax::kFeatureAdditiveMask, softmax::kFeatureSoftcap,
        softmax::kFeatureInner, softmax::kFeatureStrides}) {
    CHECK(algo(f32, f32, feature) == SOFTMAX_ALGO_ONLINE);
  }
  const Selection declined =
      chosen(gradient_problem(f32, f32, kCols, softmax::kFeatureDyType), SOFTMAX_ALGO_BLOCK);
  CHECK(std::string(declined.declined).find("dy") != std::string::npos);
}

}  // namespace softmax_test
