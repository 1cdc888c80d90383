// See error.h.
#include "error.h"

namespace tool {

std::string last_library_error() {
  char sentence[1024];
  softmax_last_error(sentence, sizeof sentence);
  return sentence;
}

void check(softmax_status_t status) {
  if (status == SOFTMAX_SUCCESS) return;
  const int category = status / 1000;
  throw Error(category == 1 || category == 2 ? kExitBadInput : kExitFailure, last_library_error());
}

}  // namespace tool
