// One problem: what is computed, how it is called, and the check of everything that it must and
// must not do. A problem is one line of text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "support/buffer.h"
#include "support/compare.h"
#include "support/device.h"
#include "support/inputs.h"
#include "support/reference.h"

namespace softmax_test {

// By which function the library is called.
enum class Entry {
  kFlat,     // softmax_forward where it serves, softmax_forward_to otherwise
  kExecute,  // softmax_execute
};

struct Problem {
  softmax_algo_t algo = SOFTMAX_ALGO_AUTO;
  TypePair types = kTypePairs[0];
  bool is_log = false;
  bool in_place = false;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  int x_offset = 0;  // elements past an aligned address
  int y_offset = 0;
  bool empty_is_zero = false;
  Entry entry = Entry::kFlat;
};

std::string to_text(const Problem &problem);

// Calls the library on buffers of the device's.
softmax_status_t call(softmax_handle_t handle, const Problem &problem, const void *x, void *y,
                      softmax_stream_t stream);

// Runs problems on one device, over and over in the same memory.
class Runner {
 public:
  explicit Runner(Device &device) : device_(device), x_(device), y_(device) {}

  Device &device() { return device_; }

  // The output of the problem, or in *failure a sentence where the call failed, wrote outside its
  // output, or changed its input. `otherwise`: see Device::run_otherwise.
  Elements run(const Problem &problem, const Elements &x, std::string *failure,
               bool otherwise = false);

  // Runs and compares with the reference: "" where everything is right, or a sentence that begins
  // with the problem's line. Adds to *worst_ulps where one is given.
  std::string check(const Problem &problem, const Elements &x, const Reference &reference,
                    double *worst_ulps = nullptr);
  std::string check(const Problem &problem, const Elements &x, const Reference &reference,
                    const Bound &bound, double *worst_ulps = nullptr);

 private:
  Device &device_;
  Buffer x_, y_;
};

// Whether a problem in place makes sense for the types.
inline bool can_be_in_place(const TypePair &types) { return types.x == types.y; }

}  // namespace softmax_test
