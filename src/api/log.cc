// The process-wide log. Set rarely, read on every call: the level is one relaxed atomic load.
#include "api/log.h"

#include <strings.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "api/status.h"
#include "softmax.h"

namespace softmax {
namespace {

struct Sink {
  softmax_log_fn fn = nullptr;
  void *user = nullptr;
};

std::mutex sink_mutex;
Sink sink;

void write_to_stderr(std::int32_t level, const char *message, void *) {
  static const char *const names[] = {"off", "error", "info", "debug"};
  std::fprintf(stderr, "libsoftmax %s: %s\n", names[level], message);
}

std::int32_t level_from_environment() {
  const char *value = std::getenv("SOFTMAX_LOG");
  if (value == nullptr) return SOFTMAX_LOG_OFF;
  if (strcasecmp(value, "error") == 0 || strcmp(value, "1") == 0) return SOFTMAX_LOG_ERROR;
  if (strcasecmp(value, "info") == 0 || strcmp(value, "2") == 0) return SOFTMAX_LOG_INFO;
  if (strcasecmp(value, "debug") == 0 || strcmp(value, "3") == 0) return SOFTMAX_LOG_DEBUG;
  return SOFTMAX_LOG_OFF;
}

std::atomic<std::int32_t> &active_level() {
  static std::atomic<std::int32_t> level([] {
    const std::int32_t from_environment = level_from_environment();
    if (from_environment != SOFTMAX_LOG_OFF) sink.fn = write_to_stderr;
    return from_environment;
  }());
  return level;
}

}  // namespace

bool log_enabled(std::int32_t level) {
  return level <= active_level().load(std::memory_order_relaxed);
}

void log_line(std::int32_t level, const char *format, ...) {
  if (!log_enabled(level)) return;
  char message[640];
  va_list args;
  va_start(args, format);
  std::vsnprintf(message, sizeof message, format, args);
  va_end(args);
  // The callback runs outside the lock: it may take its time, and another thread's with it.
  Sink copy;
  {
    const std::lock_guard<std::mutex> lock(sink_mutex);
    copy = sink;
  }
  if (copy.fn != nullptr) copy.fn(level, message, copy.user);
}

}  // namespace softmax

extern "C" softmax_status_t softmax_set_log(softmax_log_fn fn, void *user, int32_t level) {
  using namespace softmax;
  if (level < SOFTMAX_LOG_OFF || level > SOFTMAX_LOG_DEBUG) {
    return fail(SOFTMAX_STATUS_BAD_ENUM, "log level %d does not exist: 0 (off) to 3 (debug)",
                static_cast<int>(level));
  }
  auto &active = active_level();  // reads the environment first, so that it cannot undo this call
  const std::lock_guard<std::mutex> lock(sink_mutex);
  sink = {fn, user};
  active.store(fn == nullptr ? static_cast<int32_t>(SOFTMAX_LOG_OFF) : level,
               std::memory_order_relaxed);
  return SOFTMAX_SUCCESS;
}
