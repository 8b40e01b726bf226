/* compiler_half.h - opens the compiler library in the build tree, in place of plugin/session/compiler.c,
 * which searches where it is installed.  Included once by a test that opens sessions. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/session/session.h"

bool session_compiler_path(char path[PATH_MAX]) {
  const char *top = getenv("top_builddir"), *given = getenv("ONNX_XLA_COMPILER");
  snprintf(path, PATH_MAX, "%s/.libs/libonnx-xla-compiler.so", top ? top : ".");
  if (given) {
    snprintf(path, PATH_MAX, "%s", given);
  }
  return access(path, R_OK) == 0;
}

status session_open_compiler(const compiler_api **out) {
  char path[PATH_MAX];
  (void)session_compiler_path(path);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  compiler_entry *entry = NULL;
  if (library) {
    *(void **)&entry = dlsym(library, "onnx_xla_compiler_get");
  }
  *out = entry ? entry(COMPILER_ABI) : NULL;
  CHECK_THAT(*out, STATUS_IO, "no compiler half: %s", dlerror());
  return NULL;
}
