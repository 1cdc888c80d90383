// What ends a test program whose case does not end. A kernel that waits for ever would else end the
// program at somebody else's limit, hours later or without a name.
#pragma once

#include <functional>
#include <string>

namespace softmax_test {

// Calls `late(name, what is being done)` on a thread of its own and ends the program with exit code
// 1, without destructors, which may wait for the device, unless watch or unwatch is called again
// within so many seconds. One case is watched at a time.
using Late = std::function<void(const std::string &name, const std::string &doing)>;
void watch(const std::string &name, double seconds, const Late &late);
void unwatch();

// What the main thread is doing while this exists: `tell` is called if it comes to that.
class Doing {
 public:
  explicit Doing(std::function<std::string()> tell);
  ~Doing();
  Doing(const Doing &) = delete;
  Doing &operator=(const Doing &) = delete;

 private:
  std::function<std::string()> tell_;
};

}  // namespace softmax_test
