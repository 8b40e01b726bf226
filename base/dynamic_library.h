/* dynamic_library.h - the functions of a library that is opened while the process runs. */
#ifndef BASE_DYNAMIC_LIBRARY_H
#define BASE_DYNAMIC_LIBRARY_H

#include <stddef.h>

/* A function by the name that the library exports, and where its pointer is in the caller's struct. */
typedef struct dynamic_function {
  const char *name;
  size_t offset;
} dynamic_function;

/* Sets the pointers of n functions in *out.  `library` is what dlopen returned.  Returns the name of the first function
 * that the library lacks, or NULL if it has all of them. */
const char *dynamic_library_find(void *library, size_t n, const dynamic_function *functions, void *out);

#endif
