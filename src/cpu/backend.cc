// The CPU backend's entry points: what the machine is, and which driver runs a problem.
#include "cpu/backend.h"

#include <omp.h>

#include <cstdio>
#include <cstring>

#include "cpu/drivers.h"
#include "cpu/general.h"
#include "cpu/kernels.h"
#include "cpu/targets.h"
#include "hwy/targets.h"

namespace softmax {
namespace {

// The processor's name from the kernel, "AMD EPYC 9654"; "" where it does not say.
void model_name(char *name, std::size_t capacity) {
  name[0] = '\0';
  std::FILE *file = std::fopen("/proc/cpuinfo", "r");
  if (file == nullptr) return;
  char line[256];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, "model name", 10) != 0) continue;
    const char *value = std::strchr(line, ':');
    if (value == nullptr) break;
    value += std::strspn(value + 1, " \t") + 1;
    std::snprintf(name, capacity, "%.*s", static_cast<int>(std::strcspn(value, "\n")), value);
    break;
  }
  std::fclose(file);
}

}  // namespace

void cpu_open(DeviceCaps *caps) {
  *caps = DeviceCaps{};
  char name[64];
  model_name(name, sizeof name);
  std::snprintf(caps->description, sizeof caps->description, "CPU (%s%s%s), %d thread%s", name,
                name[0] == '\0' ? "" : ", ", cpu_simd_name(), cpu_threads(),
                cpu_threads() == 1 ? "" : "s");
}

int cpu_threads() { return omp_get_max_threads(); }

const char *cpu_simd_name() {
  return hwy::TargetName(kernels_for(SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F32)->target);
}

void cpu_run(const Policy &policy, const Problem &problem, const Buffers &buffers) {
  switch (policy.algo) {
    case SOFTMAX_ALGO_NAIVE: return run_naive(problem, buffers);
    case SOFTMAX_ALGO_REFERENCE: return run_reference(problem, buffers);
    case SOFTMAX_ALGO_ONLINE: return run_online(problem, buffers);
    default: return run_vector(problem, buffers);
  }
}

void cpu_run_general(const Policy &policy, const Problem &problem, const General &general,
                     const GeneralBuffers &buffers) {
  const Call call{&problem, &general, &buffers};
  if (policy.algo == SOFTMAX_ALGO_REFERENCE) return run_reference_general(call);
  if (policy.algo == SOFTMAX_ALGO_ONLINE) return run_online_general(call);
  if (general.is_backward()) return run_vector_backward(call);
  run_vector_general(call);
}

}  // namespace softmax
