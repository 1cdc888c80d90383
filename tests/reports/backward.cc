// The entries of op "backward".
#include <cmath>

#include "element.h"
#include "matrix.h"
#include "special.h"

namespace reports {
namespace {

// More than that is not worth the time of a host.
constexpr std::int64_t kMostElements = std::int64_t{1} << 24;

softmax_args_t backward_args(const void *y, const void *dy, void *dx) {
  softmax_args_t args = {};
  args.struct_size = sizeof args;
  args.y = const_cast<void *>(y);
  args.dy = dy;
  args.dx = dx;
  return args;
}

// y = log_softmax(x) and dy = 1: dx = 1 - exp(y) N, each rounded once.
void expect_right(Device *device, softmax_algo_t algo, const softmax_desc_t &desc,
                  const Input &input, std::size_t offset, Verdict *verdict) {
  const std::int32_t dtype = input.dtype;
  const auto size = static_cast<std::size_t>(format_of(dtype).bytes);
  const std::size_t bytes = static_cast<std::size_t>(input.count()) * size;
  Guarded y(device, bytes, 4096, offset);
  Guarded dy(device, bytes, 4096, (offset + 4) % 16);
  Guarded dx(device, bytes, 4096, (offset + 8) % 16);
  y.write(encode_all(input));
  std::vector<unsigned char> ones(bytes);
  for (std::size_t i = 0; i < bytes; i += size) encode(dtype, 1.0L, ones.data() + i);
  dy.write(ones);
  const auto *x = y.data();
  verdict->expect_status(
      logsoftmax_forward_to(device->handle(), SOFTMAX_ALGO_AUTO, x, dtype, y.data(), dtype,
                            input.rows, input.columns, device->stream()),
      SOFTMAX_SUCCESS, "the forward call");
  const std::vector<unsigned char> y_before = y.read();
  const softmax_args_t args = backward_args(y.data(), dy.data(), dx.data());
  verdict->expect_status(softmax_execute(device->handle(), algo, &desc, &args, device->stream()),
                         SOFTMAX_SUCCESS, "backward by " + algo_label(algo));
  const std::vector<unsigned char> result = dx.read();
  verdict->expect(y.read() == y_before && dy.read() == ones, "y and dy are unchanged");
  verdict->expect(y.guards_untouched() && dy.guards_untouched() && dx.guards_untouched(),
                  "the guards are untouched");
  for (std::int64_t i = 0; i < input.count(); ++i) {
    const long double p = std::exp(static_cast<long double>(decode_at(dtype, y_before.data(), i)));
    const long double expected = 1 - p * static_cast<long double>(input.columns);
    const long double error = std::fabs(decode_at(dtype, result.data(), i) - expected);
    const long double slack = 1e-13L * (1 + std::fabs(expected));
    verdict->expect(error <= 0.51L * ulp_at(dtype, expected) + slack,
                    "dx at " + std::to_string(i) + " is right");
  }
}

}  // namespace

void expect_backward(Device *device, const Entry &entry, Verdict *verdict) {
  const std::int32_t dtype = dtype_of(entry.dtype);
  const std::int64_t rows = entry.shape.at(0);
  const std::int64_t columns = entry.shape.at(1);
  softmax_desc_t desc;
  softmax_desc_init(&desc, sizeof desc, SOFTMAX_OP_LOGSOFTMAX, dtype, rows, columns);
  desc.direction = SOFTMAX_DIRECTION_BACKWARD;
  if (rows == 0) {
    const softmax_args_t args = backward_args(nullptr, nullptr, nullptr);
    verdict->expect_status(
        softmax_execute(device->handle(), SOFTMAX_ALGO_AUTO, &desc, &args, device->stream()),
        SOFTMAX_SUCCESS, "backward of no rows");
    return;
  }
  if (rows * columns > kMostElements) return;  // large.cc has it
  const Input input = make_input(entry.gen, dtype, rows, columns);
  const softmax_algo_t other = device->is_cuda() ? SOFTMAX_ALGO_ONLINE : SOFTMAX_ALGO_REFERENCE;
  for (const softmax_algo_t algo : {softmax_algo_t{SOFTMAX_ALGO_AUTO}, other}) {
    for (const std::size_t offset : {std::size_t{0}, std::size_t{4}, std::size_t{12}}) {
      expect_right(device, algo, desc, input, offset, verdict);
    }
  }
}

}  // namespace reports
