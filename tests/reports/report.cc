// The table, the summary and the counts. See report.h.
#include "report.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace reports {
namespace {

struct Counts {
  int of[kOutcomes] = {};
  int &operator[](Outcome outcome) { return of[static_cast<int>(outcome)]; }
  int sum() const {
    int total = 0;
    for (const int count : of) total += count;
    return total;
  }
};

void print_table(const std::vector<Result> &results) {
  std::size_t id_width = 0;
  std::size_t kind_width = 0;
  for (const Result &r : results) {
    id_width = std::max(id_width, r.id.size());
    kind_width = std::max(kind_width, r.kind.size());
  }
  for (const Result &r : results) {
    std::printf("%-9s  %-*s  %-*s  %s\n", outcome_name(r.outcome), static_cast<int>(kind_width),
                r.kind.c_str(), static_cast<int>(id_width), r.id.c_str(), r.why.c_str());
    for (const std::string &message : r.messages) std::printf("           - %s\n", message.c_str());
  }
}

void write_summary(const std::string &path, Counts counts, const std::vector<Result> &results) {
  nlohmann::json skipped = nlohmann::json::array();
  nlohmann::json failed = nlohmann::json::array();
  for (const Result &r : results) {
    if (r.outcome == Outcome::kSkipped) skipped.push_back(r.id + ": " + r.why);
    if (r.outcome == Outcome::kFailed) failed.push_back(r.id);
  }
  const nlohmann::json summary = {{"passed", counts[Outcome::kPassed]},
                                  {"failed", counts[Outcome::kFailed]},
                                  {"skipped", counts[Outcome::kSkipped]},
                                  {"skipped_names", skipped},
                                  {"failed_names", failed},
                                  {"elsewhere", counts[Outcome::kElsewhere]},
                                  {"left_out", counts[Outcome::kLeftOut]},
                                  {"entries", counts.sum()}};
  std::ofstream file(path);
  file << summary.dump(1) << "\n";
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

// Every row of a table must speak of an entry that exists, or it guards nothing.
template <typename Row>
void expect_known(const std::vector<Row> &table, const std::set<std::string> &ids, int *problems) {
  for (const Row &row : table) {
    if (ids.count(row.id) != 0) continue;
    std::printf("a table speaks of %s, which the file does not have\n", row.id);
    ++*problems;
  }
}

}  // namespace

int run_reports(const Options &options, const Context &context) {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Entry> entries = load_entries(options.input);
  int problems = 0;
  std::set<std::string> ids;
  for (const Entry &entry : entries) ids.insert(entry.id);
  expect_known(kElsewhere, ids, &problems);
  expect_known(kLater, ids, &problems);
  expect_known(kAsides, ids, &problems);
  expect_known(all_specials(), ids, &problems);

  std::vector<Result> results;
  Counts counts;
  for (const Entry &entry : entries) {
    const bool asked_for = options.only.empty() ||
                           entry.id.find(options.only) != std::string::npos ||
                           entry.kind.find(options.only) != std::string::npos;
    if (!asked_for) continue;
    const auto entry_begin = std::chrono::steady_clock::now();
    results.push_back(drive(entry, context));
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - entry_begin).count();
    if (seconds >= 0.5) results.back().why += "; " + std::to_string(seconds).substr(0, 4) + " s";
    ++counts[results.back().outcome];
  }

  if (options.only.empty() && (counts.sum() != kEntries || entries.size() != ids.size())) {
    std::printf("%d entries ended somehow, and there should be %d\n", counts.sum(), kEntries);
    ++problems;
  }
  problems += counts[Outcome::kFailed];
  if (options.verbose || problems > 0) print_table(results);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf(
      "public reports on %s: %d passed, %d failed, %d skipped, %d driven by other tests, %d left "
      "out; %d entries; %.1f s\n",
      context.device->name(), counts[Outcome::kPassed], counts[Outcome::kFailed],
      counts[Outcome::kSkipped], counts[Outcome::kElsewhere], counts[Outcome::kLeftOut],
      counts.sum(), seconds);
  if (!options.summary.empty()) write_summary(options.summary, counts, results);
  if (!options.only.empty() && results.empty()) {
    std::printf("no entry has \"%s\" in its id or kind\n", options.only.c_str());
    return 1;
  }
  return problems == 0 ? 0 : 1;
}

int report_skipped(const Options &options, const std::string &why) {
  std::vector<Result> results;
  Counts counts;
  for (const Entry &entry : load_entries(options.input)) {
    results.push_back({entry.id, entry.kind, Outcome::kSkipped, why, {}});
    ++counts[Outcome::kSkipped];
  }
  std::printf("public reports: skipped, %d of %d entries: %s\n", counts.sum(), kEntries,
              why.c_str());
  if (!options.summary.empty()) write_summary(options.summary, counts, results);
  return 77;
}

std::set<std::string> registered_tests(const std::string &ctest, const std::string &build_folder) {
  const std::string command = "'" + ctest + "' --test-dir '" + build_folder + "' -N";
  std::FILE *pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  std::set<std::string> tests;
  char line[1024];
  while (std::fgets(line, sizeof line, pipe) != nullptr) {
    // "  Test  #12: name"
    const std::string text = line;
    const std::size_t hash = text.find('#');
    const std::size_t colon = text.find(": ", hash == std::string::npos ? 0 : hash);
    if (text.find("Test") == std::string::npos || hash == std::string::npos ||
        colon == std::string::npos) {
      continue;
    }
    std::string name = text.substr(colon + 2);
    while (!name.empty() && (name.back() == '\n' || name.back() == ' ')) name.pop_back();
    tests.insert(name);
  }
  if (pclose(pipe) != 0 || tests.empty()) throw std::runtime_error("no tests from " + command);
  return tests;
}

}  // namespace reports
