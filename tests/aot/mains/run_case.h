/* run_case.h - the main function of a program with several objects, which runs one of them on inputs from a file and
 * writes its outputs to another.
 *
 * programs.py writes the table of objects, and includes this file behind the headers of the objects.  All numbers in
 * the files are 64-bit integers.  The file of inputs has the number of open dimensions, these dimensions, and the
 * number of inputs; then for each input its rank, its dimensions, the number of its bytes, and its bytes.  The file of
 * outputs has the same for each output. */
#ifndef RUN_CASE_H
#define RUN_CASE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An object: its tables and its functions, where void * stands for the type of its context. */
typedef struct object_case {
  size_t context_bytes;
  uint32_t n_dims, n_inputs, n_outputs;
  const onnx_xla_value *inputs, *outputs;
  int (*init)(void *n);
  uint64_t (*arena_bytes)(const int64_t *dims);
  int (*bind)(void *n, void *arena, const int64_t *dims);
  int (*run)(void *n);
  const char *(*error_text)(int error);
  int (*set_input)(void *n, uint32_t k, const void *memory);
  int (*set_output)(void *n, uint32_t k, void *memory);
  void *(*input)(void *n, uint32_t k);
  void *(*output)(void *n, uint32_t k);
  int (*input_dims)(const void *n, uint32_t k, int64_t *dims);
  int (*output_dims)(const void *n, uint32_t k, int64_t *dims);
  void (*set_parallel)(void *n, onnx_xla_parallel *parallel, void *user);
} object_case;

enum { MOST_RANK = 64, ALIGN = 64, GUARD = 256, GUARD_BYTE = 0x5a };

static void fail(const char *what, long number, const char *text) {
  fprintf(stderr, "%s %ld: %s\n", what, number, text);
  exit(1);
}

static void check(const object_case *c, int error, const char *what) {
  if (error) {
    fail(what, error, c->error_text(error));
  }
}

/* --- memory with a guard behind it --- */

/* Returns memory that begins `odd` bytes after a multiple of ALIGN.  The memory and a guard of GUARD bytes behind it
 * are filled with GUARD_BYTE. */
static unsigned char *take(uint64_t bytes, size_t odd) {
  unsigned char *block = malloc((size_t)bytes + 2 * ALIGN + GUARD);
  if (!block) {
    fail("memory", 0, "there is not enough");
  }
  unsigned char *memory = block + (ALIGN - (uintptr_t)block % ALIGN) + odd;
  memset(memory, GUARD_BYTE, (size_t)bytes + GUARD);
  return memory;
}

static void check_guard(const unsigned char *memory, uint64_t bytes, const char *what, uint32_t k) {
  for (int i = 0; i < GUARD; i++) {
    if (memory[bytes + (uint64_t)i] != GUARD_BYTE) {
      fail(what, (long)k, "a run wrote behind it");
    }
  }
}

/* --- files --- */

static int64_t read_number(FILE *f) {
  int64_t x;
  if (fread(&x, sizeof x, 1, f) != 1) {
    fail("file", 0, "the file of inputs ends too early");
  }
  return x;
}

static unsigned char *read_bytes(FILE *f, int64_t *bytes) {
  *bytes = read_number(f);
  unsigned char *data = take((uint64_t)*bytes, 1);
  if (fread(data, 1, (size_t)*bytes, f) != (size_t)*bytes) {
    fail("file", 0, "the file of inputs ends too early");
  }
  return data;
}

static void write_number(FILE *f, int64_t x) { fwrite(&x, sizeof x, 1, f); }

/* --- arrays --- */

static int64_t bytes_of(const onnx_xla_value *v, const int64_t *dims) {
  int64_t bytes = v->element_bytes;
  for (int32_t d = 0; d < v->rank; d++) {
    if (v->dims[d] >= 0 && v->dims[d] != dims[d]) {
      fail("dimension", d, "it differs from that in the table");
    }
    bytes *= dims[d];
  }
  return bytes;
}

static int64_t output_bytes(const object_case *c, void *n, uint32_t k, int64_t *dims) {
  check(c, c->output_dims(n, k, dims), "output_dims");
  return bytes_of(&c->outputs[k], dims);
}

/* Arrays, of which array k has bytes[k] bytes: the inputs from the file, each at an odd address, or copies of the
 * outputs. */
typedef struct arrays {
  unsigned char **data;
  int64_t *bytes;
} arrays;

/* Reads the dimensions of an input, which must be those to which the object is bound. */
static void read_dims(FILE *f, const object_case *c, const void *n, uint32_t k) {
  int64_t dims[MOST_RANK];
  check(c, c->input_dims(n, k, dims), "input_dims");
  if (read_number(f) != c->inputs[k].rank) {
    fail("input", (long)k, "the case has another rank");
  }
  for (int32_t d = 0; d < c->inputs[k].rank; d++) {
    if (read_number(f) != dims[d]) {
      fail("input", (long)k, "the object has another dimension");
    }
  }
}

