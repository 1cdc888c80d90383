// Which SIMD targets the kernels are compiled for. Include before hwy/foreach_target.h.
#pragma once

#include "hwy/detect_targets.h"

// Each target costs compile time and bytes, so one a generation: on x86 SSE4, AVX2 and AVX-512
// besides the baseline; on Arm NEON, and neither SVE nor RVV, whose vectors have no size at compile
// time and so cannot be kept in arrays. Newer releases of Highway know more targets than older
// ones.
#if defined(HWY_AVX3_ZEN4)
#define SOFTMAX_DISABLED_ZEN4 HWY_AVX3_ZEN4
#else
#define SOFTMAX_DISABLED_ZEN4 0
#endif
#if defined(HWY_AVX3_SPR)
#define SOFTMAX_DISABLED_SPR HWY_AVX3_SPR
#else
#define SOFTMAX_DISABLED_SPR 0
#endif
#if defined(HWY_AVX10_2)
#define SOFTMAX_DISABLED_AVX10 HWY_AVX10_2
#else
#define SOFTMAX_DISABLED_AVX10 0
#endif

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS                                                \
  (HWY_SSSE3 | HWY_AVX3_DL | SOFTMAX_DISABLED_ZEN4 | SOFTMAX_DISABLED_SPR | \
   SOFTMAX_DISABLED_AVX10 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
