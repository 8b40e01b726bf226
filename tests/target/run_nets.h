/* run_nets.h - the program that runs objects of other machines.  prog_machine_objects writes the C file that includes
 * it, with NET(m0) for the object of module 0 and so on, and a list of them; all of it is compiled for the other
 * machine. The program's arguments are names of objects that are not to be run. */
#ifndef TESTS_TARGET_RUN_NETS_H
#define TESTS_TARGET_RUN_NETS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *net, const char *what) {
  fprintf(stderr, "%s: %s\n", net, what);
  exit(1);
}

/* The files, and the program's arguments. */
typedef struct nets {
  FILE *in, *out;
  int n_left_out;
  char **left_out;
} nets;

static nets begin(int argc, char **argv) {
  nets all = {fopen("inputs", "rb"), fopen("outputs", "wb"), argc - 1, argv + 1};
  if (!all.in || !all.out) {
    fail("files", "they cannot be opened");
  }
  return all;
}

static int is_left_out(const nets *all, const char *net) {
  for (int k = 0; k < all->n_left_out; k++) {
    if (strcmp(all->left_out[k], net) == 0) {
      return 1;
    }
  }
  return 0;
}

static size_t value_bytes(const onnx_xla_value *v) {
  size_t n = (size_t)v->element_bytes;
  for (int k = 0; k < v->rank; k++) {
    n *= (size_t)v->dims[k];
  }
  return n;
}

/* Returns memory that is not zero, so that elements which a kernel forgets are noticed. */
static void *memory_of(uint64_t bytes) {
  size_t n = ((size_t)bytes + 64) / 64 * 64;
  void *memory = aligned_alloc(64, n);
  if (!memory) {
    fail("memory", "there is too little");
  }
  memset(memory, 0x5a, n);
  return memory;
}

/* An onnx_xla_parallel that calls the body for three parts, from the last one to the first. */
static void in_parts(void *user, int64_t n, int64_t grain, void (*body)(void *data, int64_t begin, int64_t end),
                     void *data) {
  int64_t part = n / 3 + 1;
  (void)user, (void)grain;
  for (int64_t end = n; end > 0; end -= part) {
    body(data, end > part ? end - part : 0, end);
  }
}

#define NET(net)                                                                          \
  static void run_##net(const nets *all, int inputs, int outputs) {                       \
    static net n;                                                                         \
    void *memory = memory_of(net##_arena_bytes());                                        \
    int error = net##_init(&n, NULL);                                                     \
    error = error ? error : net##_bind(&n, memory);                                       \
    net##_set_parallel(&n, in_parts, NULL);                                               \
    for (int k = 0; k < inputs && !error; k++) {                                          \
      size_t bytes = value_bytes(&net##_inputs[k]);                                       \
      if (fread(net##_input(&n, (uint32_t)k), 1, bytes, all->in) != bytes) {              \
        fail(#net, "its inputs end too early");                                           \
      }                                                                                   \
    }                                                                                     \
    if (is_left_out(all, #net)) {                                                         \
      return;                                                                             \
    }                                                                                     \
    error = error ? error : net##_run(&n);                                                \
    if (error) {                                                                          \
      fail(#net, net##_error_text(error));                                                \
    }                                                                                     \
    for (int k = 0; k < outputs; k++) {                                                   \
      fwrite(net##_output(&n, (uint32_t)k), 1, value_bytes(&net##_outputs[k]), all->out); \
    }                                                                                     \
    free(memory);                                                                         \
  }

#endif
