/* targets.c - finds the target of a backend by its name. */
#include <string.h>

#include "backend_cpu/runtime/target.h"
#include "plugin/session/session.h"

/* The targets in this library; the compiler library has others.  The first one is the default. */
static const rt_target *const own_targets[] = {&cpu_target};

const char *session_default_backend(void) { return own_targets[0]->name; }

status session_find_target(const char *backend, const rt_target **out) {
  for (size_t k = 0; k < sizeof own_targets / sizeof *own_targets; k++) {
    if (strcmp(backend, own_targets[k]->name) == 0) {
      *out = own_targets[k];
      return NULL;
    }
  }
  const compiler_api *c;
  const rt_backend *b;
  TRY(session_open_compiler(&c));
  TRY(c->backend(backend, &b));
  *out = b->target;
  return NULL;
}
