/* stdio.h - the part of C's stdio.h that tests/aot/mains/run_case.h needs, for WebAssembly.  There are three files,
 * whose bytes the host reads and writes: one for reading, one for writing, and the one for messages, stderr.  The host
 * takes the place and the size of each from the functions `file_bytes` and `file_size`. */
#ifndef STDIO_H
#define STDIO_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct FILE {
  unsigned char *bytes;
  size_t size, cap, at; /* `at` is how many bytes have been read */
} FILE;

enum { FILE_IN, FILE_OUT, FILE_MESSAGES, N_FILES };
static FILE files[N_FILES];

#define stderr (&files[FILE_MESSAGES])
#define EXPORTED(name) __attribute__((export_name(name)))

/* Makes room for a file of `size` bytes and returns its place. */
EXPORTED("make_file") unsigned char *make_file(int k, size_t size);
EXPORTED("file_bytes") unsigned char *file_bytes(int k);
EXPORTED("file_size") size_t file_size(int k);

unsigned char *make_file(int k, size_t size) {
  files[k] = (FILE){malloc(size), size, size, 0};
  return files[k].bytes;
}
unsigned char *file_bytes(int k) { return files[k].bytes; }
size_t file_size(int k) { return files[k].size; }

static FILE *fopen(const char *path, const char *mode) {
  (void)path;
  return &files[mode[0] == 'r' ? FILE_IN : FILE_OUT];
}
static int fclose(FILE *f) {
  (void)f;
  return 0;
}

static size_t fread(void *to, size_t size, size_t n, FILE *f) {
  size_t bytes = size * n;
  if (bytes > f->size - f->at) {
    return 0;
  }
  memcpy(to, f->bytes + f->at, bytes);
  f->at += bytes;
  return n;
}

static size_t fwrite(const void *from, size_t size, size_t n, FILE *f) {
  size_t bytes = size * n;
  if (f->size + bytes > f->cap) {
    f->cap = 2 * (f->size + bytes);
    unsigned char *more = malloc(f->cap);
    if (!more) {
      return 0;
    }
    memcpy(more, f->bytes, f->size);
    f->bytes = more;
  }
  memcpy(f->bytes + f->size, from, bytes);
  f->size += bytes;
  return n;
}

/* --- messages --- */

static void put_text(FILE *f, const char *text) {
  for (; *text; text++) {
    fwrite(text, 1, 1, f);
  }
}

static void put_number(FILE *f, long x) {
  char digits[24], *p = digits + sizeof digits - 1;
  unsigned long n = x < 0 ? 0ul - (unsigned long)x : (unsigned long)x;
  *p = '\0';
  do {
    *--p = (char)('0' + n % 10);
    n /= 10;
  } while (n);
  put_text(f, x < 0 ? "-" : "");
  put_text(f, p);
}

/* Knows "%s" and "%ld" only. */
static int fprintf(FILE *f, const char *form, ...) {
  __builtin_va_list args;
  __builtin_va_start(args, form);
  for (; *form; form++) {
    if (form[0] == '%' && form[1] == 's') {
      put_text(f, __builtin_va_arg(args, const char *));
      form++;
    } else if (form[0] == '%' && form[1] == 'l' && form[2] == 'd') {
      put_number(f, __builtin_va_arg(args, long));
      form += 2;
    } else {
      fwrite(form, 1, 1, f);
    }
  }
  __builtin_va_end(args);
  return 0;
}

#endif
