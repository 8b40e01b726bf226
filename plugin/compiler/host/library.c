/* library.c - see library.h. */
#include "plugin/compiler/host/library.h"

#include <dlfcn.h>

static status open_library(host_library *l) {
  void *before = dlopen(l->file, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  void *library = before ? before : dlopen(l->file, RTLD_NOW | RTLD_LOCAL);
  CHECK_THAT(library, STATUS_UNSUPPORTED, "%s cannot be opened: %s", l->title, dlerror());
  const char *missing = dynamic_library_find(library, l->n_functions, l->functions, l->pointers);
  CHECK_THAT(!missing, STATUS_UNSUPPORTED, "%s has no function %s", l->title, missing);
  if (!before && l->prepare) {
    l->prepare();
  }
  l->opened = true;
  return NULL;
}

status host_library_open(host_library *l) {
  pthread_mutex_lock(&l->lock);
  status failed = l->opened ? NULL : open_library(l);
  pthread_mutex_unlock(&l->lock);
  return failed;
}
