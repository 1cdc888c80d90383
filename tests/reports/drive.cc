// Drives entries. See drive.h.
#include "drive.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "matrix.h"

namespace reports {
namespace {

std::string joined(const std::vector<std::string> &words, const char *separator) {
  std::string text;
  for (const std::string &word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

template <typename Row>
const Row *find_row(const std::vector<Row> &table, const std::string &id) {
  for (const Row &row : table) {
    if (id == row.id) return &row;
  }
  return nullptr;
}

// Whether bindings/python/tests/FILE has "def FUNCTION(".
bool has_function(const std::string &file, const std::string &function) {
  std::ifstream text(std::string(REPORTS_SOURCE) + "/bindings/python/tests/" + file);
  std::string line;
  while (std::getline(text, line)) {
    if (line.find("def " + function + "(") != std::string::npos) return true;
  }
  return false;
}

// "" where ctest knows the test and its file has the function that is named; else what is missing.
std::string missing(const std::string &name, const std::set<std::string> &tests) {
  const std::size_t slash = name.find('/');
  const std::string test = name.substr(0, slash);
  if (tests.count(test) == 0) return "ctest knows no test " + test;
  if (slash == std::string::npos) return "";
  const std::size_t last = name.rfind('/');
  const std::string file = name.substr(slash + 1, last - slash - 1);
  return has_function(file, name.substr(last + 1)) ? "" : "there is no " + name;
}

Result driven_elsewhere(Result result, const Elsewhere &elsewhere, const Context &context) {
  result.outcome = Outcome::kElsewhere;
  result.why = joined(elsewhere.tests, ", ");
  if (context.tests == nullptr) return result;
  for (const std::string &test : elsewhere.tests) {
    const std::string problem = missing(test, *context.tests);
    if (problem.empty()) continue;
    result.outcome = Outcome::kFailed;
    result.messages.push_back(problem);
  }
  return result;
}

// What was run of an entry on the device.
struct Run {
  Verdict verdict;
  bool anything = false;
  bool too_large = false;
  std::set<std::string> handled;
};

void run_matrix(const Entry &entry, const Context &context, Run *run) {
  for (const Case &c : cases_of(entry, &run->handled)) {
    if (c.input.count() > context.device->limit_for(entry)) {
      run->too_large = true;
      run->verdict.note(c.label + " is too large for this device's run");
      continue;
    }
    run_case(context.device, c, &run->verdict);
    run->anything = true;
  }
}

void run_everything(const Entry &entry, const Context &context, Run *run) {
  bool has_special = false;
  bool matrix_too = entry.op == "softmax" || entry.op == "log_softmax";
  for (const Special &special : all_specials()) {
    if (entry.id != special.id) continue;
    has_special = true;
    matrix_too = special.matrix_too;
    run->handled.insert(special.handled.begin(), special.handled.end());
    if (!special.runs_on(*context.device)) continue;
    special.run(context.device, entry, &run->verdict);
    run->verdict.set_context("");
    run->anything = true;
  }
  if (matrix_too) {
    run_matrix(entry, context, run);
  } else if (!has_special && entry.op != "backward") {
    run->verdict.fail("nothing drives this entry");
    run->anything = true;
  }
  if (entry.op == "backward") {
    expect_backward(context.device, entry, &run->verdict);
    run->anything = true;
    return;
  }
  for (const Aside &aside : kAsides) {
    if (entry.id != aside.id) continue;
    run->handled.insert(aside.key);
    run->verdict.note(aside.note);
  }
  for (const auto &[key, value] : entry.check.items()) {
    if (!is_value_key(key) && run->handled.count(key) == 0) {
      run->verdict.fail("nothing answers the check's " + key);
    }
  }
}

std::string compared(const Verdict &verdict) {
  return std::to_string(verdict.comparisons()) + " comparisons";
}

void judge(const Entry &entry, const Context &context, const Run &run, Result *result) {
  const Verdict &verdict = run.verdict;
  const bool on_cpu = !context.device->is_cuda();
  result->messages = verdict.messages();
  if (verdict.failures() > 0) {
    result->outcome = Outcome::kFailed;
    result->why = std::to_string(verdict.failures()) + " of " + compared(verdict) + " failed";
    return;
  }
  const bool left_to_gpu = on_cpu && entry.needs_word("gpu") && !entry.needs_word("cpu");
  const bool ran = run.anything && (verdict.comparisons() > 0 || !left_to_gpu);
  if (ran && verdict.comparisons() == 0) {
    result->outcome = Outcome::kFailed;
    result->why = "it compared nothing";
    return;
  }
  if (left_to_gpu) {
    result->outcome = Outcome::kSkipped;
    result->why = "needs a GPU: reports.gpu";
    if (ran) result->why += " (right on the CPU too, " + compared(verdict) + ")";
  } else if (!ran) {
    result->outcome = on_cpu ? Outcome::kSkipped : Outcome::kElsewhere;
    result->why = on_cpu ? "needs a GPU: reports.gpu" : "reports.cpu";
  } else {
    result->outcome = Outcome::kPassed;
    result->why = compared(verdict);
  }
  for (const std::string &note : verdict.notes()) result->why += "; " + note;
}

}  // namespace

std::vector<Special> all_specials() {
  std::vector<Special> all;
  for (const auto *table : {&kCallSpecials, &kRepeatSpecials, &kProcessSpecials, &kCudaSpecials}) {
    all.insert(all.end(), table->begin(), table->end());
  }
  return all;
}

const char *outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed: return "passed";
    case Outcome::kFailed: return "FAILED";
    case Outcome::kSkipped: return "skipped";
    case Outcome::kElsewhere: return "elsewhere";
    case Outcome::kLeftOut: return "left out";
  }
  return "?";
}

Result drive(const Entry &entry, const Context &context) {
  Result result;
  result.id = entry.id;
  result.kind = entry.kind;
  if (const Later *later = find_row(kLater, entry.id)) {
    result.outcome = Outcome::kLeftOut;
    result.why = later->why;
    return result;
  }
  if (const Elsewhere *elsewhere = find_row(kElsewhere, entry.id)) {
    return driven_elsewhere(result, *elsewhere, context);
  }
  Run run;
  try {
    run_everything(entry, context, &run);
    judge(entry, context, run, &result);
  } catch (const Unavailable &reason) {
    result.outcome = Outcome::kSkipped;
    result.why = reason.what();
  } catch (const std::exception &error) {
    result.outcome = Outcome::kFailed;
    result.why = error.what();
  }
  return result;
}

}  // namespace reports
