/* libraries.c - the versions of onnx-xla and of the library that the cpu target calls, as text. */
#include <pthread.h>
#include <stdio.h>

#include "backend_cpu/runtime/target.h"
#include "plugin/session/session.h"

static char whole[128];

const char *session_libraries(void) {
  const char *name = cpu_target.libraries();
  return name ? name : "";
}

static void write_whole(void) {
  const char *libraries = session_libraries();
  snprintf(whole, sizeof whole, "onnx-xla %s%s%s", PACKAGE_VERSION, *libraries ? ", " : "", libraries);
}

const char *session_version(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, write_whole);
  return whole;
}
