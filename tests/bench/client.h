/* client.h - one engine (ours, ONNX Runtime, OpenVINO) with one model in a process of its own; see client.c. */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <stddef.h>
#include <stdint.h>

enum { MAX_TENSORS = 64, MAX_DIMS = 8 };

typedef struct tensor {
  char *name;
  int type; /* ONNX's number */
  int rank;
  int64_t dims[MAX_DIMS];
  void *data;
  size_t bytes;
} tensor;

/* What an engine does; all of it ends the process with a message (die) where it cannot. */
typedef struct engine {
  const char *name;
  /* Opens the library, loads and compiles the model for these inputs. */
  void (*load)(const char *library, const char *model, int threads, int n, tensor *inputs);
  /* Replaces these inputs, perhaps by some of other dims, from the next run on. */
  void (*set_inputs)(int n, tensor *inputs);
  /* Makes output number `output` of the last run the input of that name of the next run, without a copy.  All of them
   * are named again after each run, before set_inputs. */
  void (*carry)(int output, const char *input);
  void (*run)(void);
  /* The results of the last run, in the model's order: how many. */
  int (*outputs)(tensor *out);
  /* Waits until runs are as fast as they will be, if not NULL: ours tunes while it runs already. */
  void (*settle)(void);
  /* Before the process ends, if not NULL: ours may still write its cache. */
  void (*close)(void);
} engine;

extern const engine engine_ours, engine_ort, engine_openvino;
/* An object or generated C source, in a client of its own (linked/). */
extern const engine engine_linked __attribute__((weak));

_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A function of an opened library. */
void *need_symbol(void *library, const char *name);
void *open_library(const char *path);

#endif
