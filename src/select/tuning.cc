// The tuning tables: every row with its score, and what lost to it.
#include "select/tuning.h"

#include "core/dtype.h"
#include "core/features.h"
#include "core/held_rows.h"
#include "softmax.h"

namespace softmax {
namespace {

// ---- sm_90, and later architectures until they are measured ----
//
// One NVIDIA H200, 2026-11-30 and 2026-12-01, softmax out of place over 2^27 elements, buffers
// rotated past the L2, CUDA graphs, medians. Scores are copy time over softmax time at the N in the
// comment, the copy being the better of cudaMemcpyAsync and a 16-byte streaming kernel. "Odd" rows
// are those whose length is no multiple of 16 bytes, "ragged" ones those of words that is_ragged
// says. Few rows: CLUSTER uses more of the card than one block.

constexpr std::int64_t kFew = 32;
constexpr std::int64_t kFewAdaptive = 16;
constexpr std::int64_t kFewOdd = 256;  // WARP has a block a row then, and no wait for bulk copies

constexpr TuningRow kSm90F32[] = {
    {512, SOFTMAX_ALGO_WARP},  // 8: 1.02, 64: 1.01, 512: 1.02; block -, -, 1.03
    {8192,
     SOFTMAX_ALGO_BLOCK},  // 768: 0.98, 1024: 1.03, 4096: 1.00, 8192: 0.94; warp 1.03, 0.97, -
    // 9216: 0.98, 12288: 0.93, 16384: 0.95; cluster 0.91, 0.88, 0.93. N = 16384, hot, M = 16, 32,
    // 64: 4.8, 4.8, 5.2 us; cluster 3.3, 4.0, 5.7
    {16384, SOFTMAX_ALGO_BLOCK, kFew, SOFTMAX_ALGO_CLUSTER},
    // 17408: 0.89, 24576: 0.91, 32768: 0.95; block 0.78, 0.84, 0.91. M = 1, N = 32000, hot: 3.2 us;
    // block 7.5. 65536: 0.96, 131072: 0.99, 163840: 0.91; grid 0.93, 0.94, 0.90
    {163840, SOFTMAX_ALGO_CLUSTER},
    // 196608: 0.90, 262144: 0.94; cluster 0.71, 0.80. M = 1, N = 201088, hot: cluster 8.5 us
    {262144, SOFTMAX_ALGO_GRID, 0, SOFTMAX_ALGO_AUTO, kFewAdaptive, SOFTMAX_ALGO_CLUSTER},
    {kNoLimit, SOFTMAX_ALGO_GRID},  // 524288: 0.95, 1048576: 0.90, 4194304: 0.66, 16777216: 0.62
};
// Of ragged rows what others reach is measured, over 2^26 elements. That TILE is better, and WARP
// where a row has more than 128 words, is reasoned (held_rows.h).
constexpr TuningRow kSm90F32Ragged[] = {
    // 12, 20, 24, 28: warp 0.81, 0.65, 0.78, 0.89; 36, 44, 68, 88: warp 0.77, 0.90, 0.81, 0.96;
    // 132, 176, 260, 320: warp 0.78, 0.95, 0.76, 0.89
    {512, SOFTMAX_ALGO_TILE},
    {kNoLimit, SOFTMAX_ALGO_WARP},  // 576, 640, 704: block 0.77, 0.86, 0.92
};
constexpr TuningRow kSm90F32Odd[] = {
    // 9: 1.02, 33: 1.00, 129: 1.01, 257: 1.00, 513: 1.00, 1001: 0.98; warp 0.58, 0.26, 0.90, 0.89,
    // 0.90, 1.01. M = 1, N = 257, hot: 1.9 us by warp
    {1024, SOFTMAX_ALGO_TILE, kFewOdd, SOFTMAX_ALGO_WARP},
    {8192, SOFTMAX_ALGO_BLOCK},  // 1025: 0.94, 2049: 1.01, 4097: 1.01; cluster 0.61, 0.85, 0.67
    // 8193: 1.01, 12289: 1.00; cluster 0.73, 0.87
    {16384, SOFTMAX_ALGO_BLOCK, kFew, SOFTMAX_ALGO_CLUSTER},
    // 17407: 0.90, 32767: 0.89, 50257: 0.91, 131071: 0.90; block 0.69, 0.76, -, -; grid 0.77, 0.82,
    // 0.86, 0.87
    {163840, SOFTMAX_ALGO_CLUSTER},
    // 201089: 0.87, 262143: 0.85; cluster 0.67, 0.69
    {262144, SOFTMAX_ALGO_GRID, 0, SOFTMAX_ALGO_AUTO, kFewAdaptive, SOFTMAX_ALGO_CLUSTER},
    {kNoLimit, SOFTMAX_ALGO_GRID},  // 1048577: 0.80
};
// 16-bit inputs: measured with bf16 to bf16; f16 takes the same rows.
constexpr TuningRow kSm90Half[] = {
    {640, SOFTMAX_ALGO_WARP},     // 8: 0.98, 64: 0.93, 512: 0.98; block -, -, 0.78
    {1152, SOFTMAX_ALGO_BLOCK},   // 768: 1.01, 1024: 0.98; warp 0.95, 0.97
    {1536, SOFTMAX_ALGO_WARP},    // 1280: 1.02; block 0.85
    {24576, SOFTMAX_ALGO_BLOCK},  // 2048: 0.98, 16384: 0.97; warp 0.95, -; cluster -, 0.78
    // 32768: 0.96; cluster 0.86. N = 32000, hot, M = 1, 32: 4.8, 4.8 us; cluster 3.4, 4.4
    {32768, SOFTMAX_ALGO_BLOCK, kFew, SOFTMAX_ALGO_CLUSTER},
    // 40960: 0.86, 65536: 0.89, 131072: 0.90, 151936: 0.92, 262144: 0.87; block 0.82, 0.89, -, -,
    // -; grid 0.82, 0.88, 0.88, 0.92, 0.87
    {262144, SOFTMAX_ALGO_CLUSTER},
    {kNoLimit, SOFTMAX_ALGO_GRID},  // 524288: 0.87, 1048576: 0.85, 4194304: 0.81, 16777216: 0.63
};
// The same with float32 results, of which a block takes twice the threads: 2026-12-02, softmax and
// log-softmax in microseconds over 2^27 elements, a copy of which takes 191. Up to 1536 columns not
// measured: as with 16-bit results.
constexpr TuningRow kSm90HalfToF32[] = {
    {640, SOFTMAX_ALGO_WARP},
    {1152, SOFTMAX_ALGO_BLOCK},
    {1536, SOFTMAX_ALGO_WARP},
    {16384, SOFTMAX_ALGO_BLOCK},  // 228, 243; cluster 230, 262
    // 16392: 271, 330, 24576: 237, 275, 32768: 236, 274; block 330, 378, 294, 314, 281, 300.
    // 65536: 252, 305, 100352: 345, 434, 128256: 323, 366, 151936: 331, 386; grid 315, 297, 291,
    // 281, 322, 303, 273, 270, which takes twice as long for one row (10 us of float32, hot)
    {163840, SOFTMAX_ALGO_CLUSTER},
    // 201088: 327, 307, 262144: 336, 298; cluster 459, 405, 444, 397
    {262144, SOFTMAX_ALGO_GRID, 0, SOFTMAX_ALGO_AUTO, kFewAdaptive, SOFTMAX_ALGO_CLUSTER},
    {kNoLimit, SOFTMAX_ALGO_GRID},  // 524288: 320, 308; cluster 564, 521
};
// Of odd length. Up to 16384 columns not measured: as with 16-bit results.
constexpr TuningRow kSm90HalfToF32Odd[] = {
    {2048, SOFTMAX_ALGO_TILE, kFewOdd, SOFTMAX_ALGO_WARP},
    {17408, SOFTMAX_ALGO_BLOCK},  // 16385: 430, 484; cluster 426, 502
    // 20481: 342, 405, 24577: 376, 434; block 412, 467, 404, 455. 32639: 404, 478, 50257: 406, 474,
    // 65537: 428, 514, 100353: 460, 570, 151937: 601, 692; grid 452, 413, 467, 426, 444, 413, 446,
    // 380, 397, 362
    // Beyond that GRID gains a third and more; what it costs few rows was not measured.
    {131072, SOFTMAX_ALGO_CLUSTER},
    {262144, SOFTMAX_ALGO_GRID, 0, SOFTMAX_ALGO_AUTO, kFewAdaptive, SOFTMAX_ALGO_CLUSTER},
    {kNoLimit, SOFTMAX_ALGO_GRID},  // 262145: 466, 400; cluster 649, 557
};
// Ragged rows to float32 take these rows too, and are not measured.
constexpr TuningRow kSm90HalfRagged[] = {
    // 24, 40, 48, 56: warp 0.73, 0.62, 0.74, 0.85; 72, 88, 136, 176: warp 0.74, 0.88, 0.74, 0.91;
    // 264, 320, 576, 640: warp 0.71, 0.84, 0.76, 0.83; 704: block 0.96
    {1024, SOFTMAX_ALGO_TILE},
    // 1216: 0.98, 1280: 1.01, 1408: 1.02; 1088, 1152: block 0.72, 0.76
    {kNoLimit, SOFTMAX_ALGO_WARP},
};
constexpr TuningRow kSm90HalfOdd[] = {
    // 9: 0.77, 33: 0.97, 100: 0.98, 257: 0.92, 513: 0.96, 1025: 0.97, 2047: 0.98; block -, -, -, -,
    // 0.75, 0.61, -. M = 1, N = 257, hot: 2.0 us by warp
    {2048, SOFTMAX_ALGO_TILE, kFewOdd, SOFTMAX_ALGO_WARP},
    // 2049: 0.82, 4097: 0.86, 12289: 0.81, 16385: 0.84, 24577: 0.84, 32639: 0.91; cluster -, -, -,
    // 0.78, 0.69, 0.86
    {32640, SOFTMAX_ALGO_BLOCK},
    // 32767: 0.72, 50257: 0.77, 65279: 0.86, 131073: 0.68, 262143: 0.73; block 0.65, 0.71, 0.77, -,
    // -; grid 0.39, 0.57, 0.83, 0.68, 0.73
    {262144, SOFTMAX_ALGO_CLUSTER},
    {kNoLimit, SOFTMAX_ALGO_GRID},  // 1048577: 0.80
};
constexpr TuningRow kSm90F64[] = {
    {256, SOFTMAX_ALGO_WARP},          // 64: 0.94, 256: 0.89; block -, 0.90
    {16384, SOFTMAX_ALGO_BLOCK},       // 1024: 0.69, 16384: 0.64; cluster -, 0.49
    {kNoLimit, SOFTMAX_ALGO_SHUFFLE},  // 32768: 0.41; cluster at 65536 0.36, grid at 262144 0.23
};
// Not measured: as odd rows, which TILE does best, element by element.
constexpr TuningRow kSm90F64Ragged[] = {
    {512, SOFTMAX_ALGO_TILE},
    {kNoLimit, SOFTMAX_ALGO_SHUFFLE},
};
constexpr TuningRow kSm90F64Odd[] = {
    // 9: 0.89, 33: 0.78, 129: 0.72, 257: 0.70; warp -, 0.47, 0.44, -
    {512, SOFTMAX_ALGO_TILE, kFewOdd, SOFTMAX_ALGO_WARP},
    {16384, SOFTMAX_ALGO_BLOCK},       // 1025: 0.58, 12289: 0.58; cluster -, 0.42
    {kNoLimit, SOFTMAX_ALGO_SHUFFLE},  // 32768: 0.41; cluster at 50257 0.30
};

// ---- sm_75 to sm_89 ----
//
// Not measured on such a card; the order follows from sm_90, whose bulk copies and clusters are not
// there: registers where they hold the row, and beyond that the best of the ladder.

constexpr TuningRow kSm75F32[] = {
    {1024, SOFTMAX_ALGO_WARP},
    {8192, SOFTMAX_ALGO_BLOCK},
    {kNoLimit, SOFTMAX_ALGO_ONLINE},
};
constexpr TuningRow kSm75Half[] = {
    {2048, SOFTMAX_ALGO_WARP},
    {16384, SOFTMAX_ALGO_BLOCK},
    {kNoLimit, SOFTMAX_ALGO_ONLINE},
};
constexpr TuningRow kSm75HalfOdd[] = {
    {2048, SOFTMAX_ALGO_WARP},
    {16384, SOFTMAX_ALGO_BLOCK},
    {kNoLimit, SOFTMAX_ALGO_SHUFFLE},
};
constexpr TuningRow kSm75F64[] = {
    {512, SOFTMAX_ALGO_WARP},
    {4096, SOFTMAX_ALGO_BLOCK},
    {kNoLimit, SOFTMAX_ALGO_SHUFFLE},
};

// ---- the general call ----
//
// By what holds a row. Rows that lie across memory are COLUMN's where it holds them, and ONLINE's
// beyond that.

constexpr TuningRow kSm90General[] = {
    {1024, SOFTMAX_ALGO_WARP},
    {8192, SOFTMAX_ALGO_BLOCK},
    {kNoLimit, SOFTMAX_ALGO_CLUSTER},
};
constexpr TuningRow kGeneralInner[] = {{kNoLimit, SOFTMAX_ALGO_COLUMN}};
constexpr TuningRow kSm75General[] = {
    {1024, SOFTMAX_ALGO_WARP},
    {kNoLimit, SOFTMAX_ALGO_BLOCK},
};

// ---- the ladder, on every architecture ----
//
// One NVIDIA H200 (sm_90), 2026-11-30, softmax out of place over 2^26 elements, buffers rotated
// past the L2, CUDA graphs, medians. Scores are copy time over softmax time at the N in the
// comment, the copy being the better of cudaMemcpyAsync and a 16-byte streaming kernel. In odd rows
// packs are loaded by element.

constexpr TuningRow kLadderF32[] = {
    {28, SOFTMAX_ALGO_NAIVE},          // 4: 0.45, 28: 0.15; vector 0.02, 0.10
    {192, SOFTMAX_ALGO_VECTOR},        // 32: 0.12, 192: 0.31; naive 0.11, -; warp_online -, 0.27
    {2560, SOFTMAX_ALGO_WARP_ONLINE},  // 256: 0.45, 1024: 0.77, 2560: 0.67; vector 0.39, 0.39, 0.64
    {6144, SOFTMAX_ALGO_VECTOR},       // 3072: 0.68, 6144: 0.78; online 0.63, 0.77
    {kNoLimit, SOFTMAX_ALGO_ONLINE},   // 8192: 0.76, 131072: 0.58; vector 0.75, 0.46
};
constexpr TuningRow kLadderF32Odd[] = {
    {33, SOFTMAX_ALGO_NAIVE},    // 33: 0.12; vector 0.10
    {127, SOFTMAX_ALGO_VECTOR},  // 63: 0.19, 127: 0.38; shuffle 0.18, 0.35
    {2049,
     SOFTMAX_ALGO_WARP_ONLINE},     // 129: 0.21, 1025: 0.56, 2049: 0.51; shuffle 0.17, 0.30, 0.49
    {12289, SOFTMAX_ALGO_SHUFFLE},  // 3073: 0.52, 8193: 0.68, 12289: 0.64; online 0.52, 0.62, 0.59
    {kNoLimit, SOFTMAX_ALGO_ONLINE},  // 16385: 0.56, 50257: 0.53; shuffle 0.49, 0.36
};
// 16-bit inputs: measured with bf16 to bf16; f16, and float32 outputs, take the same rows.
constexpr TuningRow kLadderHalf[] = {
    {32, SOFTMAX_ALGO_NAIVE},          // 8: 0.43, 32: 0.08; vector 0.02, 0.06
    {384, SOFTMAX_ALGO_VECTOR},        // 48: 0.10, 384: 0.33; naive 0.07, -; warp_online -, 0.31
    {4096, SOFTMAX_ALGO_WARP_ONLINE},  // 512: 0.50, 2560: 0.84, 4096: 0.64; vector 0.42, 0.49, 0.62
    {8192, SOFTMAX_ALGO_VECTOR},       // 6144: 0.68, 8192: 0.74; online 0.65, 0.73
    {kNoLimit, SOFTMAX_ALGO_ONLINE},   // 12288: 0.78, 131072: 0.59; vector 0.77, 0.47
};
constexpr TuningRow kLadderHalfOdd[] = {
    {33, SOFTMAX_ALGO_NAIVE},     // 33: 0.08; shuffle 0.06
    {127, SOFTMAX_ALGO_SHUFFLE},  // 63: 0.12, 127: 0.22; vector 0.09, 0.17
    {255, SOFTMAX_ALGO_VECTOR},   // 129: 0.18, 255: 0.33; warp_online 0.13, 0.26
    {3073,
     SOFTMAX_ALGO_WARP_ONLINE},  // 257: 0.20, 1023: 0.40, 3073: 0.37; shuffle 0.11, 0.20, 0.36
    {kNoLimit,
     SOFTMAX_ALGO_SHUFFLE},  // 4097: 0.47, 16385: 0.58, 50257: 0.35; online 0.31, 0.36, 0.28
};
constexpr TuningRow kLadderF64[] = {
    {40, SOFTMAX_ALGO_NAIVE},     // 4: 0.39, 40: 0.23; vector 0.02, 0.20
    {64, SOFTMAX_ALGO_VECTOR},    // 48: 0.23, 64: 0.31; naive 0.20, 0.20; shuffle 0.17, 0.23
    {128, SOFTMAX_ALGO_SHUFFLE},  // 96: 0.32, 128: 0.40; vector 0.20, 0.26
    {1536,
     SOFTMAX_ALGO_WARP_ONLINE},  // 192: 0.30, 1024: 0.46, 1536: 0.45; shuffle 0.28, 0.34, 0.31
    {kNoLimit,
     SOFTMAX_ALGO_SHUFFLE},  // 2048: 0.49, 4096: 0.56, 32768: 0.41; vector 0.47, 0.53, 0.42
};

// ---- the CPU ----
//
// AMD EPYC (Zen 4, AVX-512, 1 MB L2, 32 MB L3), 2 threads, 2026-11-30, 2^26 elements, medians
// of 7 rounds of softmax_cpu_bench. Scores are GB/s read and written, in place and out of place;
// memcpy on as many threads moved 27 to 40 in the same rounds.

constexpr TuningRow kCpuF32[] = {
    // 1024: 44, 27; 65536: 37, 24; 262144: 31, 22. online 27, 25; 31, 20; 31, 22
    {262144, SOFTMAX_ALGO_VECTOR},
    // 1048576: 31, 22; 4194304: 29, 18; 16777216: 29, 19. vector 31, 20; 23, 15; 19, 14
    {kNoLimit, SOFTMAX_ALGO_ONLINE},
};
// bf16; up to a million terms wait in scratch, above that VECTOR computes them twice as well.
constexpr TuningRow kCpuHalf[] = {
    // 1024: 21, 17; 1048576: 19, 18. online 12, 12; 14, 13
    {1048576, SOFTMAX_ALGO_VECTOR},
    // 2097152: 14, 14; 16777216: 14, 13. vector 13, 13; 14, 12
    {kNoLimit, SOFTMAX_ALGO_ONLINE},
};
constexpr TuningRow kCpuF64[] = {
    {1048576, SOFTMAX_ALGO_VECTOR},   // 1024: 32, 27; 1048576: 23, 18. online 19, 18; 20, 17
    {kNoLimit, SOFTMAX_ALGO_ONLINE},  // 2097152: 20, 17; 16777216: 20, 16. vector 20, 16; 17, 14
};

template <int Count>
constexpr TuningTable table(const char *name, const TuningRow (&rows)[Count]) {
  return {name, rows, Count};
}

template <int Count>
constexpr bool sound(const TuningRow (&rows)[Count]) {
  return is_sound(rows, Count);
}

static_assert(sound(kSm90F32) && sound(kSm90F32Ragged) && sound(kSm90F32Odd) && sound(kSm90Half) &&
                  sound(kSm90HalfToF32) && sound(kSm90HalfToF32Odd) && sound(kSm90HalfRagged) &&
                  sound(kSm90HalfOdd) && sound(kSm90F64) && sound(kSm90F64Ragged) &&
                  sound(kSm90F64Odd) && sound(kSm90General) && sound(kSm75General) &&
                  sound(kGeneralInner) && sound(kSm75F32) && sound(kSm75Half) &&
                  sound(kSm75HalfOdd) && sound(kSm75F64) && sound(kLadderF32) &&
                  sound(kLadderF32Odd) && sound(kLadderHalf) && sound(kLadderHalfOdd) &&
                  sound(kLadderF64) && sound(kCpuF32) && sound(kCpuHalf) && sound(kCpuF64),
              "a table rises, ends without a limit, and keeps its bits over M");

bool is_odd(std::int32_t x_dtype, std::int64_t cols) {
  return !is_whole_words(cols, dtype_size(x_dtype));
}

// What is_odd leaves.
bool is_ragged_row(std::int32_t x_dtype, std::int64_t cols) {
  return is_ragged(cols / (kHeldPackBytes / dtype_size(x_dtype)));
}

TuningTable cpu_table(std::int32_t x_dtype) {
  switch (x_dtype) {
    case SOFTMAX_DTYPE_F32: return table("cpu f32", kCpuF32);
    case SOFTMAX_DTYPE_F64: return table("cpu f64", kCpuF64);
    default: return table("cpu 16-bit", kCpuHalf);
  }
}

}  // namespace

TuningTable tuning_table(const DeviceCaps &caps, const Problem &problem) {
  const std::int32_t x_dtype = problem.x_dtype;
  const std::int64_t cols = problem.cols;
  if (!caps.is_cuda) return cpu_table(x_dtype);
  const bool odd = is_odd(x_dtype, cols);
  if (caps.compute_capability < 90) {
    switch (x_dtype) {
      case SOFTMAX_DTYPE_F32: return table("sm_75 f32", kSm75F32);
      case SOFTMAX_DTYPE_F64: return table("sm_75 f64", kSm75F64);
      default:
        return odd ? table("sm_75 16-bit odd", kSm75HalfOdd) : table("sm_75 16-bit", kSm75Half);
    }
  }
  if (!odd && is_ragged_row(x_dtype, cols)) {
    switch (x_dtype) {
      case SOFTMAX_DTYPE_F32: return table("sm_90 f32 ragged", kSm90F32Ragged);
      case SOFTMAX_DTYPE_F64: return table("sm_90 f64 ragged", kSm90F64Ragged);
      default: return table("sm_90 16-bit ragged", kSm90HalfRagged);
    }
  }
  switch (x_dtype) {
    case SOFTMAX_DTYPE_F32:
      return odd ? table("sm_90 f32 odd", kSm90F32Odd) : table("sm_90 f32", kSm90F32);
    case SOFTMAX_DTYPE_F64:
      return odd ? table("sm_90 f64 odd", kSm90F64Odd) : table("sm_90 f64", kSm90F64);
    default:
      if (dtype_size(problem.y_dtype) == 4) {
        return odd ? table("sm_90 16-bit to f32 odd", kSm90HalfToF32Odd)
                   : table("sm_90 16-bit to f32", kSm90HalfToF32);
      }
      return odd ? table("sm_90 16-bit odd", kSm90HalfOdd) : table("sm_90 16-bit", kSm90Half);
  }
}

TuningTable general_table(const DeviceCaps &caps, std::uint32_t features) {
  if ((features & kFeatureInner) != 0) return table("general inner", kGeneralInner);
  return caps.compute_capability < 90 ? table("sm_75 general", kSm75General)
                                      : table("sm_90 general", kSm90General);
}

TuningTable ladder_table(const DeviceCaps &caps, std::int32_t x_dtype, std::int64_t cols) {
  if (!caps.is_cuda) return cpu_table(x_dtype);
  const bool odd = is_odd(x_dtype, cols);
  switch (x_dtype) {
    case SOFTMAX_DTYPE_F32:
      return odd ? table("ladder f32 odd", kLadderF32Odd) : table("ladder f32", kLadderF32);
    case SOFTMAX_DTYPE_F64: return table("ladder f64", kLadderF64);
    default:
      return odd ? table("ladder 16-bit odd", kLadderHalfOdd) : table("ladder 16-bit", kLadderHalf);
  }
}

}  // namespace softmax
