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

/* The functions of an engine.  If one of them fails, it ends the process with a message (die). */
typedef struct engine {
  const char *name;
  /* Opens the library, loads and compiles the model for these inputs. */
  void (*load)(const char *library, const char *model, int threads, int n, tensor *inputs);
  /* Replaces the inputs of these names, perhaps by inputs of other dims, from the next run on. */
  void (*set_inputs)(int n, tensor *inputs);
  /* Makes output number `output` of the last run the input of that name of the next run, without a copy.  After each
   * run it is called again for all such outputs, before set_inputs. */
  void (*carry)(int output, const char *input);
  void (*run)(void);
  /* Sets out[] to the results of the last run, in the model's order, and returns their number. */
  int (*outputs)(tensor *out);
  /* If not NULL: waits until runs are as fast as they will be. onnx-xla tunes in the background while it already
   * runs. */
  void (*settle)(void);
  /* If not NULL: is called before the process ends. onnx-xla may still have to write its cache. */
  void (*close)(void);
} engine;

extern const engine engine_ours, engine_ort, engine_openvino;
/* An object or generated C source, in a client of its own (linked/). */
extern const engine engine_linked __attribute__((weak));

_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns a function of a library that open_library has opened. */
void *need_symbol(void *library, const char *name);
void *open_library(const char *path);

#endif
