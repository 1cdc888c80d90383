// softmax select: what would run for a shape, and why.
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include "commands.h"
#include "device.h"
#include "error.h"

namespace tool {
namespace {

struct SelectOptions {
  std::int64_t rows = 0, cols = 0;
  std::string dtype = "f32", output_dtype, device = "auto", algo = "auto";
  bool is_log = false;
  bool is_verbose = false;
};

// What the library says at debug level while this lives.
class DebugLog {
 public:
  DebugLog() { check(softmax_set_log(take, this, SOFTMAX_LOG_DEBUG)); }
  ~DebugLog() { softmax_set_log(nullptr, nullptr, SOFTMAX_LOG_OFF); }
  DebugLog(const DebugLog &) = delete;
  DebugLog &operator=(const DebugLog &) = delete;
  const std::vector<std::string> &lines() const { return lines_; }

 private:
  static void take(std::int32_t level, const char *message, void *user) {
    if (level != SOFTMAX_LOG_DEBUG) return;
    auto *self = static_cast<DebugLog *>(user);
    const std::lock_guard<std::mutex> lock(self->mutex_);
    self->lines_.emplace_back(message);
  }
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

// A property of the choice, unless it is 0: then it means nothing for this algorithm.
std::string property(const char *name, std::int64_t value) {
  return value == 0 ? "" : fmt::format("  {:<16} {}\n", name, value);
}

std::string choice_text(const softmax_choice_t &choice) {
  std::string text;
  text += fmt::format("  {:<16} {}\n", "algorithm", softmax_algo_name(choice.algo));
  text += fmt::format("  {:<16} {}\n", "reason", choice.reason);
  text += fmt::format("  {:<16} {}\n", "kernel", choice.kernel);
  text += property("threads", choice.threads);
  text += property("rows per block", choice.rows_per_block);
  text += property("cluster", choice.cluster);
  text += property("stages", choice.stages);
  text += property("load bytes", choice.vec_bytes);
  text += property("shared bytes", choice.smem_bytes);
  text += property("workspace bytes", static_cast<std::int64_t>(choice.workspace_bytes));
  return text;
}

// CLI11 would cut a number that is too large to the largest one.
std::string check_fits(const std::string &text) {
  errno = 0;
  std::strtoll(text.c_str(), nullptr, 10);
  return errno == ERANGE ? text + " does not fit 64 bits" : "";
}

void select(const SelectOptions &options) {
  const Dtype &x = dtype_from_name(options.dtype);
  const Dtype &y = options.output_dtype.empty() ? x : dtype_from_name(options.output_dtype);
  const softmax_algo_t algo = algo_from_name(options.algo);
  const Device device(device_from_name(options.device));
  const std::int32_t op = options.is_log ? SOFTMAX_OP_LOGSOFTMAX : SOFTMAX_OP_SOFTMAX;
  softmax_desc_t desc;
  check(softmax_desc_init(&desc, sizeof desc, op, x.id, options.rows, options.cols));
  desc.y_dtype = y.id;
  softmax_choice_t choice{};
  choice.struct_size = sizeof choice;

  const DebugLog log;
  check(softmax_select(device.handle(), algo, &desc, &choice));
  std::string text =
      fmt::format("{} of ({}, {}), {} to {}, on {}\n", options.is_log ? "log-softmax" : "softmax",
                  options.rows, options.cols, x.name, y.name, device.description());
  text += choice_text(choice);
  if (options.is_verbose) {
    for (const std::string &line : log.lines()) text += fmt::format("  {}\n", line);
    if (log.lines().empty()) text += "  no other candidate was asked\n";
  }
  print_out(text);
}

}  // namespace

void add_select(CLI::App &app) {
  CLI::App *command =
      app.add_subcommand("select", "What would run for M rows of N columns, and why");
  const auto options = std::make_shared<SelectOptions>();
  command->add_option("M", options->rows, "rows")->required()->type_name("")->check(check_fits);
  command->add_option("N", options->cols, "columns: the softmax axis")
      ->required()
      ->type_name("")
      ->check(check_fits);
  command->add_option("--dtype", options->dtype, "input type: f32, f16, bf16 or f64 (f32)")
      ->type_name("TYPE");
  command->add_option("--output-dtype", options->output_dtype, "output type (that of the input)")
      ->type_name("TYPE");
  command->add_option("--device", options->device, "auto, cpu or cuda:K")->type_name("DEVICE");
  command->add_option("--algo", options->algo, "ask about this algorithm instead of auto")
      ->type_name("NAME");
  command->add_flag("--log", options->is_log, "log-softmax instead of softmax");
  command->add_flag("-v,--verbose", options->is_verbose,
                    "also every other candidate, and why it was not taken");
  command->footer(
      "Nothing is computed. auto goes by N, the types and the device. M may change how many\n"
      "blocks share a row, and no bit of the result.\n\n"
      "Examples:\n"
      "  softmax select 4096 50257 --dtype bf16\n"
      "  softmax select 1 1000000 -v\n"
      "  softmax select 64 1000 --algo shared --device cpu      refused, with the reason");
  command->callback([options] { select(*options); });
}

}  // namespace tool
