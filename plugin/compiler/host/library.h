/* library.h - libraries that only some host-interpreted operators call.  They are opened when such a node runs for the
 * first time, so that they cost other models nothing, and stay open. */
#ifndef PLUGIN_COMPILER_HOST_LIBRARY_H
#define PLUGIN_COMPILER_HOST_LIBRARY_H

#include <pthread.h>

#include "base/dynamic_library.h"
#include "base/status.h"

typedef struct host_library {
  const char *title, *file; /* such as "PCRE2", and the name by which the loader finds it */
  size_t n_functions;
  const dynamic_function *functions;
  void *pointers; /* the struct with the pointers to the functions */
  /* Called once when the library has been opened, unless something else in the process had loaded it before; may be
   * NULL. */
  void (*prepare)(void);
  pthread_mutex_t lock;
  bool opened;
} host_library;

/* Opens the library, unless it is open.  May be called from several threads at once. */
STATUS_MUST_USE status host_library_open(host_library *l);

#endif
