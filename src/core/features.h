// What a call can ask for beyond the plain one: one bit each, so that a backend can say what it
// takes.
//
// The plain call: softmax or log-softmax of contiguous rows, in the types that every algorithm has
// kernels for, with nothing else. It has no bit.
#pragma once

#include <cstdint>

namespace softmax {

enum Feature : std::uint32_t {
  // Of the descriptor.
  kFeatureRows = 1u << 0,     // x, y and dy have dense rows, wherever each of them lies
  kFeatureInner = 1u << 1,    // neighbouring rows of x, y and dy are neighbours in memory
  kFeatureStrides = 1u << 2,  // any other layout
  kFeatureTypes = 1u << 3,    // a pair of types that dtype_pair_supported() lacks
  kFeatureF8 = 1u << 4,       // an 8-bit type
  kFeatureYScale = 1u << 5,
  kFeatureScale = 1u << 6,
  kFeatureSoftcap = 1u << 7,
  kFeatureBoolMask = 1u << 8,
  kFeatureAdditiveMask = 1u << 9,
  kFeatureCausalMask = 1u << 10,
  kFeatureRowLength = 1u << 11,
  kFeatureStats = 1u << 12,  // op STATS
  kFeatureGivenStats = 1u << 13,
  kFeatureBackward = 1u << 14,
  kFeatureDyType = 1u << 15,  // BACKWARD: dy has another type than y, or x, which p is taken from
  // Of the buffers.
  kFeatureRowScale = 1u << 16,
  kFeatureSink = 1u << 17,
  kFeatureStatsOutputs = 1u << 18,
};

constexpr std::uint32_t kLayoutFeatures = kFeatureRows | kFeatureInner | kFeatureStrides;
// What changes the value of an element beyond replacing it by -inf.
constexpr std::uint32_t kValueFeatures =
    kFeatureScale | kFeatureSoftcap | kFeatureAdditiveMask | kFeatureRowScale;

}  // namespace softmax
