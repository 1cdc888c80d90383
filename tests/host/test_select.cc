// The selector: a golden table over made-up devices, and what holds for every N.
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
#include "host/api.h"
#include "select/select.h"
#include "select/tuning.h"
#include "support/catch.h"
#include "support/element.h"

namespace softmax_test {
namespace {

using softmax::DeclineSink;
using softmax::DeviceCaps;
using softmax::Policy;
using softmax::Selection;
using softmax::SelectOutcome;

struct NamedCaps {
  const char *name;
  DeviceCaps caps;
};

DeviceCaps cuda_caps(int compute_capability, int sm_count, int threads_per_sm, int l2_mib,
                     int smem_kib) {
  DeviceCaps caps;
  caps.is_cuda = true;
  caps.ordinal = 0;
  caps.compute_capability = compute_capability;
  caps.sm_count = sm_count;
  caps.max_threads_per_sm = threads_per_sm;
  caps.l2_bytes = std::int64_t{l2_mib} << 20;
  caps.smem_per_block_bytes = std::int64_t{smem_kib} << 10;
  return caps;
}

std::vector<NamedCaps> made_up_devices() {
  return {{"cpu", DeviceCaps{}},
          {"sm_75", cuda_caps(75, 40, 1024, 4, 64)},
          {"sm_90", cuda_caps(90, 132, 2048, 60, 227)},
          {"sm_120", cuda_caps(120, 84, 1536, 64, 99)}};
}

softmax::Problem make_problem(const TypePair &types, std::int64_t rows, std::int64_t cols,
                              bool is_log = false) {
  softmax::Problem problem;
  problem.op = is_log ? SOFTMAX_OP_LOGSOFTMAX : SOFTMAX_OP_SOFTMAX;
  problem.x_dtype = types.x;
  problem.y_dtype = types.y;
  problem.rows = rows;
  problem.cols = cols;
  return problem;
}

SelectOutcome select_quietly(const DeviceCaps &caps, std::int32_t algo,
                             const softmax::Problem &problem, Selection *selection) {
  return softmax::select(caps, algo, problem, DeclineSink{nullptr, nullptr}, selection);
}

std::string policy_text(const Policy &p) {
  char text[160];
  std::snprintf(text, sizeof text,
                "%s threads/row %d rows/block %d vec %d packs %d smem %" PRId64
                " cluster %d stages %d "
                "workspace %" PRId64,
                softmax::algo_name(p.algo), p.threads_per_row, p.rows_per_block, p.vec_bytes,
                p.packs, p.smem_bytes, p.cluster, p.stages, p.workspace_bytes);
  return text;
}

// What one line of the table says of one selection.
std::string outcome_text(const DeviceCaps &caps, std::int32_t algo,
                         const softmax::Problem &problem) {
  Selection selection;
  switch (select_quietly(caps, algo, problem, &selection)) {
    case SelectOutcome::kChosen: return policy_text(selection.policy) + ": " + selection.reason;
    case SelectOutcome::kDeclined: return std::string("declined: ") + selection.reason;
    case SelectOutcome::kNoSuchAlgo: return "no such algorithm";
  }
  return "?";
}

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
void append_ranges(const NamedCaps &device, std::int32_t algo, const TypePair &types,
                   const RowLengths &lengths, std::vector<std::string> *lines) {
  const auto text_at = [&](std::int64_t i) {
    return outcome_text(device.caps, algo, make_problem(types, 1, lengths.at(i)));
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
    lines->push_back(std::string(device.name) + " " + softmax::algo_name(algo) + " " + types.name +
                     " " + lengths.name + " from N = " + std::to_string(lengths.at(changed)) +
                     ": " + text);
  }
}

std::vector<std::string> current_table() {
  std::vector<std::string> lines;
  for (const NamedCaps &device : made_up_devices()) {
    for (const TypePair &types : kTypePairs) {
      for (const softmax_algo_t algo : kEveryAlgorithm) {
        for (const RowLengths &lengths : kRowLengths) {
          append_ranges(device, algo, types, lengths, &lines);
        }
      }
    }
  }
  return lines;
}

// Everything that declines before AUTO's choice, in order.
std::vector<std::string> declines(const DeviceCaps &caps, const softmax::Problem &problem) {
  std::vector<std::string> names;
  const DeclineSink sink{[](void *user, const char *candidate, const char *reason) {
                           auto *list = static_cast<std::vector<std::string> *>(user);
                           list->push_back(std::string(candidate) + ": " + reason);
                         },
                         &names};
  Selection selection;
  softmax::select(caps, SOFTMAX_ALGO_AUTO, problem, sink, &selection);
  return names;
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

TEST_CASE("AUTO has an answer for every N, type and device", "[select]") {
  for (const NamedCaps &device : made_up_devices()) {
    for (const TypePair &types : kTypePairs) {
      int unanswered = 0;
      for (std::int64_t n = 1; n <= kLastColumn; n += n < 4200 ? 1 : n / 64) {
        Selection selection;
        const bool chosen =
            select_quietly(device.caps, SOFTMAX_ALGO_AUTO, make_problem(types, 1, n), &selection) ==
            SelectOutcome::kChosen;
        const std::int32_t algo = selection.policy.algo;
        unanswered += chosen && algo != SOFTMAX_ALGO_AUTO && algo != SOFTMAX_ALGO_REFERENCE &&
                              softmax::algo_name(algo) != nullptr && selection.reason[0] != '\0'
                          ? 0
                          : 1;
      }
      INFO(device.name << " " << types.name);
      CHECK(unanswered == 0);
      for (const std::int64_t n : {std::int64_t{0}, INT64_MAX / 16}) {
        Selection selection;
        CHECK(select_quietly(device.caps, SOFTMAX_ALGO_AUTO, make_problem(types, 1, n),
                             &selection) == SelectOutcome::kChosen);
      }
    }
  }
}

TEST_CASE("no choice depends on M", "[select]") {
  for (const NamedCaps &device : made_up_devices()) {
    for (const TypePair &types : kTypePairs) {
      for (const softmax_algo_t algo : kEveryAlgorithm) {
        int different = 0;
        for (std::int64_t n = 1; n <= 300000; n += n / 8 + 1) {
          const std::string one = outcome_text(device.caps, algo, make_problem(types, 1, n));
          for (const std::int64_t rows : {2, 3, 7, 128, 65536, 1 << 30}) {
            different +=
                outcome_text(device.caps, algo, make_problem(types, rows, n)) == one ? 0 : 1;
          }
        }
        INFO(device.name << " " << types.name << " " << softmax::algo_name(algo));
        CHECK(different == 0);
      }
    }
  }
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
        const std::string reason = selection.reason;
        CHECK((reason == "not in this release" || reason.find("no CPU kernel") == 0));
      }
    }
    CHECK(chosen == (device.caps.is_cuda ? 9 : 4));
  }
  Selection selection;
  for (const std::int32_t none : {7, 9, 16, -1, 999, 1001}) {
    CHECK(select_quietly(DeviceCaps{}, none, make_problem(kTypePairs[0], 1, 10), &selection) ==
          SelectOutcome::kNoSuchAlgo);
  }
}

