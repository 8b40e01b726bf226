/* libraries.c - the versions of onnx-xla and of the kernel libraries in this process, as text. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "plugin/session/session.h"

#ifdef HAVE_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

static char text[128] = "", whole[192] = "";

static void add(const char *name, const char *version) {
  size_t n = strlen(text);
  snprintf(text + n, sizeof text - n, "%s%s %s", n ? ", " : "", name, version);
}

static void look(void) {
#ifdef HAVE_ONEDNN
  char number[32];
  const dnnl_version_t *v = dnnl_version();
  snprintf(number, sizeof number, "%d.%d.%d", v->major, v->minor, v->patch);
  add("oneDNN", number);
#endif
  /* OpenBLAS is asked only if it is mapped already, since loading it starts threads. */
  char *(*config)(void);
  *(void **)&config = dlsym(RTLD_DEFAULT, "openblas_get_config");
  if (config) { /* the function returns "OpenBLAS 0.3.21 NO_LAPACKE ..." */
    char version[32] = "";
    add("OpenBLAS", sscanf(config(), "OpenBLAS %31s", version) == 1 ? version : "of some version");
  }
  snprintf(whole, sizeof whole, *text ? "onnx-xla %s (%s)" : "onnx-xla %s", PACKAGE_VERSION, text);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

const char *session_libraries(void) {
  pthread_once(&once, look);
  return text;
}

const char *session_version(void) {
  pthread_once(&once, look);
  return whole;
}
