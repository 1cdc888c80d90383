// Where results go: a table for people on stdout, and JSON lines for programs.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "runner.h"

namespace bench {

const char *dtype_text(softmax_dtype_t dtype);

// The id of the source that the library in use was built from.
std::string library_source_id();

// One JSON object in the making: fields in the order in which they are added.
class JsonLine {
 public:
  JsonLine &field(const char *name, const std::string &value);
  JsonLine &field(const char *name, double value);
  JsonLine &field(const char *name, std::int64_t value);
  JsonLine &missing(const char *name);  // null
  std::string text() const { return "{" + body_ + "}"; }

 private:
  void name(const char *name);
  std::string body_;
};

// A file of JSON lines that appears under its name only when it is whole.
class JsonFile {
 public:
  explicit JsonFile(std::string path);  // empty: nothing is written
  ~JsonFile();
  JsonFile(const JsonFile &) = delete;
  JsonFile &operator=(const JsonFile &) = delete;

  void write(const JsonLine &line);
  void finish();

 private:
  std::string path_;
  std::FILE *file_ = nullptr;
};

// The first line of a result file: what was measured, on what, when.
JsonLine run_line(const cudaDeviceProp &properties, const char *kind);

// A cell's line; `section` is the part of the benchmark that it belongs to.
JsonLine cell_line(const char *section, const Shape &shape, softmax_algo_t algo,
                   const CopyTiming &copy, const AlgoTiming &result);
// The line of a cell that was left out: "skipped", or "declined" by the algorithm.
JsonLine left_out_line(const char *section, const Shape &shape, softmax_algo_t algo,
                       const char *status, const std::string &why);

// The table: a line a shape, a column an algorithm. `ratios` prints the share of copy speed in
// each column, otherwise microseconds.
void print_header(const char *title, const std::vector<softmax_algo_t> &algos, bool ratios);
void print_shape(const Shape &shape, const CopyTiming &copy, bool ratios);
void print_cell(const CopyTiming &copy, const AlgoTiming &result, bool ratios);
void print_left_out();
void end_line();

}  // namespace bench
