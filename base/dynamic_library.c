/* dynamic_library.c - see dynamic_library.h. */
#include "base/dynamic_library.h"

#include <dlfcn.h>
#include <string.h>

const char *dynamic_library_find(void *library, size_t n, const dynamic_function *functions, void *out) {
  for (size_t k = 0; k < n; k++) {
    void *address = dlsym(library, functions[k].name);
    if (!address) {
      return functions[k].name;
    }
    memcpy((char *)out + functions[k].offset, &address, sizeof address);
  }
  return NULL;
}
