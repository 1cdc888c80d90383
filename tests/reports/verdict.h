// What came of driving one entry on one device: how much was compared, and what was wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace reports {

class Verdict {
 public:
  // Everything that is found wrong is said with the context that it was found in.
  void set_context(const std::string &context) { context_ = context; }

  void add_comparisons(std::int64_t count) { comparisons_ += count; }

  void fail(const std::string &what) {
    ++failures_;
    if (messages_.size() < kMessages) {
      messages_.push_back(context_.empty() ? what : context_ + ": " + what);
    }
  }
  bool expect(bool holds, const std::string &claim) {
    ++comparisons_;
    if (!holds) fail(claim);
    return holds;
  }
  bool expect_status(std::int32_t status, std::int32_t expected, const std::string &call) {
    return expect(status == expected, call + " returned " + std::to_string(status) + ", not " +
                                          std::to_string(expected));
  }

  // Something that the entry asks for and that was not done here, and why.
  void note(const std::string &text) {
    for (const std::string &known : notes_) {
      if (known == text) return;
    }
    notes_.push_back(text);
  }

  std::int64_t comparisons() const { return comparisons_; }
  std::int64_t failures() const { return failures_; }
  const std::vector<std::string> &messages() const { return messages_; }
  const std::vector<std::string> &notes() const { return notes_; }

 private:
  static constexpr std::size_t kMessages = 6;
  std::int64_t comparisons_ = 0;
  std::int64_t failures_ = 0;
  std::string context_;
  std::vector<std::string> messages_;
  std::vector<std::string> notes_;
};

}  // namespace reports
