// Softmax over rows of a .npy file, block by block, so that the file need not fit in memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "device.h"
#include "files.h"
#include "npy.h"

namespace tool {

// A .npy file with its header read.
struct NpyFile {
  NpyFile(const std::string &path, const Dtype *as_dtype);
  InputFile file;
  NpyArray array;
};

struct StreamOptions {
  std::int64_t block_bytes;
  bool show_progress;
  // What a person waits for began here: before the output was created, not with the first block.
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
};

// Gets `rows` results from row `first` on; y lives for the duration of the call.
using RowSink = std::function<void(std::int64_t first, std::int64_t rows, const void *y)>;

// Computes rows [first, first + rows) in order, handing over blocks of about block_bytes and of at
// least one row.
void stream_rows(const NpyFile &input, const Device &device, const Operation &operation,
                 std::int64_t first, std::int64_t rows, const StreamOptions &options,
                 const RowSink &sink);

}  // namespace tool
