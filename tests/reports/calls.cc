// Entries about single calls: statuses, refusals, empty shapes, pairs of types.
#include <cmath>
#include <cstring>
#include <limits>

#include "element.h"
#include "matrix.h"
#include "special.h"

namespace reports {
namespace {

constexpr std::int32_t kDtypes[] = {SOFTMAX_DTYPE_F32,     SOFTMAX_DTYPE_F16,
                                    SOFTMAX_DTYPE_BF16,    SOFTMAX_DTYPE_F64,
                                    SOFTMAX_DTYPE_F8_E4M3, SOFTMAX_DTYPE_F8_E5M2};

bool pair_is_promised(std::int32_t x, std::int32_t y) {
  const bool is_f8 = x == SOFTMAX_DTYPE_F8_E4M3 || x == SOFTMAX_DTYPE_F8_E5M2;
  if (x == y) return !is_f8;
  return (x == SOFTMAX_DTYPE_F16 || x == SOFTMAX_DTYPE_BF16) && y == SOFTMAX_DTYPE_F32;
}

// A small matrix in device memory, the result beside it, and the bytes that both begin with.
class SmallProblem {
 public:
  SmallProblem(Device *device, const Input &input)
      : device_(device),
        input_(input),
        bytes_(encode_all(input)),
        x_(device, bytes_.size(), 4096, 0),
        y_(device, bytes_.size(), 4096, 0) {
    x_.write(bytes_);
  }

  Call call(softmax_algo_t algo) const {
    return {algo,      false,        x_.data(),   input_.dtype,
            y_.data(), input_.dtype, input_.rows, input_.columns};
  }

  // A call that must succeed and be right.
  void expect_right(softmax_algo_t algo, const std::string &which, Verdict *verdict) {
    y_.poison();
    verdict->expect_status(make_call(call(algo), *device_), SOFTMAX_SUCCESS, which);
    const std::string error = device_->finish();
    verdict->expect(error.empty(), which + " leaves " + error);
    Case c;
    c.input = input_;
    c.y_dtype = input_.dtype;
    c.op = "softmax";
    check_output(c, false, expected_of(c, false), y_.read().data(), verdict);
  }

  Guarded &y() { return y_; }

