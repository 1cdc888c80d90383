// softmax run: a .npy file of logits in, a .npy file of probabilities out, or a table of the best.
#include <algorithm>
#include <memory>
#include <optional>

#include "commands.h"
#include "ctc.h"
#include "error.h"
#include "rows.h"
#include "table.h"
#include "text.h"

namespace tool {
namespace {

constexpr std::int64_t kDefaultBlockBytes = 64 << 20;
constexpr std::int64_t kDefaultRowLimit = 50;

struct RunOptions {
  std::string input, output, algo = "auto", device = "auto", dtype, input_dtype, labels, rows;
  std::vector<std::int64_t> row;
  bool is_log = false;
  bool show_progress = false;
  std::int64_t top = 0;
  std::int64_t limit = kDefaultRowLimit;
  std::int64_t ctc_blank = -1;
  std::int64_t ctc_steps = 0;
  std::int64_t block_bytes = kDefaultBlockBytes;
};

// The rows under a leading index: all of them, those under the first extents, or one.
struct RowRange {
  std::int64_t first, count;
};

RowRange rows_under(const std::vector<std::int64_t> &index, const NpyArray &array) {
  RowRange range{0, array.rows};
  if (index.size() >= array.shape.size()) {
    fail_input("--row has {} indices, rows of shape {} have {}", index.size(),
               shape_text(array.shape), array.shape.size() - 1);
  }
  for (std::size_t d = 0; d < index.size(); ++d) {
    if (index[d] < 0 || index[d] >= array.shape[d]) {
      fail_input("--row {}: axis {} of shape {} has the indices 0 to {}", fmt::join(index, ","), d,
                 shape_text(array.shape), array.shape[d] - 1);
    }
    range.count /= array.shape[d];
    range.first += index[d] * range.count;
  }
  return range;
}

// Steps a line for CTC: as asked, or the extent of the axis before the last.
std::int64_t steps_a_line(const RunOptions &options, const NpyArray &array) {
  const std::size_t ndim = array.shape.size();
  std::int64_t steps = options.ctc_steps;
  if (steps == 0) steps = ndim >= 2 ? array.shape[ndim - 2] : 1;
  if (array.rows % steps != 0) {
    fail_input("--ctc-steps {} does not divide the {} rows", steps, array.rows);
  }
  return steps;
}

// Everything that is printed, computed for the rows that it needs and no others.
class Report {
 public:
  Report(const RunOptions &options, const NpyFile &input)
      : options_(options),
        input_(input),
        classes_(options.labels, input.array.cols),
        row_names_(options.rows, input.array),
        shown_(rows_under(options.row, input.array)),
        all_shown_(shown_.count) {
    if (options.limit > 0) shown_.count = std::min(shown_.count, options.limit);
    if (options.top > 0) {
      table_.emplace(std::min(options.top, input.array.cols), options.is_log);
    }
    if (options.ctc_blank < 0) return;
    if (options.ctc_blank >= input.array.cols) {
      fail_input("--ctc {}: the classes are 0 to {}", options.ctc_blank, input.array.cols - 1);
    }
    ctc_.emplace(options.ctc_blank, steps_a_line(options, input.array), classes_, options.is_log);
  }

  std::string compute(const Device &device, Operation operation, const StreamOptions &stream) {
    if (!table_ && !ctc_) return "";
    // 16-bit results would tie and be rounded too much to show: the table's are float32.
    operation.y_dtype =
        operation.x_dtype->bytes == 2 ? &dtype_of(SOFTMAX_DTYPE_F32) : operation.x_dtype;
    const RowRange needed = ctc_ ? RowRange{0, input_.array.rows} : shown_;
    const auto sink = [&](std::int64_t first, std::int64_t rows, const void *y) {
      const std::int64_t row_bytes = input_.array.cols * operation.y_dtype->bytes;
      for (std::int64_t i = 0; i < rows; ++i) {
        take_row(first + i, static_cast<const char *>(y) + i * row_bytes, *operation.y_dtype);
      }
    };
    stream_rows(input_, device, operation, needed.first, needed.count, stream, sink);
    return text();
  }

 private:
  void take_row(std::int64_t row, const void *y, const Dtype &dtype) {
    const auto top =
        top_classes(y, dtype, input_.array.cols, std::max<std::int64_t>(1, options_.top));
    const bool is_shown = row >= shown_.first && row < shown_.first + shown_.count;
    if (table_ && is_shown) table_->add(row_names_.shown(row), top, classes_);
    if (ctc_) ctc_->add(top);
  }

  std::string text() const {
    std::string text;
    if (table_) text += table_->text();
    if (table_ && all_shown_ > shown_.count) {
      text += fmt::format("... and {} more rows; --limit 0 shows all\n", all_shown_ - shown_.count);
    }
    if (table_ && ctc_) text += '\n';
    if (ctc_) text += ctc_->text();
    return text;
  }