static arrays read_inputs(FILE *f, const object_case *c, const void *n) {
  arrays x = {calloc(c->n_inputs + 1, sizeof *x.data), calloc(c->n_inputs + 1, sizeof *x.bytes)};
  if (!x.data || !x.bytes) {
    fail("memory", 0, "there is not enough");
  }
  if (read_number(f) != (int64_t)c->n_inputs) {
    fail("inputs", (long)c->n_inputs, "the case has another number of them");
  }
  for (uint32_t k = 0; k < c->n_inputs; k++) {
    read_dims(f, c, n, k);
    x.data[k] = read_bytes(f, &x.bytes[k]);
  }
  return x;
}

static void fill_inputs(const object_case *c, void *n, const arrays *inputs) {
  int64_t dims[MOST_RANK];
  for (uint32_t k = 0; k < c->n_inputs; k++) {
    check(c, c->input_dims(n, k, dims), "input_dims");
    if (bytes_of(&c->inputs[k], dims) != inputs->bytes[k]) {
      fail("input", (long)k, "it has another number of bytes");
    }
    memcpy(c->input(n, k), inputs->data[k], (size_t)inputs->bytes[k]);
  }
}

static arrays write_outputs(FILE *f, const object_case *c, void *n) {
  int64_t dims[MOST_RANK];
  arrays x = {calloc(c->n_outputs + 1, sizeof *x.data), calloc(c->n_outputs + 1, sizeof *x.bytes)};
  for (uint32_t k = 0; x.data && x.bytes && k < c->n_outputs; k++) {
    x.bytes[k] = output_bytes(c, n, k, dims);
    x.data[k] = take((uint64_t)x.bytes[k], 0);
    memcpy(x.data[k], c->output(n, k), (size_t)x.bytes[k]);
    write_number(f, c->outputs[k].rank);
    fwrite(dims, sizeof *dims, (size_t)c->outputs[k].rank, f);
    write_number(f, x.bytes[k]);
    fwrite(x.data[k], 1, (size_t)x.bytes[k], f);
  }
  return x;
}

/* Runs again with the outputs in `memory`, and fails unless they are the same bytes as in `outputs`. */
static void run_again(const object_case *c, void *n, unsigned char *const *memory, const arrays *outputs,
                      const char *what) {
  int64_t dims[MOST_RANK];
  check(c, c->run(n), what);
  for (uint32_t k = 0; k < c->n_outputs; k++) {
    int64_t bytes = output_bytes(c, n, k, dims);
    if (bytes != outputs->bytes[k] || memcmp(memory[k], outputs->data[k], (size_t)bytes) != 0) {
      fail(what, (long)k, "this output differs from that of the first run");
    }
  }
}

/* A parallel loop that does its parts from the last to the first. */
static void backwards(void *user, int64_t n, int64_t grain, void (*body)(void *data, int64_t begin, int64_t end),
                      void *data) {
  (void)user;
  for (int64_t end = n; end > 0; end -= grain) {
    body(data, end > grain ? end - grain : 0, end);
  }
}

/* Runs with inputs and outputs at odd addresses, and then with loops that are divided into parts. */
static void run_in_other_ways(const object_case *c, void *n, const arrays *inputs, const arrays *outputs,
                              uint64_t arena_bytes) {
  unsigned char **memory = calloc(c->n_outputs + 1, sizeof *memory);
  for (uint32_t k = 0; k < c->n_inputs; k++) {
    check(c, c->set_input(n, k, inputs->data[k]), "set_input");
  }
  for (uint32_t k = 0; memory && k < c->n_outputs; k++) {
    memory[k] = take(arena_bytes, 1); /* the arena has at least as many bytes as any output */
    check(c, c->set_output(n, k, memory[k]), "set_output");
  }
  run_again(c, n, memory, outputs, "run at odd addresses");
  c->set_parallel(n, backwards, NULL);
  run_again(c, n, memory, outputs, "run in parts");
  for (uint32_t k = 0; memory && k < c->n_outputs; k++) {
    check_guard(memory[k], arena_bytes, "output", k);
  }
}

static int run_case(const object_case *c, const char *in, const char *out) {
  FILE *f = fopen(in, "rb"), *g = fopen(out, "wb");
  int64_t dims[MOST_RANK] = {0}, n_dims = f && g ? read_number(f) : -1;
  void *n = take(c->context_bytes, 0);
  if (n_dims != (int64_t)c->n_dims) {
    fail("dims", (long)n_dims, "the object has another number of them, or a file cannot be opened");
  }
  for (int64_t k = 0; k < n_dims; k++) {
    dims[k] = read_number(f);
  }
  check(c, c->init(n), "init");
  uint64_t bytes = c->arena_bytes(dims);
  unsigned char *arena = take(bytes, 0);
  check(c, c->bind(n, arena, dims), "bind");
  arrays inputs = read_inputs(f, c, n);
  fill_inputs(c, n, &inputs);
  check(c, c->run(n), "run");
  arrays outputs = write_outputs(g, c, n);
  run_in_other_ways(c, n, &inputs, &outputs, bytes);
  check_guard(arena, bytes, "arena", 0);
  check_guard(n, c->context_bytes, "context", 0);
  return fclose(g);
}

static int run_cases(const object_case *cases, int argc, char **argv) {
  if (argc != 4) {
    fail("arguments", argc, "give the number of the object, a file of inputs and one for outputs");
  }
  return run_case(&cases[atoi(argv[1])], argv[2], argv[3]);
}

#endif
