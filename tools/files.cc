// See files.h.
#include "files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "error.h"
#include "text.h"

namespace tool {
namespace {

// What the signal handler removes. Written before the handler can see it, with signals blocked.
char doomed_path[PATH_MAX];

constexpr int kFatalSignals[] = {SIGHUP, SIGINT, SIGTERM};

extern "C" void remove_and_die(int signal_number) {
  if (doomed_path[0] != '\0') unlink(doomed_path);
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

sigset_t fatal_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : kFatalSignals) sigaddset(&set, number);
  return set;
}

// Blocks the signals that end the program, for a moment.
class SignalPause {
 public:
  SignalPause() {
    const sigset_t set = fatal_signals();
    pthread_sigmask(SIG_BLOCK, &set, &before_);
  }
  ~SignalPause() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

void watch_signals() {
  // A limit on file sizes shows up as an error of write instead of as a signal.
  signal(SIGXFSZ, SIG_IGN);
  struct sigaction action;
  std::memset(&action, 0, sizeof action);
  action.sa_handler = remove_and_die;
  action.sa_mask = fatal_signals();
  for (const int number : kFatalSignals) {
    struct sigaction before;
    sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);  // nohup stays nohup
  }
}

}  // namespace

InputFile::InputFile(const std::string &path) : name_(printable(path)) {
  // Without O_NONBLOCK, opening a FIFO would wait for a writer before it can be refused.
  fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) fail_input("cannot read {}: {}", name_, std::strerror(errno));
  struct stat status;
  if (fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(fd_);
    if (S_ISDIR(status.st_mode)) fail_input("cannot read {}: it is a directory", name_);
    fail_input("cannot read {}: it is not a regular file", name_);
  }
  bytes_ = status.st_size;
}

InputFile::~InputFile() { close(fd_); }

void InputFile::read(void *to, std::int64_t count, std::int64_t offset) const {
  char *at = static_cast<char *>(to);
  while (count > 0) {
    const ssize_t got = pread(fd_, at, static_cast<std::size_t>(count), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_input("cannot read {}: {}", name_, std::strerror(errno));
    if (got == 0) fail_input("cannot read {}: it became shorter while it was read", name_);
    at += got;
    offset += got;
    count -= got;
  }
}

OutputFile::OutputFile(const std::string &path, std::int64_t bytes)
    : name_(printable(path)), target_(path) {
  struct stat status;
  mode_t mode;
  if (stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) fail_input("cannot write {}: it is a directory", name_);
    // Renaming over a device or a pipe would destroy it.
    if (!S_ISREG(status.st_mode)) fail_input("cannot write {}: it is not a regular file", name_);
    // Replacing a file needs no permission to write it; asking for that is what people expect.
    if (access(path.c_str(), W_OK) != 0) {
      fail_input("cannot write {}: {}", name_, std::strerror(errno));
    }
    mode = status.st_mode & 07777;
    char *real = realpath(path.c_str(), nullptr);
    if (real == nullptr) fail_input("cannot write {}: {}", name_, std::strerror(errno));
    target_ = real;
    free(real);
  } else {
    if (errno != ENOENT) fail_input("cannot write {}: {}", name_, std::strerror(errno));
    if (lstat(path.c_str(), &status) == 0) {
      fail_input("cannot write {}: it is a symbolic link to nothing", name_);
    }
    const mode_t mask = umask(0);
    umask(mask);
    mode = 0666 & ~mask;
  }
  const std::size_t slash = target_.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : target_.substr(0, slash + 1);
  temporary_ = folder + ".softmax-XXXXXX";
  if (temporary_.size() >= sizeof doomed_path)
    fail_input("cannot write {}: the path is too long", name_);
  {
    const SignalPause pause;
    fd_ = mkostemp(temporary_.data(), O_CLOEXEC);
    if (fd_ >= 0) std::strcpy(doomed_path, temporary_.c_str());
  }
  if (fd_ < 0) fail_input("cannot write {}: {}", name_, std::strerror(errno));
  watch_signals();
  int error = fchmod(fd_, mode) == 0 ? 0 : errno;
  if (error == 0 && bytes > 0 && fallocate(fd_, 0, 0, bytes) != 0) error = errno;
  // Where the file system cannot reserve, the writes themselves will tell.
  if (error != 0 && error != EOPNOTSUPP && error != ENOSYS) {
    close_and_remove();
    fail_input("cannot write {}: {} ({} needed)", name_, std::strerror(error),
               byte_text(static_cast<double>(bytes)));
  }
}

OutputFile::~OutputFile() { close_and_remove(); }

void OutputFile::close_and_remove() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  if (temporary_.empty()) return;
  const SignalPause pause;
  unlink(temporary_.c_str());
  temporary_.clear();
  doomed_path[0] = '\0';
}

void OutputFile::write(const void *from, std::int64_t count, std::int64_t offset) {
  const char *at = static_cast<const char *>(from);
  while (count > 0) {
    const ssize_t put = pwrite(fd_, at, static_cast<std::size_t>(count), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      fail_input("cannot write {}: {}", name_,
                 put == 0 ? "nothing was taken" : std::strerror(errno));
    }
    at += put;
    offset += put;
    count -= put;
  }
}

void OutputFile::commit() {
  const int fd = fd_;
  fd_ = -1;
  if (close(fd) != 0) fail_input("cannot write {}: {}", name_, std::strerror(errno));
  const SignalPause pause;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) {
    fail_input("cannot write {}: {}", name_, std::strerror(errno));
  }
  temporary_.clear();
  doomed_path[0] = '\0';
}

}  // namespace tool
