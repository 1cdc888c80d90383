// The subcommands. Each adds its options, its help and what it does to the program.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace tool {

void add_run(CLI::App &app);
void add_info(CLI::App &app);
void add_select(CLI::App &app);
void add_bench(CLI::App &app);

// Writes to the standard output; fails where that does not take it.
void print_out(const std::string &text);

}  // namespace tool
