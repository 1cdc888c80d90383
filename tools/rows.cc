// See rows.h.
#include "rows.h"

#include <algorithm>
#include <memory>

#include "progress.h"

namespace tool {
namespace {

NpyArray read_header(const InputFile &file, const Dtype *as_dtype) {
  std::string header(static_cast<std::size_t>(std::min(file.bytes(), kNpyPrefixBytes)), '\0');
  file.read(header.data(), static_cast<std::int64_t>(header.size()), 0);
  const std::int64_t header_bytes = npy_header_bytes(header, file.name());
  header.resize(static_cast<std::size_t>(std::min(file.bytes(), header_bytes)));
  file.read(header.data(), static_cast<std::int64_t>(header.size()), 0);
  return read_npy_header(header, file.bytes(), as_dtype, file.name());
}

}  // namespace

NpyFile::NpyFile(const std::string &path, const Dtype *as_dtype)
    : file(path), array(read_header(file, as_dtype)) {}

void stream_rows(const NpyFile &input, const Device &device, const Operation &operation,
                 std::int64_t first, std::int64_t rows, const StreamOptions &options,
                 const RowSink &sink) {
  const std::int64_t cols = input.array.cols;
  const std::int64_t row_bytes = input.array.row_bytes();
  const std::int64_t block_rows =
      std::min(rows, std::max<std::int64_t>(1, options.block_bytes / row_bytes));
  RowComputer computer(device, operation, block_rows * cols);
  // new[] leaves the bytes unset: a page is touched when it is needed.
  const std::unique_ptr<char[]> x(new char[static_cast<std::size_t>(block_rows * row_bytes)]);
  std::unique_ptr<char[]> wide;  // in place unless the types differ
  if (operation.x_dtype != operation.y_dtype) {
    wide.reset(new char[static_cast<std::size_t>(block_rows * cols * operation.y_dtype->bytes)]);
  }
  char *y = wide ? wide.get() : x.get();
  Progress progress(rows * row_bytes, options.show_progress, options.began);
  for (std::int64_t done = 0; done < rows;) {
    const std::int64_t count = std::min(block_rows, rows - done);
    const std::int64_t at = first + done;
    input.file.read(x.get(), count * row_bytes, input.array.data_offset + at * row_bytes);
    computer.compute(x.get(), y, count, cols);
    sink(at, count, y);
    done += count;
    progress.advance(count * row_bytes);
  }
  progress.finish();
}

}  // namespace tool