 private:
  Device *device_;
  Input input_;
  std::vector<unsigned char> bytes_;
  Guarded x_;
  Guarded y_;
};

Input own_input(const Entry &entry, std::int64_t rows, std::int64_t columns) {
  return make_input(entry.gen, dtype_of(entry.dtype), rows, columns);
}

// ---- empty shapes ----

void run_empty(Device *device, const Entry &entry, Verdict *verdict) {
  const bool two_shapes = entry.id == "apache/mxnet#20005";
  std::vector<std::pair<std::int64_t, std::int64_t>> shapes = {
      {entry.shape.at(0), entry.shape.at(1)}};
  if (two_shapes) shapes.push_back({1, 0});

  std::vector<unsigned char> before(64);
  const float inf = std::numeric_limits<float>::infinity();
  for (std::size_t n = 0; n < before.size(); n += 4) std::memcpy(&before[n], &inf, 4);
  Guarded buffer(device, before.size(), 64, 0);
  buffer.write(before);

  for (const auto &[rows, columns] : shapes) {
    for (const softmax_algo_t algo : device->algos()) {
      for (const bool is_log : {false, true}) {
        for (void *pointer : {static_cast<void *>(nullptr), buffer.data()}) {
          const Call call{algo, is_log, pointer, SOFTMAX_DTYPE_F32, pointer, SOFTMAX_DTYPE_F32,
                          rows, columns};
          verdict->expect_status(make_call(call, *device), SOFTMAX_SUCCESS,
                                 algo_label(algo) + " on an empty matrix");
          const std::string error = device->finish();
          verdict->expect(error.empty(), error);
        }
      }
    }
  }
  verdict->expect(buffer.read() == before, "the buffer is unchanged");
  verdict->expect(buffer.guards_untouched(), "its guards are untouched");
}

// ---- pairs of types ----

bool takes_any_pair(const Device &device, softmax_algo_t algo) {
  if (algo == SOFTMAX_ALGO_AUTO) return true;
  if (device.is_cuda()) return algo == SOFTMAX_ALGO_ONLINE;
  return algo == SOFTMAX_ALGO_VECTOR || algo == SOFTMAX_ALGO_REFERENCE;
}

void run_pair(Device *device, const Entry &entry, std::int32_t x_dtype, std::int32_t y_dtype,
              std::int64_t rows, std::int64_t columns, Verdict *verdict) {
  if (pair_is_promised(x_dtype, y_dtype)) {
    Case c = case_of(entry, x_dtype, rows, columns);
    c.y_dtype = y_dtype;
    c.label += std::string(" -> ") + dtype_label(y_dtype);
    run_case(device, c, verdict);
    return;
  }
  // The others are the general call's: right, or refused by the algorithms that do not take them.
  Case c = case_of(entry, x_dtype, rows, columns);
  c.y_dtype = y_dtype;
  c.op = "softmax";
  c.check = nlohmann::json::object();
  const std::vector<unsigned char> bytes = encode_all(c.input);
  const Expected expected = expected_of(c, false);
  const std::size_t y_bytes =
      static_cast<std::size_t>(rows * columns) * static_cast<std::size_t>(format_of(y_dtype).bytes);
  Guarded x(device, bytes.size(), 64, 0);
  Guarded y(device, y_bytes, 64, 0);
  x.write(bytes);
  for (const softmax_algo_t algo : device->algos()) {
    const std::string which =
        std::string(dtype_label(x_dtype)) + " -> " + dtype_label(y_dtype) + " " + algo_label(algo);
    verdict->set_context(which);
    y.poison();
    const Call call{algo, false, x.data(), x_dtype, y.data(), y_dtype, rows, columns};
    const bool is_taken = takes_any_pair(*device, algo);
    verdict->expect_status(make_call(call, *device),
                           is_taken ? SOFTMAX_SUCCESS : SOFTMAX_STATUS_NOT_SUPPORTED_ALGO, which);
    device->finish();
    const std::vector<unsigned char> output = y.read();
    if (is_taken) {
      check_output(c, false, expected, output.data(), verdict);
    } else {
      verdict->expect(output == std::vector<unsigned char>(output.size(), 0xff),
                      "a refused pair writes nothing");
    }
    verdict->expect(y.guards_untouched() && x.read() == bytes, "nothing else is written");
  }
  verdict->set_context("");
}

void run_every_pair(Device *device, const Entry &entry, Verdict *verdict) {
  for (const std::int32_t x_dtype : kDtypes) {
    for (const std::int32_t y_dtype : kDtypes) {
      run_pair(device, entry, x_dtype, y_dtype, entry.shape.at(0), entry.shape.at(1), verdict);
    }
  }
}

// The forward half of a backward entry.
void run_half_to_float(Device *device, const Entry &entry, Verdict *verdict) {
  run_pair(device, entry, SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_F32, entry.shape.at(0),
           entry.shape.at(1), verdict);
}

// Inputs and outputs 4, 8 and 12 bytes past a boundary: the forward half of a backward entry.
void run_offsets(Device *device, const Entry &entry, Verdict *verdict) {
  const Input input = own_input(entry, entry.shape.at(0), entry.shape.at(1));
  const std::vector<unsigned char> bytes = encode_all(input);
  Case c = case_of(entry, input.dtype, input.rows, input.columns);
  c.op = "softmax";
  c.check = nlohmann::json::object();  // it speaks of dx
  const Expected expected = expected_of(c, false);
  for (const auto &[x_offset, y_offset] : {std::pair<int, int>{0, 4}, {4, 8}, {8, 12}, {12, 0}}) {
    for (const softmax_algo_t algo : device->algos_for(input.dtype, input.dtype, input.columns)) {
      Guarded x(device, bytes.size(), 4096, static_cast<std::size_t>(x_offset));
      Guarded y(device, bytes.size(), 4096, static_cast<std::size_t>(y_offset));
      x.write(bytes);
      const Call call{algo,     false,       x.data(),   input.dtype,
                      y.data(), input.dtype, input.rows, input.columns};
      verdict->expect_status(make_call(call, *device), SOFTMAX_SUCCESS, algo_label(algo));
      const std::string error = device->finish();
      verdict->expect(error.empty(), error);
      check_output(c, false, expected, y.read().data(), verdict);
      verdict->expect(y.guards_untouched(), "the guards are untouched");
    }
  }
}

// ---- sequences of statuses ----

void run_error_then_valid(Device *device, const Entry &entry, Verdict *verdict) {
  SmallProblem problem(device, own_input(entry, entry.shape.at(0), entry.shape.at(1)));
  Call no_such_algo = problem.call(77);
  Call impossible = problem.call(SOFTMAX_ALGO_AUTO);
  impossible.rows = std::numeric_limits<std::int64_t>::max() / 2;
  const struct {
    Call call;
    softmax_status_t status;
  } failures[] = {{no_such_algo, SOFTMAX_STATUS_BAD_ENUM}, {impossible, SOFTMAX_STATUS_BAD_SHAPE}};
  for (const auto &failure : failures) {
    problem.y().poison();
    verdict->expect_status(make_call(failure.call, *device), failure.status, "the bad call");
    const std::vector<unsigned char> output = problem.y().read();
    verdict->expect(output == std::vector<unsigned char>(output.size(), 0xff),
                    "the bad call writes nothing");
    for (const softmax_algo_t algo : device->algos()) {
      for (int n = 0; n < 3; ++n) problem.expect_right(algo, "a valid call after it", verdict);
    }
  }
}

void run_large_small_large(Device *device, const Entry &entry, Verdict *verdict) {
  for (const softmax_algo_t algo : device->algos()) {
    for (const std::int64_t columns : {entry.shape.at(1), std::int64_t{100}, entry.shape.at(1)}) {
      SmallProblem problem(device, own_input(entry, entry.shape.at(0), columns));
      problem.expect_right(algo, algo_label(algo) + " at N = " + std::to_string(columns), verdict);
    }
  }
}

// ---- null pointers ----

void run_null_pointers(Device *device, const Entry &, Verdict *verdict) {
  const softmax_handle_t handle = device->handle();
  const softmax_stream_t stream = device->stream();
  Guarded buffer(device, 64, 64, 0);
  const auto ptr = static_cast<float *>(buffer.data());
  const auto is = [&](softmax_status_t status, softmax_status_t expected, const char *call) {
    verdict->expect_status(status, expected, call);
  };
  constexpr softmax_status_t kNull = SOFTMAX_STATUS_NULL_POINTER;
  constexpr softmax_status_t kBadHandle = SOFTMAX_STATUS_BAD_HANDLE;
  constexpr std::int32_t f32 = SOFTMAX_DTYPE_F32;

  is(softmax_create(nullptr, device->ordinal()), kNull, "create(NULL)");
  is(softmax_destroy(nullptr), SOFTMAX_SUCCESS, "destroy(NULL)");
  softmax_handle_t twice = nullptr;
  is(softmax_create(&twice, device->ordinal()), SOFTMAX_SUCCESS, "create");
  is(softmax_destroy(twice), SOFTMAX_SUCCESS, "destroy");
  is(softmax_destroy(twice), kBadHandle, "destroy a second time");
  std::int32_t ordinal = 0;
  is(softmax_handle_device(nullptr, &ordinal), kBadHandle, "handle_device(NULL)");
  is(softmax_handle_device(handle, nullptr), kNull, "handle_device to NULL");
  verdict->expect(softmax_handle_description(nullptr, nullptr, 0) == 0, "description(NULL) is 0");
  verdict->expect(softmax_handle_description(handle, nullptr, 0) > 0, "a length needs no buffer");
  is(softmax_device_count(nullptr), kNull, "device_count(NULL)");
  is(softmax_set_workspace(nullptr, nullptr, 0), kBadHandle, "set_workspace(NULL)");
  is(softmax_set_workspace(handle, nullptr, 16), kNull, "set_workspace with bytes of NULL");

  for (const auto function : {softmax_forward, logsoftmax_forward}) {
    is(function(nullptr, 0, ptr, 2, 3, stream), kBadHandle, "forward with no handle");
    is(function(handle, 0, nullptr, 2, 3, stream), kNull, "forward with no pointer");
  }
  for (const auto function : {softmax_forward_to, logsoftmax_forward_to}) {
    is(function(nullptr, 0, ptr, f32, ptr, f32, 2, 3, stream), kBadHandle, "_to with no handle");
    is(function(handle, 0, nullptr, f32, ptr, f32, 2, 3, stream), kNull, "_to with no x");
    is(function(handle, 0, ptr, f32, nullptr, f32, 2, 3, stream), kNull, "_to with no y");
  }

  softmax_desc_t desc;
  is(softmax_desc_init(nullptr, sizeof desc, 0, f32, 2, 3), kNull, "desc_init(NULL)");
  is(softmax_desc_init(&desc, sizeof desc, 0, f32, 2, 3), SOFTMAX_SUCCESS, "desc_init");
  is(softmax_desc_check(nullptr), kNull, "desc_check(NULL)");
  softmax_args_t args = {};
  args.struct_size = sizeof args;
  args.x = ptr;
  args.y = ptr;
  softmax_args_t no_x = args;
  no_x.x = nullptr;
  softmax_args_t no_y = args;
  no_y.y = nullptr;
  is(softmax_execute(nullptr, 0, &desc, &args, stream), kBadHandle, "execute with no handle");
  is(softmax_execute(handle, 0, nullptr, &args, stream), kNull, "execute with no desc");
  is(softmax_execute(handle, 0, &desc, nullptr, stream), kNull, "execute with no args");
  is(softmax_execute(handle, 0, &desc, &no_x, stream), kNull, "execute with no x");
  is(softmax_execute(handle, 0, &desc, &no_y, stream), kNull, "execute with no y");

  softmax_choice_t choice = {};
  choice.struct_size = sizeof choice;
  is(softmax_select(nullptr, 0, &desc, &choice), kBadHandle, "select with no handle");
  is(softmax_select(handle, 0, nullptr, &choice), kNull, "select with no desc");
  is(softmax_select(handle, 0, &desc, nullptr), kNull, "select with no choice");

  softmax_algo_t algo = 0;
  is(softmax_algo_from_name(nullptr, &algo), kNull, "algo_from_name(NULL)");
  is(softmax_algo_from_name("naive", nullptr), kNull, "algo_from_name to NULL");
  verdict->expect(softmax_last_error(nullptr, 0) > 0, "last_error tells a length without a buffer");
  is(softmax_set_log(nullptr, nullptr, SOFTMAX_LOG_OFF), SOFTMAX_SUCCESS, "set_log(NULL)");

  device->finish();
  const std::vector<unsigned char> bytes = buffer.read();
  verdict->expect(bytes == std::vector<unsigned char>(bytes.size(), 0xff),
                  "none of it wrote anything");
}

// ---- the general call ----

// The log-sum-exp of a row that is -inf throughout is -inf.
void run_lse(Device *device, const Entry &entry, Verdict *verdict) {
  SmallProblem problem(device, own_input(entry, entry.shape.at(0), entry.shape.at(1)));
  Guarded lse(device, 4 * static_cast<std::size_t>(entry.shape.at(0)), 64, 0);
  const Call call = problem.call(SOFTMAX_ALGO_AUTO);
  softmax_desc_t desc;
  softmax_desc_init(&desc, sizeof desc, SOFTMAX_OP_LOGSOFTMAX, call.x_dtype, call.rows,
                    call.columns);
  softmax_args_t args = {};
  args.struct_size = sizeof args;
  args.x = call.x;
  args.y = call.y;
  args.lse = static_cast<float *>(lse.data());
  verdict->expect_status(
      softmax_execute(device->handle(), SOFTMAX_ALGO_AUTO, &desc, &args, device->stream()),
      SOFTMAX_SUCCESS, "execute with lse");
  const std::vector<unsigned char> bytes = lse.read();
  for (std::size_t at = 0; at + 4 <= bytes.size(); at += 4) {
    float value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    verdict->expect(value == -HUGE_VALF, "the log-sum-exp of nothing is -inf");
  }
}

}  // namespace

const std::vector<Special> kCallSpecials = {
    {"apache/mxnet#17792", run_empty, Where::kBoth, false, {"status", "pending_error"}},
    {"apache/mxnet#20005", run_empty, Where::kBoth, false, {"status", "buffer"}},
    {"pytorch/pytorch#17256", run_empty, Where::kBoth, false, {}},
    {"pytorch/pytorch#102723", run_every_pair, Where::kBoth, false, {"status"}},
    {"pytorch/pytorch#30572", run_half_to_float, Where::kBoth, false, {}},
    {"pytorch/pytorch#56325", run_offsets, Where::kBoth, false, {}},
    {"arrayfire/arrayfire#896", run_error_then_valid, Where::kBoth, false, {"status_seq"}},
    {"NVIDIA/cuopt#1095",
     run_large_small_large,
     Where::kBoth,
     false,
     {"status_seq", "pending_error"}},
    {"nasa/cFE#1267", run_null_pointers, Where::kBoth, false, {"status"}},
    {"microsoft/onnxruntime#28461", run_lse, Where::kBoth, true, {"lse"}},
};

}  // namespace reports
