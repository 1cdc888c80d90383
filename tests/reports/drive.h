// Drives one entry on one device and says how it ended.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "device.h"
#include "entry.h"
#include "special.h"

namespace reports {

enum class Outcome {
  kPassed,     // driven here, on this device, and right
  kFailed,     // driven here and wrong, or driven by nothing
  kSkipped,    // this machine lacks what the entry needs
  kElsewhere,  // another test drives it: that test is named, and is registered
  kLeftOut,    // left for later, with the reason
};
constexpr int kOutcomes = 5;
const char *outcome_name(Outcome outcome);

struct Result {
  std::string id;
  std::string kind;
  Outcome outcome = Outcome::kFailed;
  std::string why;
  std::vector<std::string> messages;  // what failed
};

struct Context {
  Device *device = nullptr;
  // The tests that ctest knows, or null where that cannot be asked (a binary that was carried to
  // another machine).
  const std::set<std::string> *tests = nullptr;
};

Result drive(const Entry &entry, const Context &context);

// ---- tables.cc ----

// An entry that other tests drive: their names as ctest has them.
struct Elsewhere {
  const char *id;
  std::vector<std::string> tests;
};
extern const std::vector<Elsewhere> kElsewhere;

// An entry that nothing drives yet, and why.
struct Later {
  const char *id;
  const char *why;
};
extern const std::vector<Later> kLater;

// A key of an entry's check that is answered outside the reports.
struct Aside {
  const char *id;
  const char *key;
  const char *note;
};
extern const std::vector<Aside> kAsides;

}  // namespace reports
