// How COLUMN spreads rows that lie across memory over registers: every element has one owner, who
// that is depends on N and the device alone, and tiles are as wide as memory wants them.
#include <cstdint>
#include <vector>

#include "core/column_runs.h"
#include "core/features.h"
#include "core/held_column.h"
#include "made_up.h"
#include "support/catch.h"

namespace softmax_test {
namespace {

using softmax::column_rows;
using softmax::ColumnRows;
using softmax::ColumnShape;
using softmax::ColumnTile;
using softmax::held_column_lanes;
using softmax::held_column_room;
using softmax::held_column_shape;
using softmax::held_column_tile;
using softmax::held_column_width;
using softmax::held_positions;
using softmax::HeldSums;
using softmax::is_held_column;
using softmax::Problem;

constexpr int kHopper = 90;
constexpr std::int64_t kMostBytes = 226 << 10;
constexpr std::int64_t kCols[] = {1,   2,    3,    16,   21,   32,   33,    64,    100,
                                  512, 1000, 1024, 1025, 2000, 8192, 20000, 128256};

ColumnTile tile_of(const ColumnShape &shape, std::int64_t rows, std::int64_t inner, int size,
                   HeldSums sums = {true, true}, int multiprocessors = 132,
                   std::int64_t most_bytes = kMostBytes) {
  ColumnTile tile = held_column_tile(rows, inner, held_column_lanes(shape, inner, size));
  tile.width = held_column_width(shape, tile, size, sums, most_bytes, multiprocessors);
  return tile;
}

Problem problem_of(std::int64_t cols, softmax_dtype_t x, softmax_dtype_t y) {
  Problem problem;
  problem.rows = 1000;
  problem.cols = cols;
  problem.x_dtype = x;
  problem.y_dtype = y;
  problem.features = softmax::kFeatureInner;
  return problem;
}

}  // namespace

TEST_CASE("every element of held rows that lie across memory has one thread", "[column]") {
  for (const int size : {1, 2, 4}) {
    for (const std::int64_t cols : {1, 3, 21, 32, 33, 70, 1025, 2100}) {
      const ColumnShape shape = held_column_shape(cols, size, 16);
      for (const std::int64_t inner : {1, 2, 3, 4, 6, 7, 33, 130}) {
        const std::int64_t rows = inner * 3;
        const ColumnTile tile = tile_of(shape, rows, inner, size);
        REQUIRE(tile.width > 0);
        std::vector<int> owners(static_cast<std::size_t>(rows * cols));
        for (std::int64_t group = 0; group < tile.groups + tile.width; ++group) {
          const ColumnRows those = column_rows(tile, group);
          for (std::int64_t at = 0; at < shape.blocks * shape.part(); ++at) {
            for (int lane = 0; lane < those.count && at < cols; ++lane) {
              ++owners[static_cast<std::size_t>((those.first + lane) * cols + at)];
            }
          }
        }
        std::int64_t wrong = 0;
        for (const int count : owners) wrong += count != 1;
        INFO(cols << " columns of " << size << " bytes, " << inner << " side by side");
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("threads hold no more of an axis than they have registers for", "[column]") {
  for (const int capability : {75, 80, 90, 100, 120}) {
    const int most_blocks = softmax::column_most_blocks(capability);
    for (const std::int64_t cols : kCols) {
      const Problem problem = problem_of(cols, SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F32);
      if (!is_held_column(problem, capability)) continue;
      const ColumnShape shape = held_column_shape(cols, 4, most_blocks);
      INFO(cols << " columns, sm_" << capability);
      CHECK(shape.blocks * shape.part() >= cols);
      CHECK(shape.blocks <= most_blocks);
      CHECK((shape.blocks & (shape.blocks - 1)) == 0);
      CHECK((shape.threads & (shape.threads - 1)) == 0);
      CHECK(shape.quads <= (shape.threads == 1 ? softmax::kHeldAlonePositions : held_positions(4)));
      // As many lanes merge a cluster's parts as there are blocks.
      CHECK(shape.blocks <= 32);
      CHECK((shape.threads > 1 || shape.blocks == 1));
    }
  }
}

TEST_CASE("a tile of held rows is whole warps, fits shared memory and is as wide as memory wants",
          "[column]") {
  for (const std::int64_t most_bytes : {63 << 10, 98 << 10, 226 << 10}) {
    const int capability = most_bytes < (99 << 10) ? 75 : kHopper;
    for (const int size : {1, 2, 4}) {
      for (const std::int64_t cols : kCols) {
        const Problem problem = problem_of(cols, SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F32);
        if (!is_held_column(problem, capability)) continue;
        const ColumnShape shape =
            held_column_shape(cols, size, softmax::column_most_blocks(capability));
        for (const std::int64_t inner : {1, 2, 3, 4, 16, 49, 784, 8192, 262144}) {
          for (const std::int64_t outer : {1, 8, 1000}) {
            const ColumnTile tile =
                tile_of(shape, inner * outer, inner, size, {true, true}, 132, most_bytes);
            const int threads = shape.threads * tile.width;
            INFO(cols << " columns, " << outer << " x " << inner << ": " << threads << " threads");
            CHECK(threads >= 32);
            CHECK(threads % 32 == 0);
            CHECK(threads <= softmax::kHeldMostThreads);
            CHECK((tile.width & (tile.width - 1)) == 0);
            CHECK(held_column_room(shape, tile, {true, true}).bytes <= most_bytes);
            const bool is_wide =
                tile.width * tile.quad_rows * size >= softmax::kHeldLeastRunBytes ||
                tile.width >= tile.inner_groups;
            if (cols <= 16384 && capability == kHopper && size > 1) CHECK(is_wide);
          }
        }
      }
    }
  }
}

TEST_CASE("a block takes runs of 128 bytes where it stays small, and of 64 where blocks are few",
          "[column]") {
  const auto run_bytes = [](std::int64_t cols, std::int64_t rows, std::int64_t inner, int size) {
    const ColumnShape shape = held_column_shape(cols, size, softmax::column_most_blocks(kHopper));
    const ColumnTile tile = tile_of(shape, rows, inner, size, {false, true}, 132, 227 << 10);
    return tile.width * tile.quad_rows * size;
  };
  for (const int size : {2, 4}) {
    CHECK(run_bytes(256, 512 * 512, 512, size) == 128);
    CHECK(run_bytes(8192, 8192, 8192, size) == 64);  // 128 would be 512 threads
    CHECK(run_bytes(512, 2048, 2048, size) == 64);
  }
}

TEST_CASE("a row of few columns has one run, of whole 16-byte words", "[column]") {
  for (const int size : {2, 4}) {
    for (const std::int64_t bytes : {512, 528, 1008, 1024, 1040, 2000, 3136, 4096, 4112, 1 << 20}) {
      const std::int64_t inner = bytes / size;
      const ColumnTile tile = softmax::column_runs(3 * inner, inner, size);
      INFO(inner << " elements of " << size << " bytes side by side");
      CHECK(tile.groups == 3 * tile.inner_groups);
      CHECK(tile.rows() * size <= softmax::kRunBytes);
      CHECK(tile.rows() * size % softmax::kRunUnit == 0);
      // All but the last are full, and that has some.
      CHECK((tile.inner_groups - 1) * std::int64_t{tile.rows()} < inner);
      CHECK(tile.inner_groups * std::int64_t{tile.rows()} >= inner);
      // No more runs than there have to be.
      CHECK(tile.inner_groups == (bytes + softmax::kRunBytes - 1) / softmax::kRunBytes);
    }
  }
  CHECK(softmax::column_run_slots(1) == 4);
  CHECK(softmax::column_run_slots(21) == 24);
  CHECK(softmax::column_run_slots(32) == 32);
}

TEST_CASE("rows are held by what is asked of them, their length and types", "[column][select]") {
  const auto is_held = [](Problem p, std::uint32_t more) {
    p.features |= more;
    return is_held_column(p, kHopper);
  };
  const Problem f32 = problem_of(1000, SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F32);
  CHECK(is_held(f32, 0));
  for (const std::uint32_t feature :
       {softmax::kFeatureScale, softmax::kFeatureRowScale, softmax::kFeatureSink,
        softmax::kFeatureStats, softmax::kFeatureStatsOutputs, softmax::kFeatureTypes}) {
    CHECK(is_held(f32, feature));
  }
  for (const std::uint32_t feature : {softmax::kFeatureBoolMask, softmax::kFeatureCausalMask,
                                      softmax::kFeatureRowLength, softmax::kFeatureGivenStats}) {
    CHECK(!is_held(f32, feature));
  }
  CHECK(is_held(problem_of(1000, SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F8_E4M3), 0));
  CHECK(is_held(problem_of(1000, SOFTMAX_DTYPE_BF16, SOFTMAX_DTYPE_F16), 0));
  CHECK(!is_held(problem_of(1000, SOFTMAX_DTYPE_BF16, SOFTMAX_DTYPE_F32), 0));
  CHECK(is_held(problem_of(128256, SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F32), 0));
  CHECK(!is_held(problem_of(131073, SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F32), 0));
  CHECK(!is_held(problem_of(INT64_MAX / 16000, SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F32), 0));
}

}  // namespace softmax_test
