// Running problems. See problem.h.
#include "support/problem.h"

#include <cstdio>

namespace softmax_test {
namespace {

std::string last_error() {
  char text[512];
  softmax_last_error(text, sizeof text);
  return text;
}

softmax_status_t execute(softmax_handle_t handle, const Problem &problem, const void *x, void *y,
                         softmax_stream_t stream) {
  softmax_desc_t desc;
  const softmax_status_t status = softmax_desc_init(
      &desc, sizeof desc, problem.is_log ? SOFTMAX_OP_LOGSOFTMAX : SOFTMAX_OP_SOFTMAX,
      problem.types.x, problem.rows, problem.cols);
  if (status != SOFTMAX_SUCCESS) return status;
  desc.y_dtype = problem.types.y;
  desc.empty_row = problem.empty_is_zero ? SOFTMAX_EMPTY_ROW_ZERO : SOFTMAX_EMPTY_ROW_NAN;
  softmax_args_t args = {};
  args.struct_size = sizeof args;
  args.x = x;
  args.y = y;
  return softmax_execute(handle, problem.algo, &desc, &args, stream);
}

}  // namespace

std::string to_text(const Problem &p) {
  char text[256];
  const char *algo = softmax_algo_name(p.algo);
  std::snprintf(text, sizeof text, "%s %s, %s, %lld x %lld, %s, offsets %d and %d%s%s",
                p.is_log ? "log-softmax" : "softmax", algo != nullptr ? algo : "?", p.types.name,
                static_cast<long long>(p.rows), static_cast<long long>(p.cols),
                p.in_place ? "in place" : "out of place", p.x_offset,
                p.in_place ? p.x_offset : p.y_offset, p.empty_is_zero ? ", empty rows 0" : "",
                p.entry == Entry::kExecute ? ", by softmax_execute" : "");
  return text;
}

softmax_status_t call(softmax_handle_t handle, const Problem &p, const void *x, void *y,
                      softmax_stream_t stream) {
  if (p.entry == Entry::kExecute || p.empty_is_zero) return execute(handle, p, x, y, stream);
  if (x == y && p.types.x == SOFTMAX_DTYPE_F32 && p.types.y == SOFTMAX_DTYPE_F32) {
    auto *f = static_cast<float *>(y);
    return p.is_log ? logsoftmax_forward(handle, p.algo, f, p.rows, p.cols, stream)
                    : softmax_forward(handle, p.algo, f, p.rows, p.cols, stream);
  }
  return p.is_log ? logsoftmax_forward_to(handle, p.algo, x, p.types.x, y, p.types.y, p.rows,
                                          p.cols, stream)
                  : softmax_forward_to(handle, p.algo, x, p.types.x, y, p.types.y, p.rows, p.cols,
                                       stream);
}

Elements Runner::run(const Problem &p, const Elements &x, std::string *failure, bool otherwise) {
  failure->clear();
  x_.put(x, p.x_offset);
  if (!p.in_place) y_.poison(p.types.y, p.rows * p.cols, p.y_offset);
  Buffer &out = p.in_place ? x_ : y_;
  const auto body = [&] {
    return call(device_.handle(), p, x_.data(), out.data(), device_.stream());
  };
  const softmax_status_t status = otherwise ? device_.run_otherwise(body) : body();
  std::string damage;
  Elements y = out.get(&damage);
  if (status != SOFTMAX_SUCCESS) {
    *failure = to_text(p) + ": " + softmax_status_name(status) + ", " + last_error();
  } else if (!damage.empty()) {
    *failure = to_text(p) + ": output: " + damage;
  } else if (!p.in_place) {
    const Elements seen = x_.get(&damage);
    if (!damage.empty()) *failure = to_text(p) + ": input: " + damage;
    if (seen.bytes != x.bytes) *failure = to_text(p) + ": the input was changed";
  }
  return y;
}

std::string Runner::check(const Problem &problem, const Elements &x, const Reference &reference,
                          double *worst_ulps) {
  return check(problem, x, reference, promised_bound(problem.types.y), worst_ulps);
}

std::string Runner::check(const Problem &problem, const Elements &x, const Reference &reference,
                          const Bound &bound, double *worst_ulps) {
  std::string failure;
  const Elements y = run(problem, x, &failure);
  if (!failure.empty()) return failure;
  const Comparison result = compare(y, reference, problem.is_log, problem.cols, bound);
  if (worst_ulps != nullptr && result.worst_ulps > *worst_ulps) *worst_ulps = result.worst_ulps;
  return result.failure.empty() ? "" : to_text(problem) + ": " + result.failure;
}

}  // namespace softmax_test
