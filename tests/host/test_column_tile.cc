// How COLUMN spreads rows that lie across memory: every element has one owner, the order of
// additions is a matter of N and the type, and AUTO takes what the policy accepts.
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/column_tile.h"
#include "core/features.h"
#include "made_up.h"
#include "support/catch.h"

namespace softmax_test {
namespace {

using softmax::column_position;
using softmax::column_room;
using softmax::column_rows;
using softmax::column_shape;
using softmax::column_tile;
using softmax::column_width;
using softmax::ColumnRows;
using softmax::ColumnShape;
using softmax::ColumnTile;
using softmax::kQuad;
using softmax::Problem;
using softmax::Selection;
using softmax::SelectOutcome;

constexpr std::int64_t kMostBytes = 226 << 10;
constexpr std::int64_t kCols[] = {1,  2,   3,    4,    5,    7,    16,   17,   21,   33,
                                  64, 100, 1000, 1024, 1025, 2000, 4097, 8192, 8193, 20000};

ColumnTile wide_tile(const ColumnShape &shape, std::int64_t rows, std::int64_t inner, int held_size,
                     int multiprocessors = 132) {
  ColumnTile tile = column_tile(shape, rows, inner);
  tile.width = column_width(shape, tile, held_size, false, kMostBytes, multiprocessors);
  return tile;
}

// Of one launch, body(row, rank, axis thread, quad, lane, position) for every lane of every quad;
// row is -1 for none.
template <typename Body>
void over_lanes(const ColumnShape &shape, const ColumnTile &tile, Body body) {
  const std::int64_t blocks = (tile.groups + tile.width - 1) / tile.width;
  for (std::int64_t block = 0; block < blocks; ++block) {
    for (int group = 0; group < tile.width; ++group) {
      const ColumnRows rows = column_rows(tile, block * tile.width + group);
      for (int rank = 0; rank < shape.blocks; ++rank) {
        for (int thread = 0; thread < tile.axis_threads(shape.threads); ++thread) {
          for (int quad = 0; quad < shape.quads; ++quad) {
            for (int lane = 0; lane < kQuad; ++lane) {
              const int within = lane % tile.quad_rows;
              body(within < rows.count ? rows.first + within : -1, rank, thread, quad, lane,
                   column_position(shape, tile, rank, thread, quad, lane));
            }
          }
        }
      }
    }
  }
}

// The order in which row 0's elements are added, as text: what a thread adds one after the other,
// and then two by two.
std::string order_of(const ColumnShape &shape, const ColumnTile &tile, std::int64_t cols) {
  // [rank][thread along the axis][lane]
  std::map<std::pair<int, int>, std::string> sums[kQuad];
  over_lanes(shape, tile, [&](std::int64_t row, int rank, int thread, int, int lane, int at) {
    if (row == 0 && at < cols) sums[lane][{rank, thread}] += std::to_string(at) + " ";
  });
  const auto halve = [](std::vector<std::string> parts) {
    while (parts.size() > 1) {
      std::vector<std::string> next;
      for (std::size_t i = 0; i < parts.size(); i += 2) {
        next.push_back("(" + parts[i] + "+" + parts[i + 1] + ")");
      }
      parts = next;
    }
    return parts[0];
  };
  std::vector<std::string> blocks;
  for (int rank = 0; rank < shape.blocks; ++rank) {
    std::vector<std::string> threads;
    for (int thread = 0; thread < tile.axis_threads(shape.threads); ++thread) {
      std::string own = sums[0][{rank, thread}];
      if (tile.positions() == 2) own = "(" + own + "+" + sums[2][{rank, thread}] + ")";
      threads.push_back(own);
    }
    blocks.push_back(halve(threads));
  }
  return halve(blocks);
}

Problem inner_problem(const TypePair &types, std::int64_t rows, std::int64_t cols) {
  Problem problem = make_problem(types, rows, cols);
  problem.features = softmax::kFeatureInner;
  return problem;
}

}  // namespace

TEST_CASE("every element of rows that lie across memory has one thread", "[column]") {
  for (const int held_size : {2, 4}) {
    for (const std::int64_t cols : {1, 3, 21, 70, 1025, 2100}) {
      const ColumnShape shape = column_shape(cols, held_size, 16);
      CHECK(shape.blocks * shape.part() >= cols);
      for (const std::int64_t inner : {1, 2, 3, 4, 7, 33, 130}) {
        const std::int64_t rows = inner * 3;
        const ColumnTile tile = wide_tile(shape, rows, inner, held_size);
        REQUIRE(tile.width > 0);
        std::vector<int> owners(static_cast<std::size_t>(rows * cols));
        over_lanes(shape, tile, [&](std::int64_t row, int, int, int, int, int at) {
          if (row >= 0 && at < cols) ++owners[static_cast<std::size_t>(row * cols + at)];
        });
        std::int64_t wrong = 0;
        for (const int count : owners) wrong += count != 1;
        INFO(cols << " columns of " << held_size << " bytes, " << inner << " side by side");
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("the order of additions across memory depends on N and the type alone", "[column]") {
  for (const int held_size : {2, 4}) {
    for (const std::int64_t cols : {2, 21, 33, 1000, 1025}) {
      const ColumnShape shape = column_shape(cols, held_size, 16);
      const std::string order = order_of(shape, wide_tile(shape, 4, 4, held_size), cols);
      for (const std::int64_t inner : {2, 3, 7, 64, 784}) {
        for (const int multiprocessors : {1, 132}) {
          INFO(cols << " columns of " << held_size << " bytes, " << inner << " side by side");
          CHECK(order_of(shape, wide_tile(shape, inner, inner, held_size, multiprocessors), cols) ==
                order);
        }
      }
    }
  }
}

TEST_CASE("a tile of rows across memory is whole warps and fits shared memory", "[column]") {
  for (const int held_size : {2, 4}) {
    for (const std::int64_t cols : kCols) {
      const ColumnShape shape = column_shape(cols, held_size, 16);
      for (const std::int64_t inner : {1, 2, 3, 4, 16, 49, 784, 8192, 262144}) {
        for (const std::int64_t outer : {1, 8, 1000}) {
          const ColumnTile tile = wide_tile(shape, inner * outer, inner, held_size);
          const int threads = tile.axis_threads(shape.threads) * tile.width;
          INFO(cols << " columns, " << outer << " x " << inner << ": " << threads << " threads");
          CHECK(threads % 32 == 0);
          CHECK(threads <= softmax::kColumnMostThreads);
          CHECK((tile.width & (tile.width - 1)) == 0);
          CHECK(column_room(shape, tile, held_size, false).bytes <= kMostBytes);
        }
      }
    }
  }
}

TEST_CASE("AUTO takes COLUMN for rows across memory that fit on chip, and ONLINE beyond",
          "[column][select]") {
  const softmax::DeviceCaps sm_90 = cuda_caps(90, 132, 2048, 60, 227, 228);
  const auto taken = [&](const Problem &problem) {
    Selection selection;
    CHECK(select_quietly(sm_90, SOFTMAX_ALGO_AUTO, problem, &selection) == SelectOutcome::kChosen);
    return selection.policy.algo;
  };
  for (const TypePair &types : kTypePairs) {
    const bool is_wide = types.x == SOFTMAX_DTYPE_F64 || types.y == SOFTMAX_DTYPE_F64;
    for (const std::int64_t cols : {1, 21, 1000, 8192, 128256}) {
      INFO(types.name << " " << cols);
      CHECK(taken(inner_problem(types, 1000, cols)) ==
            (is_wide ? SOFTMAX_ALGO_ONLINE : SOFTMAX_ALGO_COLUMN));
    }
    CHECK(taken(inner_problem(types, 1000, 10000000)) == SOFTMAX_ALGO_ONLINE);
    CHECK(taken(inner_problem(types, 1000, INT64_MAX / 16000)) == SOFTMAX_ALGO_ONLINE);
  }
  for (const std::uint32_t feature : {softmax::kFeatureSoftcap, softmax::kFeatureAdditiveMask,
                                      softmax::kFeatureBackward, softmax::kFeatureStrides}) {
    Problem problem = inner_problem(kTypePairs[0], 1000, 1000);
    problem.features |= feature;
    if (feature == softmax::kFeatureStrides) problem.features &= ~softmax::kFeatureInner;
    CHECK(taken(problem) == SOFTMAX_ALGO_ONLINE);
  }
  Problem masked = inner_problem(kTypePairs[0], 1000, 1000);
  masked.features |= softmax::kFeatureBoolMask | softmax::kFeatureRowScale | softmax::kFeatureSink;
  CHECK(taken(masked) == SOFTMAX_ALGO_COLUMN);
}

TEST_CASE("COLUMN's policy looks at M and the layout for no order of additions",
          "[column][select]") {
  for (const NamedCaps &device : made_up_devices()) {
    if (!device.caps.is_cuda) continue;
    for (const TypePair &types : kTypePairs) {
      for (const std::int64_t cols : kCols) {
        for (const std::uint32_t mask : {0u, std::uint32_t{softmax::kFeatureBoolMask}}) {
          const ColumnShape *first = nullptr;
          ColumnShape shape, other;
          for (const std::int64_t rows : {1, 2, 100, 1000000}) {
            Problem problem = inner_problem(types, rows, cols);
            problem.features |= mask;
            Selection selection;
            if (select_quietly(device.caps, SOFTMAX_ALGO_COLUMN, problem, &selection) !=
                SelectOutcome::kChosen) {
              continue;
            }
            const softmax::Policy &p = selection.policy;
            CHECK(p.smem_bytes <= device.caps.smem_per_block_bytes);
            other = {p.row_blocks, p.threads_per_row, p.packs};
            if (first == nullptr) shape = other;
            first = &shape;
            INFO(device.name << " " << types.name << " " << cols);
            CHECK((shape.blocks == other.blocks && shape.threads == other.threads &&
                   shape.quads == other.quads));
          }
        }
      }
    }
  }
}

}  // namespace softmax_test
