// Which cases an entry has. Shapes and second inputs that the file gives in words stand here as
// numbers. See matrix.h.
#include "matrix.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "element.h"

namespace reports {
namespace {

struct Shape {
  std::int64_t rows;
  std::int64_t columns;
};

std::vector<Shape> rows_of(std::initializer_list<std::int64_t> rows, std::int64_t columns) {
  std::vector<Shape> shapes;
  for (const std::int64_t m : rows) shapes.push_back({m, columns});
  return shapes;
}

std::vector<Shape> columns_of(std::int64_t rows, std::initializer_list<std::int64_t> columns) {
  std::vector<Shape> shapes;
  for (const std::int64_t n : columns) shapes.push_back({rows, n});
  return shapes;
}

std::vector<Shape> every_path() {
  std::vector<Shape> shapes;
  for (std::int64_t n = 1; n <= 257; ++n) shapes.push_back({3, n});
  for (const std::int64_t middle : {512, 1024, 2048, 4096, 32768}) {
    for (std::int64_t n = middle - 1; n <= middle + 1; ++n) shapes.push_back({3, n});
  }
  shapes.push_back({3, 100000});
  return shapes;
}

std::vector<Shape> product_of(std::initializer_list<std::int64_t> extents) {
  std::vector<Shape> shapes;
  for (const std::int64_t m : extents) {
    for (const std::int64_t n : extents) shapes.push_back({m, n});
  }
  return shapes;
}

// Entries whose input names several shapes; the others have the one of `shape`.
const std::map<std::string, std::vector<Shape>> &sweeps() {
  static const std::map<std::string, std::vector<Shape>> table = {
      {"ml-explore/mlx#1467", every_path()},
      {"Oneflow-Inc/oneflow#8472", rows_of({65537, 32769}, 32768)},
      {"torch/cunn#150", rows_of({65535, 65536, 65537}, 2)},
      {"ggml-org/llama.cpp#27752", rows_of({65472, 65536, 131072}, 4)},
      {"deepspeedai/DeepSpeed#785", columns_of(48, {50, 49, 51, 63, 65})},
      {"microsoft/onnxruntime#14475", columns_of(129, {1, 2, 3, 31, 32, 33, 34, 63, 64, 65})},
      {"karpathy/llm.c#776", columns_of(64, {20, 1, 5, 31})},
      {"PaddlePaddle/Paddle#53654", columns_of(2, {99999, 100000, 100001})},
      {"NVIDIA/Fuser#1548", columns_of(16, {33023, 33024, 36864, 40448, 40449, 58112})},
      {"NVIDIA/apex#916", columns_of(16, {1024, 1025, 1088, 2048, 2049})},
      {"xlite-dev/LeetCUDA#251", {{1, 262144}, {2, 1048576}}},
      {"ggml-org/llama.cpp#26385", product_of({15, 16, 1024})},
      {"ROCm/composable_kernel#323", columns_of(8, {2048, 8192, 8200})},
      {"tenstorrent/tt-metal#45200", columns_of(384, {8192, 8200, 20000})},
  };
  return table;
}

// Further cases that an entry's words add: another type, shape, input or expectation. Null is the
// entry's own.
struct Further {
  const char *id;
  const char *dtype;
  Shape shape;
  const char *gen;
  const char *check;
};

constexpr Shape kOwn{0, 0};

constexpr Further kFurther[] = {
    {"tenstorrent/tt-metal#19781", "float32", kOwn, R"({"const": -3.4028235e38})",
     R"({"uniform": 0.14285714285714285, "rtol": 1e-6})"},
    {"FluxML/NNlib.jl#506", nullptr, kOwn, R"({"const": 1000})", nullptr},
    {"ifromeast/cuda_learning#1", nullptr, kOwn, R"({"formula": "(N-1-j)*(30.0/N) + 0.001*i"})",
     nullptr},
    {"ifromeast/cuda_learning#1", nullptr, kOwn, R"({"formula": "20 if j == N-1 else u(k)*8-4"})",
     nullptr},
    {"pytorch/pytorch#143644", "float32", {5, 1037}, nullptr, R"({"row_sum_tol": 1e-6})"},
    {"uxlfoundation/oneDNN#3501", "float32", kOwn, nullptr, nullptr},
    {"onnx/onnx#3244", nullptr, {1, 1023}, nullptr, R"({"row_sum_tol": 1e-6})"},
};

std::string label_of(const Input &input) {
  return "[" + std::to_string(input.rows) + ", " + std::to_string(input.columns) + "] " +
         dtype_label(input.dtype);
}

Case make_case(const Entry &entry, std::int32_t dtype, Shape shape, const nlohmann::json &gen,
               const nlohmann::json &check) {
  Case c;
  c.input = make_input(gen, dtype, shape.rows, shape.columns);
  c.label = label_of(c.input);
  c.y_dtype = dtype;
  c.op = entry.op;
  for (const auto &[key, value] : check.items()) {
    if (is_value_key(key)) c.check[key] = value;
  }
  return c;
}

}  // namespace

Case case_of(const Entry &entry, std::int32_t dtype, std::int64_t rows, std::int64_t columns) {
  return make_case(entry, dtype, {rows, columns}, entry.gen, entry.check);
}

std::vector<Case> cases_of(const Entry &entry, std::set<std::string> *handled) {
  if (entry.op != "softmax" && entry.op != "log_softmax") {
    throw std::runtime_error("op " + entry.op + " has no matrix to compute");
  }
  // Every case is run by every algorithm, and held to one expectation on each device; its status
  // must be success; its buffers lie between guards.
  handled->insert({"same_on", "same_for_every", "guard_rows_untouched", "canary_after_end"});
  if (entry.check.value("status", "") == "ok") handled->insert("status");

  std::vector<Case> cases;
  const std::int32_t own_dtype = dtype_of(entry.dtype);
  const auto sweep = sweeps().find(entry.id);
  if (sweep != sweeps().end()) {
    for (const Shape &shape : sweep->second) {
      cases.push_back(make_case(entry, own_dtype, shape, entry.gen, entry.check));
    }
  } else {
    cases.push_back(case_of(entry, own_dtype, entry.shape.at(0), entry.shape.at(1)));
  }
  for (const Further &further : kFurther) {
    if (entry.id != further.id) continue;
    const std::int32_t dtype = further.dtype != nullptr ? dtype_of(further.dtype) : own_dtype;
    const bool own_shape = further.shape.rows == 0;
    const Shape shape = own_shape ? Shape{entry.shape.at(0), entry.shape.at(1)} : further.shape;
    const auto parsed = [](const char *text, const nlohmann::json &own) {
      return text != nullptr ? nlohmann::json::parse(text) : own;
    };
    cases.push_back(make_case(entry, dtype, shape, parsed(further.gen, entry.gen),
                              parsed(further.check, entry.check)));
  }
  return cases;
}

}  // namespace reports
