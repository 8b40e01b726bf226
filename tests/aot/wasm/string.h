/* string.h - the functions of C's string.h that objects and tests/aot/mains/run_case.h call, for WebAssembly; see
 * stdlib.h. */
#ifndef STRING_H
#define STRING_H

#include <stddef.h>
#include <stdint.h>

void *memcpy(void *to, const void *from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int byte, size_t n);

void *memmove(void *to, const void *from, size_t n) {
  unsigned char *y = to;
  const unsigned char *x = from;
  for (size_t k = 0; k < n; k++) {
    size_t i = (uintptr_t)to <= (uintptr_t)from ? k : n - 1 - k;
    y[i] = x[i];
  }
  return to;
}

void *memcpy(void *to, const void *from, size_t n) { return memmove(to, from, n); }

void *memset(void *to, int byte, size_t n) {
  unsigned char *y = to;
  for (size_t k = 0; k < n; k++) {
    y[k] = (unsigned char)byte;
  }
  return to;
}

static int memcmp(const void *a, const void *b, size_t n) {
  const unsigned char *x = a, *y = b;
  for (size_t k = 0; k < n; k++) {
    if (x[k] != y[k]) {
      return x[k] < y[k] ? -1 : 1;
    }
  }
  return 0;
}

#endif
