/* compiler_half.h - the compiler half as it was built, wherever it will be installed (session_compiler.c has the real search).
 * Included once by a test that opens sessions. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend_cpu/exec_target.h"
#include "plugin/session.h"

status plug_compiler_open(const plug_compiler **out) {
  const char *top = getenv("top_builddir"), *given = getenv("ONNX_XLA_COMPILER");
  char name[4096];
  snprintf(name, sizeof name, "%s/.libs/libonnx-xla-compiler.so", top ? top : ".");
  void *library = dlopen(given ? given : name, RTLD_NOW | RTLD_LOCAL);
  plug_compiler_entry *entry = NULL;
  if (library) {
    *(void **)&entry = dlsym(library, "onnx_xla_compiler_get");
  }
  *out = entry ? entry(PLUG_COMPILER_ABI) : NULL;
  CHECK_THAT(*out, STATUS_IO, "no compiler half: %s", dlerror());
  return NULL;
}

status plug_target_find(const char *name, const rt_target **out) {
  const plug_compiler *c;
  const rt_backend *b;
  TRY(plug_compiler_open(&c));
  TRY(c->backend(name, &b));
  *out = strcmp(name, "cpu") == 0 ? &cpu_target : b->target;
  return NULL;
}