  const RunOptions &options_;
  const NpyFile &input_;
  const ClassNames classes_;
  const RowNames row_names_;
  RowRange shown_;
  const std::int64_t all_shown_;
  std::optional<TopTable> table_;
  std::optional<CtcDecoder> ctc_;
};

void write_output(const RunOptions &options, const NpyFile &input, const Device &device,
                  const Operation &operation, const StreamOptions &stream) {
  const NpyArray &array = input.array;
  const std::string header = make_npy_header(*operation.y_dtype, array.shape);
  const auto header_bytes = static_cast<std::int64_t>(header.size());
  std::int64_t row_bytes = 0, data_bytes = 0, bytes = 0;
  if (__builtin_mul_overflow(array.cols, operation.y_dtype->bytes, &row_bytes) ||
      __builtin_mul_overflow(array.rows, row_bytes, &data_bytes) ||
      __builtin_add_overflow(header_bytes, data_bytes, &bytes)) {
    fail_input("{}: as {} the output does not fit 64 bits", input.file.name(),
               operation.y_dtype->name);
  }
  // Whether the device can do it at all, before a file is made.
  enqueue_softmax(device, operation, nullptr, nullptr, 0, array.cols, nullptr);
  OutputFile output(options.output, bytes);
  output.write(header.data(), header_bytes, 0);
  const auto sink = [&](std::int64_t first, std::int64_t rows, const void *y) {
    output.write(y, rows * row_bytes, header_bytes + first * row_bytes);
  };
  stream_rows(input, device, operation, 0, array.rows, stream, sink);
  output.commit();
}

void run(const RunOptions &options) {
  if (options.output.empty() && options.top == 0 && options.ctc_blank < 0) {
    fail_input("nothing to do: give -o FILE for an output file, or --top K for a table");
  }
  if (options.ctc_blank >= 0 && options.labels.empty()) {
    fail_input("--ctc needs --labels FILE: the characters of the classes");
  }
  const Dtype *as_dtype =
      options.input_dtype.empty() ? nullptr : &dtype_from_name(options.input_dtype);
  Operation operation;
  operation.algo = algo_from_name(options.algo);
  operation.is_log = options.is_log;
  if (!options.dtype.empty()) operation.y_dtype = &dtype_from_name(options.dtype);
  const std::int32_t device_number = device_from_name(options.device);

  const NpyFile input(options.input, as_dtype);
  operation.x_dtype = input.array.dtype;
  if (operation.y_dtype == nullptr) operation.y_dtype = operation.x_dtype;
  Report report(options, input);
  const Device device(device_number);
  const StreamOptions stream{options.block_bytes, options.show_progress};
  const std::string text = report.compute(device, operation, stream);
  if (!options.output.empty()) {
    write_output(options, input, device, operation, {options.block_bytes, options.show_progress});
  }
  print_out(text);
}

constexpr char kFooter[] =
    R"(The file is a .npy array (format 1.0, 2.0 or 3.0) of float16, bfloat16, float32 or float64,
little-endian, C order, of one or more dimensions. It is read block by block and may be larger than
memory. The output has the same shape. It appears under its name when it is complete: after an error
there is no new file, and a file that was there before is as it was. It may be the input file itself.

numpy has no bfloat16: files of it have elements '<V2' (ml_dtypes) or '<u2' (raw bits). Read them
with --input-dtype bf16; the output is '<V2'.

Output types: that of the input; also f32 for a 16-bit input.

Examples:
  softmax run logits.npy -o probs.npy
  softmax run logits.npy -o logprobs.npy --log --device cpu
  softmax run scores.npy --top 3 --labels classes.txt --rows files.txt
  softmax run attention.npy --top 5 --row 1,8          one row of a 3-dimensional array
  softmax run text.npy --labels characters.txt --ctc 0 --ctc-steps 28)";

}  // namespace

void add_run(CLI::App &app) {
  CLI::App *command = app.add_subcommand(
      "run", "Softmax over the last axis of a .npy file: to a .npy file, to a table, or both");
  const auto options = std::make_shared<RunOptions>();
  command->add_option("input", options->input, "the .npy file of logits")
      ->required()
      ->type_name("FILE");
  command->add_option("-o,--output", options->output, "the .npy file to write")->type_name("FILE");
  command->add_flag("--log", options->is_log, "log-softmax instead of softmax");
  command->add_option("--algo", options->algo, "algorithm; softmax info lists them (auto)")
      ->type_name("NAME");
  command->add_option("--device", options->device, "auto, cpu or cuda:K (auto: a GPU if usable)")
      ->type_name("DEVICE");
  command
      ->add_option("--dtype", options->dtype,
                   "output type: f32, f16, bf16 or f64 (that of the input)")
      ->type_name("TYPE");
  command
      ->add_option("--input-dtype", options->input_dtype,
                   "what the elements of a file without a type are: bf16")
      ->type_name("TYPE");
  command
      ->add_option("--block-bytes", options->block_bytes,
                   "input bytes to work on at a time, as 65536 or 64MB (64MB)")
      ->transform(CLI::AsSizeValue(false).description(""))
      ->check(CLI::PositiveNumber)
      ->type_name("BYTES");
  command->add_flag("--progress", options->show_progress,
                    "show progress even if nobody watches a terminal");
  CLI::Option_group *table = command->add_option_group("Table");
  table->add_option("--top", options->top, "show the K most likely classes of each row")
      ->check(CLI::PositiveNumber)
      ->type_name("K");
  table
      ->add_option("--labels", options->labels,
                   "file of class names, one a line, split at line feeds and not stripped")
      ->type_name("FILE");
  table
      ->add_option("--rows", options->rows,
                   "file of row names, one for each row or for each index of the axis before the "
                   "last")
      ->type_name("FILE");
  CLI::Option *row =
      table->add_option("--row", options->row, "only this row, or the rows under this index")
          ->delimiter(',')
          ->allow_extra_args(false)
          ->type_name("I,J");
  table->add_option("--limit", options->limit, "show at most this many rows, 0 for all (50)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("ROWS");
  CLI::Option *ctc = table->add_option(
      "--ctc", options->ctc_blank,
      "the number of the blank class: read the rows as steps of text lines, greedily");
  ctc->check(CLI::NonNegativeNumber)->type_name("BLANK")->excludes(row);
  table
      ->add_option("--ctc-steps", options->ctc_steps,
                   "steps in a line (the extent of the axis before the last)")
      ->check(CLI::PositiveNumber)
      ->type_name("STEPS")
      ->needs(ctc);
  command->footer(kFooter);
  command->callback([options] { run(*options); });
}

}  // namespace tool
