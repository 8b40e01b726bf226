/* session_compiler.c - finds and opens the compiler half, and backends. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend_cpu/exec_target.h"
#include "base/headroom.h"
#include "plugin/session.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const plug_compiler *compiler;
static char problem[1024];

/* Where it may lie: beside this library (the build tree), in the package's folder below it, or where it was configured to be.
 * False: there is no k-th place. */
static bool place(size_t k, char path[PATH_MAX]) {
  static const char name[] = "libonnx-xla-compiler.so";
  static const char *const patterns[] = {"%.*s/%s", "%.*s/.libs/%s", "%.*s/onnx-xla/%s", "%.*s/../lib/onnx-xla/%s"};
  enum { N_PATTERNS = sizeof patterns / sizeof *patterns };
  Dl_info self;
  const char *file = dladdr((void *)(uintptr_t)plug_now, &self) && self.dli_fname ? self.dli_fname : "";
  const char *slash = strrchr(file, '/');
  int n = k == N_PATTERNS ? snprintf(path, PATH_MAX, "%s/%s", ONNX_XLA_PKGLIBDIR, name)
          : k < N_PATTERNS ? snprintf(path, PATH_MAX, patterns[k], slash ? (int)(slash - file) : 1, slash ? file : ".", name)
                           : -1;
  if (n >= PATH_MAX) {
    *path = '\0';
  }
  return n >= 0;
}

bool plug_compiler_path(char path[PATH_MAX]) {
  for (size_t k = 0; place(k, path); k++) {
    if (access(path, R_OK) == 0) {
      return true;
    }
  }
  return false;
}

static void *open_beside(void) {
  char path[PATH_MAX];
  void *library = NULL;
  for (size_t k = 0; !library && place(k, path); k++) {
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  return library;
}

static void open_once(void) {
  status no_room = headroom_check(HEADROOM_COMPILER); /* LLVM's constructors run while it is opened */
  if (no_room) {
    snprintf(problem, sizeof problem, "%s", status_message(no_room));
    status_free(no_room);
    return;
  }
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
    return;
  }
  compiler->adopt_guard(guard_here());
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
