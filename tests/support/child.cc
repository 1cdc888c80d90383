// Child processes. See child.h.
#include "support/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

namespace softmax_test {
namespace {

std::map<std::string, int (*)()> &children() {
  static std::map<std::string, int (*)()> all;
  return all;
}

// Reads both pipes until the child has closed them, so that neither can fill and block it.
void drain(int out, int err, ChildResult *result) {
  pollfd fds[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  int open_count = 2;
  while (open_count > 0 && poll(fds, 2, -1) > 0) {
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      char bytes[4096];
      const ssize_t count = read(fds[i].fd, bytes, sizeof bytes);
      if (count > 0) {
        (i == 0 ? result->out : result->err).append(bytes, static_cast<std::size_t>(count));
      } else {
        fds[i].fd = -1;
        --open_count;
      }
    }
  }
}

}  // namespace

Child::Child(const char *name, int (*body)()) { children()[name] = body; }

int child_main(const std::string &name) {
  const auto found = children().find(name);
  return found == children().end() ? -1 : found->second();
}

ChildResult run_child(const std::string &name,
                      const std::vector<std::pair<std::string, std::string>> &environment) {
  ChildResult result;
  int out[2], err[2];
  if (pipe(out) != 0) return result;
  if (pipe(err) != 0) return result;
  // Everything that allocates happens before the fork: another thread may hold the heap's lock.
  std::vector<std::string> variables;
  for (char **variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    bool is_replaced = false;
    for (const auto &added : environment) {
      is_replaced = is_replaced || text.rfind(added.first + "=", 0) == 0;
    }
    if (!is_replaced) variables.push_back(text);
  }
  for (const auto &added : environment) variables.push_back(added.first + "=" + added.second);
  std::vector<char *> pointers;
  for (std::string &variable : variables) pointers.push_back(&variable[0]);
  pointers.push_back(nullptr);
  const char *const arguments[] = {"child", "--child", name.c_str(), nullptr};

  const pid_t pid = fork();
  if (pid == 0) {
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    for (const int fd : {out[0], out[1], err[0], err[1]}) close(fd);
    execve("/proc/self/exe", const_cast<char *const *>(arguments), pointers.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  if (pid > 0) {
    drain(out[0], err[0], &result);
    int status = 0;
    if (waitpid(pid, &status, 0) == pid && WIFEXITED(status)) {
      result.exit_code = WEXITSTATUS(status);
    }
  }
  close(out[0]);
  close(err[0]);
  return result;
}

}  // namespace softmax_test
