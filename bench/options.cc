// The ladder's command line. See options.h.
#include "options.h"

#include <cstdlib>
#include <sstream>

#include "output.h"

namespace bench {
namespace {

std::vector<std::string> words(const std::string &list) {
  std::vector<std::string> parts;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

std::int64_t number(const std::string &option, const std::string &text, std::int64_t least,
                    std::int64_t most) {
  char *end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (end == text.c_str() || *end != '\0' || value < least || value > most) {
    throw UsageError(option + " takes numbers from " + std::to_string(least) + " to " +
                     std::to_string(most) + ", not \"" + text + "\"");
  }
  return value;
}

std::vector<std::int64_t> numbers(const std::string &option, const std::string &list) {
  std::vector<std::int64_t> values;
  for (const std::string &word : words(list)) {
    values.push_back(number(option, word, 1, std::int64_t{1} << 40));
  }
  return values;
}

std::vector<softmax_dtype_t> dtypes(const std::string &list) {
  std::vector<softmax_dtype_t> values;
  for (const std::string &word : words(list)) {
    bool known = false;
    for (const softmax_dtype_t dtype : {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_BF16, SOFTMAX_DTYPE_F64}) {
      if (word != dtype_text(dtype)) continue;
      values.push_back(dtype);
      known = true;
    }
    if (!known) throw UsageError("--dtypes takes f32, bf16 and f64, not \"" + word + "\"");
  }
  return values;
}

std::vector<softmax_algo_t> algos(const std::string &list) {
  std::vector<softmax_algo_t> values;
  for (const std::string &word : words(list)) {
    softmax_algo_t algo;
    if (softmax_algo_from_name(word.c_str(), &algo) != SOFTMAX_SUCCESS) {
      throw UsageError("there is no algorithm \"" + word + "\"");
    }
    values.push_back(algo);
  }
  return values;
}

}  // namespace

const char kUsage[] =
    "usage: ladder [--quick] [--json FILE] [--device K] [--profile] [--info]\n"
    "       ladder --cols LIST [--rows LIST] [--dtypes LIST] [--algos LIST] [--json FILE]\n"
    "  --quick        fewer shapes and shorter timing\n"
    "  --json FILE    write one line of JSON a cell, after one that says what was measured\n"
    "  --device K     CUDA ordinal, 0 unless given\n"
    "  --profile      launch each cell of the profiling plan once, for Nsight Compute\n"
    "  --info         print the library's build line and end\n"
    "  --cols LIST    time these row lengths instead of the ladder's own cells, shortly: cold, as\n"
    "                 many rows as make 2^26 elements\n"
    "  --rows LIST    with --cols: these numbers of rows, hot\n"
    "  --dtypes LIST  with --cols: of f32, bf16 and f64; f32,bf16 unless given\n"
    "  --algos LIST   with --cols: these algorithms, by name; every one unless given\n"
    "Lists are separated by commas.\n";

Options parse(int argc, char **argv) {
  Options options;
  bool chose_cells = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto value = [&] {
      if (i + 1 == argc) throw UsageError(argument + " needs a value");
      return std::string(argv[++i]);
    };
    if (argument == "--quick") {
      options.quick = true;
    } else if (argument == "--profile") {
      options.profile = true;
    } else if (argument == "--info") {
      options.info = true;
    } else if (argument == "--help" || argument == "-h") {
      options.help = true;
    } else if (argument == "--json") {
      options.json = value();
    } else if (argument == "--device") {
      options.device = static_cast<int>(number(argument, value(), 0, 1023));
    } else if (argument == "--cols") {
      options.cols = numbers(argument, value());
    } else if (argument == "--rows") {
      options.rows = numbers(argument, value());
      chose_cells = true;
    } else if (argument == "--dtypes") {
      options.dtypes = dtypes(value());
      chose_cells = true;
    } else if (argument == "--algos") {
      options.algos = algos(value());
      chose_cells = true;
    } else {
      throw UsageError("unknown option " + argument);
    }
  }
  if (options.cols.empty() && chose_cells) throw UsageError("these options need --cols");
  return options;
}

}  // namespace bench
