/* filetype.c - says of which type files are, by their contents, with the model magika as an object.
 *
 *   filetype FILE...
 *
 * The model's input is the first and the last 1024 bytes of the file, as integers, without the white space at the ends
 * of its first and last 4096 bytes; 256 stands where there is no byte.  The output is the probability of each type. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "magika.h"

enum { HALF = 1024, BLOCK = 4096, NO_BYTE = 256, TYPES = MAGIKA_OUT_TARGET_LABEL_DIM1 };

/* The names of the types, a list of strings with commas that the Makefile takes from the model's configuration. */
static const char *const types[TYPES] = {
#include "types.inc"
};

static magika net;
static char memory[MAGIKA_ARENA_BYTES + MAGIKA_ALIGN];

/* Reads the first bytes of the file, or its last ones.  Returns how many these are, at most BLOCK; 0 after an error. */
static size_t read_end(FILE *f, int last, unsigned char *out) {
  long size = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : 0;
  return fseek(f, last && size > BLOCK ? size - BLOCK : 0, SEEK_SET) == 0 ? fread(out, 1, BLOCK, f) : 0;
}

/* Fills the model's input: the first half begins with the file's first byte that is not white space, and the second
 * half ends with the last one. */
static void fill_input(FILE *f, int32_t *in) {
  unsigned char bytes[BLOCK];
  size_t n = read_end(f, 0, bytes), begin = 0;
  while (begin < n && isspace(bytes[begin])) {
    begin++;
  }
  while (n < BLOCK && n > begin && isspace(bytes[n - 1])) { /* n < BLOCK: the end of the file is in this block, too */
    n--;
  }
  for (size_t k = 0; k < HALF; k++) {
    in[k] = begin + k < n ? bytes[begin + k] : NO_BYTE;
  }
  n = read_end(f, 1, bytes);
  while (n > 0 && isspace(bytes[n - 1])) {
    n--;
  }
  for (size_t k = 0; k < HALF; k++) {
    in[2 * HALF - 1 - k] = k < n ? bytes[n - 1 - k] : NO_BYTE;
  }
}

/* Prints the most probable type of a file. */
static int print_type(const char *path) {
  FILE *f = fopen(path, "rb");
  const float *probable = magika_out_target_label(&net);
  int best = 0, error;
  if (!f) {
    fprintf(stderr, "filetype: %s cannot be opened\n", path);
    return 1;
  }
  fill_input(f, magika_in_bytes(&net));
  fclose(f);
  error = magika_run(&net);
  for (int k = 1; k < TYPES; k++) {
    best = probable[k] > probable[best] ? k : best;
  }
  printf("%s: %s (%.2f)\n", path, error ? magika_error_text(error) : types[best], (double)probable[best]);
  return error;
}

int main(int argc, char **argv) {
  int error = magika_init(&net, NULL);
  error = error ? error : magika_bind(&net, memory + MAGIKA_ALIGN - (uintptr_t)memory % MAGIKA_ALIGN);
  for (int k = 1; k < argc && !error; k++) {
    error = print_type(argv[k]);
  }
  return error != 0;
}