TEST_CASE("every candidate before AUTO's choice declines in order with a reason", "[select]") {
  const char *const order[] = {"column", "warp",        "block",    "tile",   "cluster",
                               "grid",   "warp_online", "online",   "vector", "shuffle",
                               "shared", "naive",       "reference"};
  for (const NamedCaps &device : made_up_devices()) {
    for (const std::int64_t n : {1, 100, 1024, 1025, 50257, 1 << 20}) {
      const softmax::Problem problem = make_problem(kTypePairs[0], 3, n);
      const std::vector<std::string> lines = declines(device.caps, problem);
      Selection selection;
      REQUIRE(select_quietly(device.caps, SOFTMAX_ALGO_AUTO, problem, &selection) ==
              SelectOutcome::kChosen);
      INFO(device.name << ", N = " << n);
      std::size_t place = 0;
      for (const std::string &line : lines) {
        const std::size_t colon = line.find(": ");
        REQUIRE(colon != std::string::npos);
        CHECK(line.size() > colon + 10);  // there is a sentence
        REQUIRE(place < sizeof order / sizeof order[0]);
        CHECK(line.substr(0, colon) == order[place++]);
      }
      // The next in order is the choice.
      REQUIRE(place < sizeof order / sizeof order[0]);
      CHECK(std::string(softmax::algo_name(selection.policy.algo)) == order[place]);
    }
  }
}

TEST_CASE("rows that do not fit are declined, and all that fit are taken", "[select]") {
  // What 32 lanes hold in eight 16-byte words each; and a block, in the types' own kernels.
  const struct {
    int pair;
    std::int64_t warp_cols, block_cols;
  } most[] = {{0, 1024, 32768}, {1, 2048, 65536}, {2, 2048, 65536},
              {3, 512, 16384},  {4, 2048, 32768}, {5, 2048, 32768}};
  const DeviceCaps sm_90 = cuda_caps(90, 132, 2048, 60, 227);
  const DeviceCaps sm_75 = cuda_caps(75, 40, 1024, 4, 64);
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
        Selection selection;
        if (select_quietly(cuda_caps(90, 132, 2048, 60, 227), algo, make_problem(types, 1, n),
                           &selection) != SelectOutcome::kChosen) {
          break;
        }
        const Policy &p = selection.policy;
        const std::int64_t held = pack * p.packs * p.threads_per_row;
        const std::int64_t spare = held - n;
        // WARP: a power of two; BLOCK: whole warps.
        const std::int64_t most_spare =
            algo == SOFTMAX_ALGO_WARP ? std::max(n, pack) - 1 : 32 * pack * p.packs - 1;
        wrong += spare >= 0 && spare <= most_spare ? 0 : 1;
      }
      INFO(types.name << " " << softmax::algo_name(algo));
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("tuning tables rise and end without a limit", "[select]") {
  for (const NamedCaps &device : made_up_devices()) {
    for (const TypePair &types : kTypePairs) {
      for (const RowLengths &lengths : kRowLengths) {
        const softmax::TuningTable table =
            softmax::tuning_table(device.caps, types.x, lengths.at(1));
        REQUIRE(table.count > 0);
        std::int64_t previous = 0;
        for (int i = 0; i < table.count; ++i) {
          CHECK(table.rows[i].max_cols > previous);
          previous = table.rows[i].max_cols;
        }
        CHECK(previous == softmax::kNoLimit);
      }
    }
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
            INFO(device.name << " " << types.name << " N = " << n << ": " << policy_text(p));
            CHECK(false);
          }
        }
      }
    }
  }
  SUCCEED();
}

TEST_CASE("the kernel's name says operation, algorithm and types", "[select]") {
  const DeviceCaps cpu, cuda = cuda_caps(90, 132, 2048, 60, 227);
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
