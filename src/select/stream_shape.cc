// What was measured of CLUSTER for many rows. See stream_shape.h.
#include "select/stream_shape.h"

#include "core/dtype.h"
#include "core/held_rows.h"

namespace softmax {
namespace {

// Of rows with up to so many runs, the blocks of a cluster; kTeams: teams of blocks instead.
struct ShapeRow {
  std::int64_t max_runs;
  std::int32_t blocks;
};
constexpr std::int32_t kTeams = 0;
constexpr std::int64_t kNoLimit = INT64_MAX;

// One NVIDIA H200, 2026-12-01: every number of runs up to 81 and some up to 160, in clusters of 2
// to 16 blocks and in teams (GRID's, whose order of additions is another), 2^27 elements, cold.
// Scores are copy time over softmax time. A row's number of blocks is within 2.5% of its best one
// where all of its numbers of runs were measured; of kF32Odd every third was. Neither the number of
// runs under way nor that of warps on the fullest scheduler says which shape is best.

constexpr ShapeRow kF32[] = {
    {18, 2},             // 16: 0.93; 17: 0.88, in 5 0.89
    {20, 3},             // 0.90; in 2 0.88
    {25, 2},             // 21: 0.97, 25: 0.94; in 3 0.92, 0.86
    {32, 4},             // 32: 0.95; in 2 0.93, BLOCK 0.91
    {41, 5},             // 33: 0.95, 40: 0.90; in 7 and 8 0.91, 0.89
    {48, 3},             // 45: 0.95; in 6 0.90
    {51, 7},             // 49: 0.91; in 5 0.90
    {58, 8},             // 55: 0.95; in 7 0.91
    {61, 4},             // 59: 0.98; in 8 0.93
    {79, 8},             // 64: 0.96, 65: 0.91, 79: 0.95; in 4 0.96, -, -
    {80, 5},             // 0.94; in 8 0.91
    {95, kTeams},        // 84: 0.88, 90: 0.90; in 9 and 15 0.89, 0.89
    {96, 8},             // 0.94; in 16 0.89, teams 0.89
    {100, 10},           // 0.88; teams at 98 0.83
    {116, kTeams},       // 104: 0.88, 112: 0.88; in 8 and 16 0.83, 0.88
    {128, 8},            // 120: 0.91, 128: 0.99; teams 0.90, 0.93
    {144, 16},           // 136: 0.87, 144: 0.90; teams 0.73, -
    {150, 15},           // 149: 0.93, 150: 0.89; teams at 149 0.81
    {160, 16},           // 0.91; teams 0.79
    {kNoLimit, kTeams},  // 196: 0.71, 256: 0.76; in 16 0.57, 0.80. GRID, by slabs, 0.90, 0.94
};
// Of odd length, element by element.
constexpr ShapeRow kF32Odd[] = {
    {18, 5},             // 17: 0.90; in 2 0.90
    {23, 3},             // 20: 0.94, 23: 0.92; in 2 0.93, 0.92
    {32, 4},             // 26: 0.95, 32: 0.89; in 7 and 8 0.90, 0.88, in 2 at 25 0.81
    {39, 5},             // 35: 0.93, 38: 0.93; in 6 and 8 0.92, 0.91
    {42, 6},             // 41: 0.90; in 7 0.89
    {45, 8},             // 44: 0.92; in 5 0.92
    {48, 6},             // 47: 0.94; in 5 0.91
    {49, 9},             // not measured
    {50, 13},            // 0.95; in 10 and 5 0.95, 0.92, in 7 0.83; log-softmax 0.85; in 10 0.82
    {51, 9},             // 0.91
    {80, 8},             // 53: 0.91, 59: 0.93, 80: 0.91; in 6, 6 and 16 0.91, 0.89, 0.89
    {96, 16},            // 96: 0.90; teams 0.87
    {100, 10},           // 0.86; teams at 98 0.79
    {136, 16},           // 112: 0.84, 128: 0.90; in 14 and 8 0.79, 0.86, teams at 129 0.73
    {150, 15},           // 149: 0.87; teams 0.75
    {160, 16},           // not measured
    {kNoLimit, kTeams},  // 196: 0.67, 256: 0.69. GRID, by slabs, 0.87, 0.85
};
constexpr ShapeRow kHalf[] = {
    {24, 2},             // 17: 0.85, 24: 0.93; in 5 and 3 0.84, 0.88, teams 0.62, 0.85
    {25, 5},             // 0.84; in 2 0.82
    {32, 2},             // 28: 0.92, 32: 0.88; in 7 and 4 0.84, 0.88
    {60, kTeams},        // 33: 0.84, 48: 0.88, 60: 0.88; in 7, 3 and 8 0.81, 0.88, 0.87
    {64, 8},             // 61: 0.88, 63: 0.89, 64: 0.90; teams 0.87, 0.89, 0.88
    {kNoLimit, kTeams},  // 65: 0.84, 75: 0.88, 128: 0.88; in 8 0.73, 0.83, 0.85
};
// Of odd length, in windows.
constexpr ShapeRow kHalfOdd[] = {
    {14, 2},       // 10: 0.86, 12: 0.85; in 3 0.67, 0.81
    {15, 3},       // 0.82; in 2 0.78
    {20, 2},       // 17: 0.72, 20: 0.86; in 6 and 5 0.71, 0.85, teams 0.43, 0.66
    {21, 7},       // 0.75; in 2 0.69
    {24, 6},       // 24: 0.83; in 2 0.79
    {25, 5},       // 0.77; in 2 0.70
    {28, 7},       // 28: 0.83; in 2 0.79
    {32, 2},       // 30: 0.83, 32: 0.86; in 8 0.81, 0.86, teams 0.81, 0.82
    {35, 7},       // 34: 0.72; teams 0.61
    {36, kTeams},  // 0.76; in 9 0.74
    {40, 8},       // 37: 0.73, 39: 0.77; teams 0.64, 0.71
    {41, 11},      // 0.70; teams 0.69
    {42, kTeams},  // 0.77; in 11 0.73
    {44, 11},      // 43: 0.74; teams 0.72
    {48, kTeams},  // 45: 0.81, 48: 0.83; in 3 and 8 0.71, 0.76
    {52, 13},      // 49: 0.69, 50: 0.71; teams 0.66, 0.68
    {kNoLimit,
     kTeams},  // 60: 0.81, 64: 0.83, 65: 0.70, 80: 0.82; in 15, 16, 13 and 8 0.76, 0.79, 0.63, 0.75
};

// With float32 results, 2026-12-02, softmax and log-softmax in microseconds over 2^27 elements; a
// copy takes 191. Runs are as many as float32's, and a thread had 96 registers where rows are whole
// words and 127 elsewhere, but in the row that says otherwise. A number of runs beside a measured
// one may want another number of blocks, and so has its own row.
constexpr ShapeRow kHalfToF32[] = {
    {17, 3},             // 17: 271, 330; in 2, 4, 5, 8 277, 282, 270, 341, 321, 342, 334, 427
    {19, 8},             // not measured
    {20, 2},             // 20: 239, 265; in 4, 5, 8 235, 237, 274, 274, 268, 347
    {23, 8},             // not measured
    {24, 6},             // 24: 237, 275; in 4, 8 240, 234, 290, 292
    {63, 8},             // 32: 236, 274; in 4 264, 291. 40: 242, 289; in 10 254, 299. 48: 261, 310;
                         // in 12, 16 271, 267, 326, 335
    {97, 16},            // 64: 253, 307; in 8 276, 314. 80: 262, 326; in 8 273, 317
    {100, 10},           // 98: 345, 434; in 16 379, 479
    {160, 16},           // 126: 323, 367; in 8 324, 371. 149: 332, 389; in 15 the same
    {kNoLimit, kTeams},  // 197: 460, 408; in 16 461, 522. 256: 445, 397; in 16 452, 494. GRID, by
                         // slabs, 327, 307 and 336, 298
};

constexpr ShapeRow kHalfToF32Odd[] = {
    {49, 8},             // 21: 342, 405. 25: 376, 434
    {50, 5},             // dealt out as float32, 2^27 / 3 elements: 96; in 10, 13 99, 103
    {63, 8},             // not measured
    {160, 16},           // 65: 428, 514. 99: 460, 570
    {kNoLimit, kTeams},  // 259: 649, 557. GRID 466, 400
};

template <int kCount>
std::int32_t blocks_of(const ShapeRow (&rows)[kCount], std::int64_t runs) {
  int i = 0;
  while (runs > rows[i].max_runs) ++i;
  return rows[i].blocks;
}

std::int32_t measured_blocks(const Problem &problem, std::int64_t runs) {
  const int size = dtype_size(problem.x_dtype);
  if (size == 2 && dtype_size(problem.y_dtype) == 4) {
    return is_whole_words(problem.cols, size) ? blocks_of(kHalfToF32, runs)
                                              : blocks_of(kHalfToF32Odd, runs);
  }
  const bool is_half = size == 2;
  if (is_half && is_always_window(problem.cols, size)) return blocks_of(kHalfOdd, runs);
  if (is_half) return blocks_of(kHalf, runs);
  return is_whole_words(problem.cols, size) ? blocks_of(kF32, runs) : blocks_of(kF32Odd, runs);
}

}  // namespace

StreamShape stream_shape(const DeviceCaps &caps, const Problem &problem, std::int64_t runs) {
  constexpr std::int32_t kMeasuredMultiprocessors = 132;  // H100 (SXM) and H200
  if (caps.compute_capability != 90 || caps.sm_count != kMeasuredMultiprocessors) return {};
  const std::int32_t blocks = measured_blocks(problem, runs);
  if (blocks == kTeams) return {StreamTeam::kTeams, 0};
  return {StreamTeam::kCluster, blocks};
}

}  // namespace softmax
