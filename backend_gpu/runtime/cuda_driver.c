/* cuda_driver.c - see cuda_driver.h. */
#include "backend_gpu/runtime/cuda_driver.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dynamic_library.h"

static const char variable[] = "ONNX_XLA_CUDA_DRIVER";

/* The process that was the first to use the driver, or 0 if none has used it.  It is set before the lock is taken, so
 * that a process which is forked meanwhile does not wait for a lock that nobody will unlock. */
static _Atomic pid_t user;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static bool opened, initialised;
static cuda_driver driver; /* its functions, once it is opened */
static char file[PATH_MAX + 50];

status cuda_driver_check_process(void) {
  pid_t none = 0, here = getpid();
  if (!atomic_compare_exchange_strong(&user, &none, here)) {
    CHECK_THAT(none == here, STATUS_UNSUPPORTED | STATUS_ABOUT_BACKEND,
               "process %d has used CUDA and then forked this one, in which CUDA's driver does not work", (int)none);
  }
  return NULL;
}

static status find_functions(void *library, const char *path, cuda_driver *out) {
#define CUDA_FUNCTION(name, parameters) {#name, offsetof(cuda_driver, name)},
  static const dynamic_function functions[] = {
#include "backend_gpu/runtime/cuda_functions.def"
  };
  const char *missing = dynamic_library_find(library, sizeof functions / sizeof *functions, functions, out);
  CHECK_THAT(!missing, STATUS_UNSUPPORTED | STATUS_ABOUT_BACKEND,
             "the driver of CUDA, %s, has no function %s: it is too old", path, missing);
  return NULL;
}

/* Sets `file` to the path, size and time of the driver's file.  libcuda.so.1 is a link to it, and its name has the
 * version of the driver. */
static void describe_file(void) {
  Dl_info library;
  struct stat st;
  char path[PATH_MAX];
  void *function = NULL;
  memcpy(&function, &driver.cuInit, sizeof function);
  if (dladdr(function, &library) && realpath(library.dli_fname, path) && stat(path, &st) == 0) {
    snprintf(file, sizeof file, "%s %lld %lld", path, (long long)st.st_size, (long long)st.st_mtime);
  }
}

const char *cuda_driver_file(void) { return file; }

static status open_driver(void) {
  const char *other = getenv(variable), *path = other && *other ? other : "libcuda.so.1";
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  CHECK_THAT(library, STATUS_UNSUPPORTED | STATUS_ABOUT_BACKEND, "there is no driver of CUDA: %s", dlerror());
  status failed = find_functions(library, path, &driver);
  if (failed) {
    dlclose(library);
  } else {
    describe_file();
  }
  opened = !failed;
  return failed;
}

/* Once one of its functions was called, the driver stays open: it may have started threads. */
static status initialise(void) {
  TRY(opened ? NULL : open_driver());
  CUresult r = driver.cuInit(0);
  CHECK_THAT(r == CUDA_SUCCESS, STATUS_UNSUPPORTED | STATUS_ABOUT_BACKEND, "starting the driver of CUDA: %s",
             cuda_driver_explain(&driver, r).text);
  initialised = true;
  return NULL;
}

status cuda_driver_start(const cuda_driver **out) {
  TRY(cuda_driver_check_process());
  pthread_mutex_lock(&lock);
  status failed = initialised ? NULL : initialise();
  pthread_mutex_unlock(&lock);
  *out = failed ? NULL : &driver;
  return failed;
}

cuda_error_text cuda_driver_explain(const cuda_driver *cu, CUresult error) {
  const char *name = NULL, *meaning = NULL;
  cuda_error_text out;
  if (cu->cuGetErrorName(error, &name) != CUDA_SUCCESS || cu->cuGetErrorString(error, &meaning) != CUDA_SUCCESS ||
      !name || !meaning) {
    snprintf(out.text, sizeof out.text, "CUDA's error %d, which the driver does not explain", error);
  } else {
    snprintf(out.text, sizeof out.text, "%s (%s)", name, meaning);
  }
  return out;
}
