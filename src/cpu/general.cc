// The general call on the CPU. Nothing of it is computed yet: see api/lacking.cc.
#include "cpu/backend.h"

namespace softmax {

void cpu_run_general(const Policy &, const Problem &, const General &, const GeneralBuffers &) {}

}  // namespace softmax
