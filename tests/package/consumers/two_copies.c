/* A program that holds the static library and exports its names, and loads the shared one besides:
 * each must run its own code. argv[1] is libsoftmax.so. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <softmax.h>
#include <stdio.h>

typedef softmax_status_t (*create_fn)(softmax_handle_t *, int32_t);
typedef softmax_status_t (*destroy_fn)(softmax_handle_t);
typedef softmax_status_t (*forward_fn)(softmax_handle_t, softmax_algo_t, float *, int64_t, int64_t,
                                       softmax_stream_t);
typedef size_t (*last_error_fn)(char *, size_t);

int main(int argc, char **argv) {
  void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
  softmax_handle_t mine = NULL, theirs = NULL;
  float row[2] = {3, 3};
  create_fn create;
  destroy_fn destroy;
  forward_fn forward;
  last_error_fn last_error;
  if (library == NULL) return 10;
  *(void **)&create = dlsym(library, "softmax_create");
  *(void **)&destroy = dlsym(library, "softmax_destroy");
  *(void **)&forward = dlsym(library, "logsoftmax_forward");
  *(void **)&last_error = dlsym(library, "softmax_last_error");
  if (!create || !destroy || !forward || !last_error || forward == logsoftmax_forward) return 11;
  if (softmax_create(&mine, SOFTMAX_DEVICE_CPU) || create(&theirs, SOFTMAX_DEVICE_CPU)) return 12;

  if (forward(theirs, SOFTMAX_ALGO_AUTO, row, -1, 2, NULL) != SOFTMAX_STATUS_BAD_SHAPE) return 13;
  if (last_error(NULL, 0) == 0 || softmax_last_error(NULL, 0) != 0) return 14;
  if (softmax_forward(mine, SOFTMAX_ALGO_AUTO, row, 1, 2, NULL)) return 15;
  if (row[0] != 0.5f || row[1] != 0.5f) return 16;
  if (forward(theirs, SOFTMAX_ALGO_AUTO, row, 2, 1, NULL)) return 17;
  if (row[0] != 0 || row[1] != 0) return 18;
  if (softmax_destroy(mine) || destroy(theirs)) return 19;
  puts("both work");
  return 0;
}
