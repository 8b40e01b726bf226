/* session_compiler.c - finds and opens the compiler half, and backends. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backend_cpu/exec_target.h"
#include "plugin/session.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const plug_compiler *compiler;
static char problem[1024];

/* Beside this library (the build tree), in the package's folder below it, or where it was configured to be. */
static void *open_beside(void) {
  static const char name[] = "libonnx-xla-compiler.so";
  static const char *const patterns[] = {"%s/%s", "%s/.libs/%s", "%s/onnx-xla/%s", "%s/../lib/onnx-xla/%s"};
  Dl_info self;
  char folder[PATH_MAX], path[PATH_MAX + 64];
  void *library = NULL;
  if (dladdr((void *)(uintptr_t)plug_now, &self) && self.dli_fname && strlen(self.dli_fname) < sizeof folder) {
    strcpy(folder, self.dli_fname);
    char *slash = strrchr(folder, '/');
    strcpy(slash ? slash : folder, slash ? "" : ".");
    for (size_t k = 0; !library && k < sizeof patterns / sizeof *patterns; k++) {
      snprintf(path, sizeof path, patterns[k], folder, name);
      library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
  }
  if (!library) {
    snprintf(path, sizeof path, "%s/%s", ONNX_XLA_PKGLIBDIR, name);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  return library;
}

static void open_once(void) {
  void *library = open_beside();
  plug_compiler_entry *entry = NULL;
  if (library) {
    *(void **)&entry = dlsym(library, "onnx_xla_compiler_get");
  }
  if (!entry) {
    const char *why = dlerror();
    snprintf(problem, sizeof problem, "%s", why ? why : "not found");
    return;
  }
  compiler = entry(PLUG_COMPILER_ABI);
  if (!compiler) {
    snprintf(problem, sizeof problem, "it is of another version");
  }
}

status plug_compiler_open(const plug_compiler **out) {
  pthread_once(&once, open_once);
  *out = compiler;
  CHECK_THAT(compiler, STATUS_UNSUPPORTED | STATUS_ABOUT_BACKEND,
             "the compiler half (libonnx-xla-compiler.so) cannot be opened: %s", problem);
  return NULL;
}

status plug_target_find(const char *backend, const rt_target **out) {
  if (strcmp(backend, "cpu") == 0) {
    *out = &cpu_target;
    return NULL;
  }
  const plug_compiler *c;
  const rt_backend *b;
  TRY(plug_compiler_open(&c));
  TRY(c->backend(backend, &b));
  *out = b->target;
  return NULL;
}
