// See progress.h.
#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "text.h"

namespace tool {

Progress::Progress(std::int64_t total_bytes, bool always,
                   std::chrono::steady_clock::time_point began)
    : total_(total_bytes),
      always_(always),
      is_terminal_(isatty(STDERR_FILENO) == 1),
      began_(began) {}

// An error's line must not be appended to a half-drawn one.
Progress::~Progress() {
  if (is_shown_ && is_terminal_) std::fputs("\r\033[K", stderr);
}

double Progress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

void Progress::advance(std::int64_t bytes) {
  done_ += bytes;
  if (!always_ && !is_terminal_) return;
  const double now = seconds();
  if (now < next_show_) return;
  next_show_ = now + (is_terminal_ ? 0.2 : 1.0);
  show(now, false);
}

void Progress::finish() {
  if (always_ || is_shown_) show(seconds(), true);
  is_shown_ = false;
}

void Progress::show(double now, bool last) {
  const double rate = now > 0 ? static_cast<double>(done_) / now : 0;
  const int percent =
      total_ > 0
          ? static_cast<int>(100.0 * static_cast<double>(done_) / static_cast<double>(total_))
          : 100;
  const std::string line =
      fmt::format("{:3}% of {}, {:.1f} s, {}/s", percent, byte_text(static_cast<double>(total_)),
                  now, byte_text(rate));
  if (is_terminal_) {
    fmt::print(stderr, "\r{}\033[K{}", line, last ? "\n" : "");
  } else {
    fmt::print(stderr, "{}\n", line);
  }
  std::fflush(stderr);
  is_shown_ = true;
}

}  // namespace tool
