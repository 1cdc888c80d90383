#include "support/quads.h"

namespace softmax_test {

std::vector<float> make_quad_rows(std::int64_t cols, std::int64_t stride, float factor,
                                  bool is_log) {
  std::vector<float> x;
  x.reserve(static_cast<std::size_t>(kQuadRows * cols));
  for (const Quad &quad : kQuads) {
    for (int i = 0; i < kLoneCount; ++i) {
      for (std::int64_t c = 0; c + 1 < cols; ++c) x.push_back(factor * quad.x[c / stride % 4]);
      x.push_back(is_log ? 0.0f : factor * (quad.is_above ? kLoneBelow : kLoneAbove)[i]);
    }
  }
  return x;
}

}  // namespace softmax_test
