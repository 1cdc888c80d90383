// See watchdog.h.
#include "support/watchdog.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

namespace softmax_test {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<const std::function<std::string()> *> doing{nullptr};

class Watchdog {
 public:
  void watch(const std::string &name, double seconds, const Late &late) {
    const std::lock_guard<std::mutex> lock(mutex_);
    name_ = name;
    late_ = late;
    end_ = Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    is_watching_ = true;
    if (!has_thread_) std::thread([this] { run(); }).detach();
    has_thread_ = true;
    changed_.notify_all();
  }
  void unwatch() {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_watching_ = false;
  }

 private:
  void run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      if (!is_watching_) {
        changed_.wait(lock);
      } else if (Clock::now() < end_) {
        changed_.wait_until(lock, end_);
      } else {
        // The lock is kept: the case's own end comes too late from now on.
        const auto *tell = doing.load();
        late_(name_, tell == nullptr ? "" : (*tell)());
        std::_Exit(1);
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string name_;
  Late late_;
  Clock::time_point end_;
  bool is_watching_ = false;
  bool has_thread_ = false;
};

// Lives to the end of the process, as its thread does.
Watchdog &watchdog() {
  static Watchdog &the_watchdog = *new Watchdog;
  return the_watchdog;
}

}  // namespace

void watch(const std::string &name, double seconds, const Late &late) {
  watchdog().watch(name, seconds, late);
}

void unwatch() { watchdog().unwatch(); }

Doing::Doing(std::function<std::string()> tell) : tell_(std::move(tell)) { doing = &tell_; }
Doing::~Doing() { doing = nullptr; }

}  // namespace softmax_test
