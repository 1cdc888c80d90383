// Rows for which sums of a few float32 terms round as badly as they can, by every algorithm: what
// an algorithm adds in float32 shows here.
#include "support/quads.h"

#include <cstdio>
#include <string>

#include "support/catch.h"
#include "support/problem.h"

namespace softmax_test {

TEST_CASE("terms whose sums all round to one side stay within float32's bound", "[accuracy]") {
  constexpr softmax_dtype_t kType = SOFTMAX_DTYPE_F32;
  // Apart in a row: the members of a pack, of neighbouring lanes, of a lane's packs, of warps.
  constexpr std::int64_t kStrides[] = {1, 4, 32, 64, 128, 256, 512, 1024};
  Runner runner(device());
  for (const std::int64_t cols : {21, 133, 749, 2053, 8196, 40965}) {
    for (const bool is_log : {false, true}) {
      const std::vector<softmax_algo_t> algos = device().algorithms_for(kType, kType, cols);
      std::vector<double> worst(algos.size(), 0.0);
      for (const std::int64_t stride : kStrides) {
        if (stride * 4 > cols) continue;
        const std::vector<float> values = make_quad_rows(cols, stride, 1.0f, is_log);
        Elements x(kType, kQuadRows * cols);
        for (std::size_t i = 0; i < values.size(); ++i) {
          x.set(static_cast<std::int64_t>(i), values[i]);
        }
        const Reference reference = make_reference(x, kQuadRows, cols);
        for (std::size_t a = 0; a < algos.size(); ++a) {
          if (device().is_slow(algos[a]) && cols > 10000 && stride > 1) continue;
          Problem problem;
          problem.algo = algos[a];
          problem.is_log = is_log;
          problem.rows = kQuadRows;
          problem.cols = cols;
          INFO("stride " << stride);
          CHECK(runner.check(problem, x, reference, &worst[a]) == "");
        }
      }
      std::string line;
      for (std::size_t a = 0; a < algos.size(); ++a) {
        char text[64];
        std::snprintf(text, sizeof text, "  %s %.3f", softmax_algo_name(algos[a]), worst[a]);
        line += text;
      }
      std::printf("max ulp, %ssoftmax of quads, %d columns:%s\n", is_log ? "log-" : "",
                  static_cast<int>(cols), line.c_str());
    }
  }
}

}  // namespace softmax_test
