// Algorithm numbers and names.
#include "core/algo.h"

#include <strings.h>

#include "api/status.h"
#include "softmax.h"

extern "C" {

const char *softmax_algo_name(softmax_algo_t algo) { return softmax::algo_name(algo); }

softmax_status_t softmax_algo_from_name(const char *name, softmax_algo_t *algo) {
  using namespace softmax;
  if (name == nullptr || algo == nullptr) {
    return fail(SOFTMAX_STATUS_NULL_POINTER, "%s is NULL", name == nullptr ? "name" : "algo");
  }
  for (const AlgoName &entry : kAlgoNames) {
    if (strcasecmp(entry.name, name) == 0) {
      *algo = entry.algo;
      return SOFTMAX_SUCCESS;
    }
  }
  return fail(SOFTMAX_STATUS_BAD_ENUM, "no algorithm is called '%.64s'", name);
}

}  // extern "C"
