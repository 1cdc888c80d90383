// softmax.hpp in one program with the library's own headers, linked to the library that they
// describe: two owners of the namespace softmax, and no name in both.
#include <softmax.hpp>

#include "api/handle.h"
#include "api/intake.h"
#include "core/algo.h"
#include "core/dtype.h"
#include "core/numerics.h"
#include "core/problem.h"
#include "select/select.h"

int main() {
  softmax::Handle handle(SOFTMAX_DEVICE_CPU);
  softmax::Problem problem;
  problem.rows = 2;
  if (!softmax::is_alive(handle.get()) || problem.has_work()) return 1;
  const softmax::Status status = softmax_desc_check(nullptr);
  try {
    softmax::throw_on_error(status);
  } catch (const softmax::Error &error) {
    return error.status() == status ? 0 : 2;
  }
  return 3;
}
