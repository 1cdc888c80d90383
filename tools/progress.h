// A line about how far a long run is, on the standard error output.
#pragma once

#include <chrono>
#include <cstdint>

namespace tool {

class Progress {
 public:
  // `always` shows it even where nobody watches a terminal, and for short runs at their end.
  Progress(std::int64_t total_bytes, bool always, std::chrono::steady_clock::time_point began);
  ~Progress();
  void advance(std::int64_t bytes);
  void finish();  // the run went well

 private:
  double seconds() const;
  void show(double now, bool last);

  const std::int64_t total_;
  const bool always_;
  const bool is_terminal_;
  const std::chrono::steady_clock::time_point began_;
  std::int64_t done_ = 0;
  double next_show_ = 1.0;  // seconds
  bool is_shown_ = false;
};

}  // namespace tool
