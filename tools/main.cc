// The softmax program: softmax over .npy files, and questions to libsoftmax.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "commands.h"
#include "error.h"
#include "softmax.h"
#include "text.h"

namespace tool {
namespace {

constexpr char kDescription[] =
    "softmax and log-softmax over rows, on NVIDIA GPUs and the CPU, with libsoftmax";

constexpr char kFooter[] =
    R"(Each command has its own help: softmax run --help.

Exit codes: 0 success; 2 a bad option or a bad file, with one line on the standard error output that
says what is wrong; 1 any other failure (memory, a GPU error).)";

int report(int exit_code, const std::string &message) {
  fmt::print(stderr, "softmax: {}\n", printable(message));
  return exit_code;
}

bool is_command(const CLI::App &app, const char *word) {
  for (const CLI::App *command : app.get_subcommands(nullptr)) {
    if (command->check_name(word)) return true;
  }
  return false;
}

int run_program(int argc, char **argv) {
  CLI::App app(kDescription, "softmax");
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("softmax ") + softmax_version_string(),
                       "Print the version and exit");
  app.require_subcommand(1);
  add_run(app);
  add_info(app);
  add_select(app);
  add_bench(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    if (argc > 1 && argv[1][0] != '-' && !is_command(app, argv[1])) {
      return report(kExitBadInput, fmt::format("'{}' is no command (see softmax --help)", argv[1]));
    }
    return report(kExitBadInput, std::string(error.what()) + " (see softmax --help)");
  }
  return kExitOk;
}

}  // namespace

void print_out(const std::string &text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    fail_input("cannot write the standard output: {}", std::strerror(errno));
  }
}

}  // namespace tool

int main(int argc, char **argv) {
  try {
    return tool::run_program(argc, argv);
  } catch (const tool::Error &error) {
    return tool::report(error.exit_code(), error.what());
  } catch (const std::bad_alloc &) {
    return tool::report(tool::kExitFailure,
                        "out of memory; a smaller --block-bytes may help, down to one row");
  } catch (const std::exception &error) {
    return tool::report(tool::kExitFailure, error.what());
  }
}
