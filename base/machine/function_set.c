/* function_set.c - searches the sorted list of functions; see function_set.h. */
#include "base/machine/function_set.h"

#include <stdlib.h>
#include <string.h>

static int by_name(const void *name, const void *function) {
  return strcmp(name, ((const named_function *)function)->name);
}

const named_function *function_set_find(const function_set *s, const char *name) {
  return s->n ? bsearch(name, s->functions, s->n, sizeof *s->functions, by_name) : NULL;
}
