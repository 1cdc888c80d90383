// Reads public_reports.json.
#include "entry.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <set>
#include <stdexcept>

namespace reports {

bool Entry::needs_word(const std::string &word) const {
  return std::find(needs.begin(), needs.end(), word) != needs.end();
}

double Entry::need_of(const std::string &name) const {
  for (const std::string &need : needs) {
    if (need.compare(0, name.size() + 1, name + ":") == 0) {
      return std::atof(need.c_str() + name.size() + 1);
    }
  }
  return 0;
}

double number_of(const nlohmann::json &value) {
  if (value.is_number()) return value.get<double>();
  const std::string word = value.get<std::string>();
  if (word == "inf") return std::numeric_limits<double>::infinity();
  if (word == "-inf") return -std::numeric_limits<double>::infinity();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  throw std::runtime_error("not a number: \"" + word + "\"");
}

std::vector<Entry> load_entries(const std::string &path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<Entry> entries;
  std::set<std::string> ids;
  for (const nlohmann::json &item : nlohmann::json::parse(file)) {
    Entry entry;
    entry.id = item.at("id");
    entry.kind = item.at("kind");
    entry.op = item.at("op");
    if (item.contains("dtype") && item["dtype"].is_string()) entry.dtype = item["dtype"];
    if (item.contains("shape") && item["shape"].is_array()) {
      entry.shape = item["shape"].get<std::vector<std::int64_t>>();
    }
    if (item.contains("gen") && item["gen"].is_object()) entry.gen = item["gen"];
    if (item.contains("check") && item["check"].is_object()) entry.check = item["check"];
    entry.needs = item.value("needs", std::vector<std::string>{});
    if (!ids.insert(entry.id).second) throw std::runtime_error(path + " has twice " + entry.id);
    entries.push_back(entry);
  }
  return entries;
}

}  // namespace reports
