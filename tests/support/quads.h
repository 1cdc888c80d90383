// Rows for which sums of a few float32 terms round as badly as they can: the same four numbers over
// and over, whose terms and whose sums in float32 all err to one side, and a last one whose term
// errs to the other. Where terms are added in float32 four at a time, results were 4.7 ulp off.
//
// Found by trying some: terms and sums as float32 has them (core/row_part.h) against long double's.
#pragma once

#include <cstdint>
#include <vector>

#include "support/element.h"

namespace softmax_test {

struct Quad {
  float x[4];
  bool is_above;  // what the sum of the terms is
};
constexpr Quad kQuads[] = {
    // (t0 + t2) + (t1 + t3), 2.9 * 2^-24 of the sum off
    {{-0x1.df4b22p+1f, -0x1.d4d21p+1f, -0x1.337fbcp+2f, -0x1.4b5b22p+2f}, true},
    {{-0x1.73e186p+2f, -0x1.e747f2p+1f, -0x1.4c09fap+2f, -0x1.2c553p+2f}, true},
    {{-0x1.7e54ccp+2f, -0x1.90611ap+1f, -0x1.7fab48p+2f, -0x1.f7c12ep+1f}, false},
    {{-0x1.5c83bp+2f, -0x1.60dddap+2f, -0x1.5c05ep+2f, -0x1.fc0226p+1f}, false},
    // ((t0 + t1) + t2) + t3, 3.8 * 2^-24
    {{-0x1.e78bcp+1f, -0x1.9868p+1f, -0x1.7d09eep+2f, -0x1.7c7b84p+2f}, true},
    {{-0x1.e6aeb4p+1f, -0x1.976d22p+1f, -0x1.7febf8p+2f, -0x1.79a996p+2f}, true},
    {{-0x1.8b1cap+1f, -0x1.046b1cp+2f, -0x1.79606p+2f, -0x1.723704p+2f}, false},
    {{-0x1.f01214p+1f, -0x1.964392p+1f, -0x1.7cee8ap+2f, -0x1.7b1a28p+2f}, false},
};
constexpr int kQuadCount = sizeof kQuads / sizeof kQuads[0];

// Lone ones: 1.3 * 2^-24 above what they should be, and below.
constexpr float kLoneAbove[] = {-0x1.e26bep+4f,  -0x1.e24fb4p+4f, -0x1.7e807p+4f,
                                -0x1.e25ef4p+4f, -0x1.e25618p+4f, -0x1.f886b2p+4f};
constexpr float kLoneBelow[] = {-0x1.68045cp+4f, -0x1.cb5342p+4f, -0x1.68167ap+4f,
                                -0x1.cbdcb8p+4f, -0x1.519172p+4f, -0x1.815448p+4f};
constexpr int kLoneCount = sizeof kLoneAbove / sizeof kLoneAbove[0];

// A row for each quad and each lone one of the other side, (kQuadRows, cols) in float32 times
// `factor`, a power of two: column c has the quad's member c / stride % 4, the last one the lone
// one, or 0, next to which log-softmax shows what all others' sum is.
constexpr std::int64_t kQuadRows = kQuadCount * kLoneCount;
std::vector<float> make_quad_rows(std::int64_t cols, std::int64_t stride, float factor,
                                  bool is_log);

}  // namespace softmax_test
