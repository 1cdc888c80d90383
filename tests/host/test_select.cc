// The selector's answers one by one: a golden table over made-up devices, algorithms asked for by
// name, launch policies, and what the texts say. What AUTO promises is in test_select_auto.cc.
//
// The table is select_golden.txt. After a deliberate change of the selector or of the tuning rows,
//     SOFTMAX_UPDATE_GOLDEN=1 build/tests/host/softmax_host_tests "[golden]"
// rewrites it in the source tree; read the difference before committing it.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/algo.h"
#include "core/dtype.h"
#include "core/held_rows.h"
#include "host/api.h"
#include "host/made_up.h"
#include "select/order.h"
#include "select/select.h"
#include "support/catch.h"
#include "support/element.h"

namespace softmax_test {
namespace {

using softmax::DeviceCaps;
using softmax::Policy;
using softmax::Selection;
using softmax::SelectOutcome;

// Every field that is not 0. Of TILE, CLUSTER and GRID, those that bits depend on or that say who
// shares a row: the others change with every few N.
std::string policy_text(const Policy &p) {
  std::string text = softmax::algo_name(p.algo);
  const auto field = [&](const char *name, std::int64_t value) {
    if (value != 0) text += std::string(" ") + name + " " + std::to_string(value);
  };
  const bool is_spread = p.algo == SOFTMAX_ALGO_CLUSTER || p.algo == SOFTMAX_ALGO_GRID;
  // Of slabs, threads follow from what is said of them and N.
  if (!is_spread) field("threads/row", p.threads_per_row);
  field("rows/block", p.rows_per_block);
  field("vec", p.vec_bytes);
  field("packs", p.packs);
  field("few rows: lanes", p.few_lanes);
  field("cluster", p.cluster);
  if (is_spread) field("slab", p.slab_bytes);
  if (is_spread || p.algo == SOFTMAX_ALGO_TILE) return text;
  field("stages", p.stages);
  field("blocks/sm", p.blocks_per_sm);
  field("smem", p.smem_bytes);
  field("workspace", p.workspace_bytes);
  return text;
}

// What one line of the table says of one selection.
std::string outcome_text(const DeviceCaps &caps, std::int32_t algo,
                         const softmax::Problem &problem) {
  Selection selection;
  switch (select_quietly(caps, algo, problem, &selection)) {
    case SelectOutcome::kChosen: return policy_text(selection.policy) + ": " + reason_of(selection);
    case SelectOutcome::kDeclined: return "declined: " + reason_of(selection);
    case SelectOutcome::kNoSuchAlgo: return "no such algorithm";
  }
  return "?";
}

constexpr std::int64_t kManyRows = 65536;
constexpr std::int64_t kLastColumn = std::int64_t{1} << 25;

// The selector may tell rows that are whole 16-byte words from rows that are not. N = 8, 16, 24,
// ... are whole in every type, N = 1, 3, 5, ... in none.
struct RowLengths {
  const char *name;
  std::int64_t step;
  std::int64_t offset;
  std::int64_t at(std::int64_t i) const { return step * i + offset; }
};
constexpr RowLengths kRowLengths[] = {{"multiples of 8", 8, 0}, {"odd", 2, -1}};

// Every N up to where blocks are full, and then in steps; a change between two is found exactly.
std::int64_t next_index(std::int64_t i) { return i < 2100 ? i + 1 : i + i / 64; }

// One line for each range of N over which the answer stays the same.
std::vector<std::string> ranges(const NamedCaps &device, std::int32_t algo, const TypePair &types,
                                std::int64_t rows, const RowLengths &lengths) {
  std::vector<std::string> lines;
  const auto text_at = [&](std::int64_t i) {
    return outcome_text(device.caps, algo, make_problem(types, rows, lengths.at(i)));
  };
  std::string previous;
  std::int64_t last = 0;
  for (std::int64_t i = 1; lengths.at(i) <= kLastColumn; last = i, i = next_index(i)) {
    const std::string text = text_at(i);
    if (text == previous) continue;
    std::int64_t same = last, changed = i;
    while (changed - same > 1) {
      const std::int64_t middle = same + (changed - same) / 2;
      (text_at(middle) == previous ? same : changed) = middle;
    }
    previous = text;
    lines.push_back(std::string(" ") + lengths.name +
                    " from N = " + std::to_string(lengths.at(changed)) + ": " + text);
  }
  return lines;
}

// Of the made-up devices, one of each kind: the others differ from these in sizes alone.
bool is_in_table(const std::string &device) {
  return device == "cpu" || device == "sm_75" || device == "sm_90" || device == "sm_120";
}

// AUTO is listed for all of those; each algorithm by itself where most are taken, and on the CPU.
bool is_in_table_by_name(const std::string &device) { return device == "cpu" || device == "sm_90"; }

std::vector<std::string> current_table() {
  std::vector<std::string> lines;
  for (const NamedCaps &device : made_up_devices()) {
    if (!is_in_table(device.name)) continue;
    for (const TypePair &types : kTypePairs) {
      for (const softmax_algo_t algo : kEveryAlgorithm) {
        if (algo != SOFTMAX_ALGO_AUTO && !is_in_table_by_name(device.name)) continue;
        for (const RowLengths &lengths : kRowLengths) {
          const std::string what =
              std::string(device.name) + " " + softmax::algo_name(algo) + " " + types.name;
          const auto many = ranges(device, algo, types, kManyRows, lengths);
          const auto one = ranges(device, algo, types, 1, lengths);
          for (const std::string &line : many) lines.push_back(what + line);
          if (one == many) continue;
          for (const std::string &line : one) lines.push_back(what + " M = 1" + line);
        }
      }
    }
  }
  return lines;
}

}  // namespace

TEST_CASE("the selector's choices are those of the golden table", "[select][golden]") {
  const std::vector<std::string> now = current_table();
  if (std::getenv("SOFTMAX_UPDATE_GOLDEN") != nullptr) {
    std::ofstream file(SOFTMAX_TEST_GOLDEN);
    for (const std::string &line : now) file << line << "\n";
    REQUIRE(file.good());
    SOFTMAX_SKIP("the golden table was rewritten, not checked");
  }
  std::ifstream file(SOFTMAX_TEST_GOLDEN);
  REQUIRE(file.good());
  std::vector<std::string> golden;
  for (std::string line; std::getline(file, line);) golden.push_back(line);
  for (std::size_t i = 0; i < golden.size() && i < now.size(); ++i) {
    INFO("line " << i + 1);
    REQUIRE(now[i] == golden[i]);
  }
  CHECK(now.size() == golden.size());
  CHECK(golden.size() > 100);
}

TEST_CASE("an algorithm that is asked for by name is what runs, or is refused", "[select]") {
  for (const NamedCaps &device : made_up_devices()) {
    int chosen = 0;
    for (const softmax_algo_t algo : kEveryAlgorithm) {
      if (algo == SOFTMAX_ALGO_AUTO) continue;
      Selection selection;
      const SelectOutcome outcome =
          select_quietly(device.caps, algo, make_problem(kTypePairs[0], 1, 1000), &selection);
      INFO(device.name << " " << softmax::algo_name(algo));
      if (outcome == SelectOutcome::kChosen) {
        ++chosen;
        CHECK(selection.policy.algo == algo);
      } else {
        CHECK(outcome == SelectOutcome::kDeclined);
        // The sentence says which algorithm and why.
        CHECK(reason_of(selection).size() > 10);
        CHECK((device.caps.is_cuda || reason_of(selection) == "not in this release" ||
               reason_of(selection).find("no CPU kernel") == 0));
      }
    }
    // The ladder, the reference, WARP and BLOCK; with bulk copies TILE, CLUSTER and GRID.
    CHECK(chosen == (!device.caps.is_cuda ? 4 : device.caps.compute_capability < 90 ? 9 : 12));
  }
  Selection selection;
  for (const std::int32_t none : {7, 9, 16, -1, 999, 1001}) {
    CHECK(select_quietly(DeviceCaps{}, none, make_problem(kTypePairs[0], 1, 10), &selection) ==
          SelectOutcome::kNoSuchAlgo);
  }
}

TEST_CASE("rows that do not fit are declined, and all that fit are taken", "[select]") {
  // What 32 lanes hold in eight 16-byte words each; and a block, in the types' own kernels.
  const struct {
    int pair;
    std::int64_t warp_cols, block_cols;
  } most[] = {{0, 1024, 32768}, {1, 2048, 65536}, {2, 2048, 65536},
              {3, 512, 16384},  {4, 2048, 32768}, {5, 2048, 32768}};
  const DeviceCaps sm_90 = cuda_caps(90, 132, 2048, 60, 227, 228);
  const DeviceCaps sm_75 = cuda_caps(75, 40, 1024, 4, 64, 64);
  for (const auto &m : most) {
    const auto outcome = [&](const DeviceCaps &caps, std::int32_t algo, std::int64_t cols) {
      return outcome_text(caps, algo, make_problem(kTypePairs[m.pair], 1, cols));
    };
    INFO(kTypePairs[m.pair].name);
    CHECK(outcome(sm_90, SOFTMAX_ALGO_WARP, m.warp_cols).find("declined") != 0);
    CHECK(outcome(sm_90, SOFTMAX_ALGO_WARP, m.warp_cols + 1).find("declined: a warp holds") == 0);
    CHECK(outcome(sm_90, SOFTMAX_ALGO_BLOCK, m.block_cols).find("declined") != 0);
    CHECK(outcome(sm_90, SOFTMAX_ALGO_BLOCK, m.block_cols + 1).find("declined: a block holds") ==
          0);
    // Registers alone are the limit, whatever shared memory a device has.
    CHECK(outcome(sm_75, SOFTMAX_ALGO_BLOCK, m.block_cols).find("declined") != 0);
  }
}

TEST_CASE("WARP and BLOCK hold every column of a row and little more", "[select]") {
  for (const TypePair &types : kTypePairs) {
    const std::int64_t pack = 16 / format_of(types.x).size_bytes;
    for (const std::int32_t algo : {SOFTMAX_ALGO_WARP, SOFTMAX_ALGO_BLOCK}) {
      int wrong = 0;
      for (std::int64_t n = 1; n <= 70000; n += n < 3000 ? 1 : 97) {
        for (const std::int64_t rows : {std::int64_t{1}, kManyRows}) {
          Selection selection;
          if (select_quietly(cuda_caps(90, 132, 2048, 60, 227, 228), algo,
                             make_problem(types, rows, n), &selection) != SelectOutcome::kChosen) {
            continue;
          }
          const Policy &p = selection.policy;
          // Few rows: a word a thread, and at least a warp.
          const bool is_few = p.few_lanes > 0;
          const std::int64_t held = pack * (is_few ? 1 : p.packs) * p.threads_per_row;
          const std::int64_t spare = held - n;
          // WARP: a power of two; BLOCK: whole warps.
          const std::int64_t least = is_few ? 32 * pack : pack;
          // 16-bit rows in windows: a word or two more, and a word a run.
          const bool is_window = pack == 8 && n % pack != 0;
          const std::int64_t runs = p.threads_per_row / 32;
          const std::int64_t more = !is_window ? 0 : pack * (algo == SOFTMAX_ALGO_WARP ? 4 : runs);
          const std::int64_t most_spare =
              more - 1 + (algo == SOFTMAX_ALGO_WARP ? std::max(n, least) : 32 * pack * p.packs);
          wrong += spare >= 0 && spare <= most_spare ? 0 : 1;
        }
      }
      INFO(types.name << " " << softmax::algo_name(algo));
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("few rows of TILE's whole words take a word a thread, in the order of many", "[select]") {
  const DeviceCaps caps = cuda_caps(90, 132, 2048, 60, 227, 228);
  for (const TypePair &types : kTypePairs) {
    const int size = format_of(types.x).size_bytes;
    int wrong = 0;
    for (std::int64_t n = 1; n <= 4096 / size; ++n) {
      const auto policy_for = [&](std::int64_t rows) {
        Selection selection;
        select_quietly(caps, SOFTMAX_ALGO_TILE, make_problem(types, rows, n), &selection);
        return selection.policy;
      };
      const Policy one = policy_for(1), few = policy_for(264), many = policy_for(265);
      wrong += many.algo == SOFTMAX_ALGO_TILE && many.few_lanes == 0 && one == few ? 0 : 1;
      if (!softmax::is_whole_words(n, size)) {
        wrong += one == many ? 0 : 1;
        continue;
      }
      wrong += few.algo == SOFTMAX_ALGO_TILE && few.few_lanes == many.threads_per_row &&
                       few.packs == many.packs && few.rows_per_block == 1 && few.stages == 0
                   ? 0
                   : 1;
      wrong += few.threads_per_row * 16 >= n * size &&
                       few.threads_per_row % (few.few_lanes * few.packs) == 0 &&
                       few.threads_per_row >= 4 * few.few_lanes &&
                       few.threads_per_row <= softmax::kFewMostWords
                   ? 0
                   : 1;
    }
    INFO(types.name);
    CHECK(wrong == 0);
  }
}

TEST_CASE("rows that fill WARP's lanes badly are TILE's, few and many, where there are bulk copies",
          "[select]") {
  for (const TypePair &types : kTypePairs) {
    const std::int64_t word = 16 / format_of(types.x).size_bytes;
    for (const std::int64_t words : {3, 5, 6, 7, 9, 11, 17, 22, 33, 44, 65, 80, 89}) {
      for (const std::int64_t rows : {1, 264, 265, 1000, 1 << 20}) {
        const auto problem = make_problem(types, rows, words * word);
        Selection selection;
        select_quietly(cuda_caps(90, 132, 2048, 60, 227, 228), SOFTMAX_ALGO_AUTO, problem,
                       &selection);
        INFO(types.name << ", " << words << " words, M = " << rows);
        CHECK(selection.policy.algo == SOFTMAX_ALGO_TILE);
        select_quietly(cuda_caps(89, 128, 1536, 72, 99, 100), SOFTMAX_ALGO_AUTO, problem,
                       &selection);
        CHECK(selection.policy.algo == SOFTMAX_ALGO_WARP);
      }
    }
  }
}

TEST_CASE("few rows of WARP and BLOCK take a word a thread, in the order of many", "[select]") {
  const DeviceCaps caps = cuda_caps(90, 132, 2048, 60, 227, 228);
  for (const TypePair &types : kTypePairs) {
    const std::int64_t pack = 16 / format_of(types.x).size_bytes;
    for (const std::int32_t algo : {SOFTMAX_ALGO_WARP, SOFTMAX_ALGO_BLOCK}) {
      int wrong = 0;
      for (std::int64_t n = 1; n <= 10000; ++n) {
        const auto policy_for = [&](std::int64_t rows) {
          Selection selection;
          select_quietly(caps, algo, make_problem(types, rows, n), &selection);
          return selection.policy;
        };
        const Policy one = policy_for(1), few = policy_for(264), many = policy_for(265);
        const std::int64_t words = (n + pack - 1) / pack;
        wrong += one == few && many.few_lanes == 0 ? 0 : 1;
        if (many.algo != algo) continue;  // too long
        const int lanes = algo == SOFTMAX_ALGO_WARP ? many.threads_per_row : 32;
        const int runs = algo == SOFTMAX_ALGO_WARP ? 1 : many.threads_per_row / 32;
        if (runs * std::max(32, lanes * many.packs) > softmax::kFewMostWords) {
          wrong += few == many ? 0 : 1;
          continue;
        }
        wrong += few.few_lanes == lanes && few.packs == many.packs ? 0 : 1;
        // Whole runs, whose slots all exist; each row a block of its own.
        wrong += few.threads_per_row >= words && few.threads_per_row <= softmax::kFewMostWords &&
                         few.threads_per_row % 32 == 0 &&
                         few.threads_per_row % (lanes * few.packs) == 0 && few.rows_per_block == 1
                     ? 0
                     : 1;
        // Four words a lane are read at a time, whether a lane has so many or not.
        wrong += few.threads_per_row >= 4 * lanes ? 0 : 1;
      }
      INFO(types.name << " " << softmax::algo_name(algo));
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("more tiles than a grid has blocks are none of TILE's, and WARP takes the rows",
          "[select]") {
  // The kernel has no loop over the grid. Such tensors are larger than any device's memory.
  const DeviceCaps caps = cuda_caps(90, 132, 2048, 60, 227, 228);
  for (const TypePair &types : kTypePairs) {
    Selection selection;
    const auto few = make_problem(types, std::int64_t{1} << 30, 1);
    CHECK(select_quietly(caps, SOFTMAX_ALGO_AUTO, few, &selection) == SelectOutcome::kChosen);
    CHECK(selection.policy.algo == SOFTMAX_ALGO_TILE);
    const auto many = make_problem(types, std::int64_t{1} << 43, 1);
    CHECK(select_quietly(caps, SOFTMAX_ALGO_TILE, many, &selection) == SelectOutcome::kDeclined);
    CHECK(select_quietly(caps, SOFTMAX_ALGO_AUTO, many, &selection) == SelectOutcome::kChosen);
    CHECK(selection.policy.algo == SOFTMAX_ALGO_WARP);
  }
}

TEST_CASE("launch policies keep within what a block can have", "[select]") {
  for (const NamedCaps &device : made_up_devices()) {
    if (!device.caps.is_cuda) continue;
    for (const TypePair &types : kTypePairs) {
      for (const softmax_algo_t algo : kEveryAlgorithm) {
        for (std::int64_t n = 1; n <= kLastColumn; n += n / 16 + 1) {
          Selection selection;
          if (select_quietly(device.caps, algo, make_problem(types, 1, n), &selection) !=
              SelectOutcome::kChosen) {
            continue;
          }
          const Policy &p = selection.policy;
          const bool fits = p.threads_per_row >= 1 && p.rows_per_block >= 1 &&
                            p.threads_per_row * p.rows_per_block <= 1024 && p.smem_bytes >= 0 &&
                            p.smem_bytes <= device.caps.smem_per_block_bytes;
          if (!fits) {
            INFO(device.name << " " << types.name << " N = " << n << ": " << policy_text(p) << ", "
                             << p.smem_bytes << " bytes of shared memory");
            CHECK(false);
          }
        }
      }
    }
  }
  SUCCEED();
}

TEST_CASE("the kernel's name says operation, algorithm and types", "[select]") {
  const DeviceCaps cpu, cuda = cuda_caps(90, 132, 2048, 60, 227, 228);
  Policy policy;
  policy.algo = SOFTMAX_ALGO_WARP_ONLINE;
  char name[64];
  softmax::kernel_name(policy, make_problem(kTypePairs[4], 1, 1, true), cuda, name, sizeof name);
  CHECK(std::string(name) == "logsoftmax_warp_online_f16_f32");
  softmax::kernel_name(policy, make_problem(kTypePairs[0], 1, 1), cuda, name, sizeof name);
  CHECK(std::string(name) == "softmax_warp_online_f32");
  policy.algo = SOFTMAX_ALGO_NAIVE;
  softmax::kernel_name(policy, make_problem(kTypePairs[3], 1, 1), cpu, name, sizeof name);
  CHECK(std::string(name) == "cpu_softmax_naive_f64");
}

}  // namespace softmax_test
