// One entry of public_reports.json, as it stands in the file.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace reports {

constexpr int kEntries = 121;  // what the file holds: more or fewer is an error

struct Entry {
  std::string id;
  std::string kind;
  std::string op;                   // softmax, log_softmax, backward, build, ffi
  std::string dtype;                // empty where the entry has none
  std::vector<std::int64_t> shape;  // empty where it is a sweep in words, or missing
  nlohmann::json gen = nlohmann::json::object();
  nlohmann::json check = nlohmann::json::object();
  std::vector<std::string> needs;

  bool needs_word(const std::string &word) const;
  // x of "gpu_gb:x", "ram_gb:x", "gpus:x"; 0 without it.
  double need_of(const std::string &name) const;
};

// Throws std::runtime_error where the file cannot be read, is malformed or repeats an id.
std::vector<Entry> load_entries(const std::string &path);

// A JSON number, or one of "inf", "-inf", "nan".
double number_of(const nlohmann::json &value);

}  // namespace reports
