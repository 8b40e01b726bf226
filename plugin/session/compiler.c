/* compiler.c - finds and opens the compiler library. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/headroom.h"
#include "plugin/session/session.h"

static const char library_name[] = "libonnx-xla-compiler.so";

/* Finds the folder of the file that contains this code, a library or the program.  For a program that was found in
 * PATH, dladdr gives a name without a folder.  Its folder then comes from /proc/self/exe: the current folder must not
 * be searched, since its files may be somebody else's.  Returns false if the folder is not known. */
static bool own_folder(char folder[PATH_MAX]) {
  Dl_info self;
  bool known = dladdr((void *)(uintptr_t)session_version, &self) && self.dli_fname;
  snprintf(folder, PATH_MAX, "%s", known ? self.dli_fname : "");
  if (!strchr(folder, '/')) {
    ssize_t n = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    folder[n > 0 ? n : 0] = '\0';
  }
  char *slash = strrchr(folder, '/');
  if (slash) {
    *slash = '\0';
  }
  return slash != NULL;
}

/* Writes the k-th path at which the compiler library may be.  Relative to the folder of this library or program, these
 * are the folder itself, .libs (the build tree), onnx-xla and ../lib/onnx-xla (the package); the last one is the folder
 * that was configured.  Returns false if there are no more paths; a path that is too long is written as "". */
static bool nth_path(size_t k, char path[PATH_MAX]) {
  static const char *const folders[] = {"", "/.libs", "/onnx-xla", "/../lib/onnx-xla"};
  enum { N_FOLDERS = sizeof folders / sizeof *folders };
  char own[PATH_MAX];
  if (k > N_FOLDERS) {
    return false;
  }
  int n = k == N_FOLDERS    ? snprintf(path, PATH_MAX, "%s/%s", ONNX_XLA_PKGLIBDIR, library_name)
          : own_folder(own) ? snprintf(path, PATH_MAX, "%s%s/%s", own, folders[k], library_name)
                            : PATH_MAX;
  if (n >= PATH_MAX) {
    *path = '\0';
  }
  return true;
}

bool session_compiler_path(char path[PATH_MAX]) {
  for (size_t k = 0; nth_path(k, path); k++) {
    if (access(path, R_OK) == 0) {
      return true;
    }
  }
  return false;
}

static status open_library(void **library) {
  char path[PATH_MAX];
  CHECK_THAT(session_compiler_path(path), STATUS_UNSUPPORTED | STATUS_ABOUT_BACKEND,
             "it lies neither beside this one nor in %s", ONNX_XLA_PKGLIBDIR);
  TRY(headroom_check(HEADROOM_COMPILER)); /* LLVM's constructors need memory while the library is opened */
  *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!*library) {
    TRY(headroom_check(HEADROOM_COMPILER)); /* another thread may have taken the memory meanwhile */
  }
  CHECK_THAT(*library, STATUS_UNSUPPORTED | STATUS_ABOUT_BACKEND, "%s", dlerror());
  return NULL;
}

static status open_compiler(const compiler_api **out) {
  void *library;
  compiler_entry *entry;
  TRY(open_library(&library));
  *(void **)&entry = dlsym(library, "onnx_xla_compiler_get");
  CHECK_THAT(entry, STATUS_UNSUPPORTED | STATUS_ABOUT_BACKEND, "%s", dlerror());
  *out = entry(COMPILER_ABI);
  CHECK_THAT(*out, STATUS_UNSUPPORTED | STATUS_ABOUT_BACKEND, "it is of another version");
  (*out)->adopt_guard(guard_here());
  return NULL;
}

/* Only success is remembered: a failure, which is most likely a lack of memory, may not occur the next time. */
status session_open_compiler(const compiler_api **out) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static const compiler_api *_Atomic opened;
  status failed = NULL;
  *out = atomic_load(&opened);
  if (!*out) {
    pthread_mutex_lock(&lock);
    *out = atomic_load(&opened);
    failed = *out ? NULL : open_compiler(out);
    atomic_store(&opened, *out);
    pthread_mutex_unlock(&lock);
  }
  return status_prefix(failed, "the compiler half (%s) cannot be opened", library_name);
}
