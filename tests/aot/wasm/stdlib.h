/* stdlib.h - the part of C's stdlib.h that tests/aot/mains/run_case.h needs, for WebAssembly without a C library.  A
 * program includes these headers in one file only, which defines the functions. */
#ifndef STDLIB_H
#define STDLIB_H

#include <stddef.h>
#include <stdint.h>

extern unsigned char __heap_base;

/* Allocates memory that is never freed, since a program runs one case only. */
void *malloc(size_t n);
void *malloc(size_t n) {
  static uintptr_t end;
  const size_t page = 65536, align = 16;
  uintptr_t begin = end ? end : ((uintptr_t)&__heap_base + align - 1) / align * align;
  size_t pages = (size_t)__builtin_wasm_memory_size(0);
  if (n > SIZE_MAX / 2 - begin) {
    return NULL;
  }
  uintptr_t wanted = (begin + n + align - 1) / align * align;
  size_t more = wanted > pages * page ? (wanted - pages * page + page - 1) / page : 0;
  if (more && __builtin_wasm_memory_grow(0, more) == SIZE_MAX) {
    return NULL;
  }
  end = wanted;
  return (void *)begin;
}

/* Memory that has grown is full of zeros. */
static void *calloc(size_t n, size_t size) { return malloc(n * size); }

static int atoi(const char *text) {
  int n = 0;
  while (*text >= '0' && *text <= '9') {
    n = 10 * n + *text++ - '0';
  }
  return n;
}

static _Noreturn void exit(int code) {
  (void)code;
  __builtin_trap();
}

#endif
