// Files: reading at an offset, and output that appears whole or not at all.
#pragma once

#include <cstdint>
#include <string>

namespace tool {

// A regular file, open for reading. Every function fails with one sentence that names the file.
class InputFile {
 public:
  explicit InputFile(const std::string &path);
  ~InputFile();
  InputFile(const InputFile &) = delete;
  InputFile &operator=(const InputFile &) = delete;

  std::int64_t bytes() const { return bytes_; }
  const std::string &name() const { return name_; }  // safe to print

  // Exactly `count` bytes from `offset`; fewer is an error.
  void read(void *to, std::int64_t count, std::int64_t offset) const;

 private:
  std::string name_;
  int fd_ = -1;
  std::int64_t bytes_ = 0;
};

// A file that is written under a temporary name beside `path` and renamed at the end. Without
// commit(), by an error or by a signal, the temporary file is removed and what was at `path` stays
// as it was. `path` may be the input itself. One at a time in the process.
class OutputFile {
 public:
  // Reserves `bytes` on the disk, so that a full one is known before the work is done.
  OutputFile(const std::string &path, std::int64_t bytes);
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  void write(const void *from, std::int64_t count, std::int64_t offset);
  void commit();

 private:
  void close_and_remove();

  std::string name_;    // as given, safe to print
  std::string target_;  // with symbolic links followed
  std::string temporary_;
  int fd_ = -1;
};

}  // namespace tool
