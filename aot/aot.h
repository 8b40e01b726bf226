/* aot.h - writes a compiled program as an object file and a C header, so that a C program can run the model without
 * onnx-xla.
 *
 * The object has the kernels of the program and a host program, both as machine code: what runtime/exec/ does with the
 * thunks of a loaded program is here written as LLVM IR.  The host program allocates nothing, keeps its state in the
 * caller's memory, and calls only functions of the C library that kernels call (runtime/kernel_externals.def).  The
 * header that aot_write returns documents the functions. */
#ifndef AOT_AOT_H
#define AOT_AOT_H

#include "base/tensor/literal.h"
#include "emit/kernel/compile.h"
#include "runtime/program/program.h"

/* An output whose value is the next run's input: the state of a stream.  The state lies in the caller's arena, at its
 * beginning (aot/state.c). */
typedef struct aot_carry {
  uint32_t output, input;
  int axis; /* the dimension along which the output grows, or -1 if it does not grow */
} aot_carry;

typedef struct aot_options {
  const char *prefix; /* a C identifier with which all global names begin, such as "net" */
  const char *model;  /* the name of the model, which may be any text */
  const char *about;  /* lines "key: value" for onnx-xla info (runtime/program/object_info.h) */
  uint32_t n_inputs;  /* the number of inputs that a caller knows; they are the first parameters of the program */
  uint32_t n_carried;
  const aot_carry *carried;
  /* For each of the n_inputs inputs, the names of its dimensions.  The list of all inputs, the list of an input and a
   * name may be NULL. */
  const char *const *const *dim_names;
  /* For each of the n_inputs inputs, the shape and contents for which the example runs the model.  An input of which
   * nothing is known has rank 0; without `data` its contents are not known.  The list may be NULL. */
  const literal *likely;
  const char *file;   /* the name of the object file or library, without its folder */
  const char *header; /* the name of the header */
  /* The most bytes that the arena may have; 0 means that there is no limit.  If there is a limit, `buffers` is the text
   * rt_report.buffers, or NULL; the error message names the largest values in it. */
  uint64_t most_arena;
  const char *buffers;
  bool archive;          /* whether the object is to be in a static library */
  bool separate_weights; /* whether the weights are a file of their own and not in the object */
} aot_options;

/* A text file to be written beside the object. */
typedef struct aot_file {
  const char *name;
  const char *text;
} aot_file;

enum { AOT_EXAMPLE_FILES = 3 };

typedef struct aot_files {
  rt_span object; /* the object file, or a static library with it */
  const char *header;
  rt_span weights;                     /* the file of the weights; empty unless they are separate */
  aot_file example[AOT_EXAMPLE_FILES]; /* main.c, and the files that build it */
} aot_files;

/* Weights of AOT_MANY_WEIGHTS bytes or more in all are aligned to a page, so that they share no page with code or data.
 * Smaller weights, as on microcontrollers, have the alignment of buffers. */
enum { AOT_PAGE = 4096, AOT_MANY_WEIGHTS = 1 << 16 };

/* The model, compiled for one CPU.  All versions have the same inputs, outputs and symbolic dimensions. */
typedef struct aot_version {
  const rt_program *program;
  emit_target target;
} aot_version;

/* Writes the files on the arena.  `module` has the kernels of all versions as cpu_compile_into_module wrote them
 * (backend_cpu/compile/target.h).  The module's own target has the least CPU that can call this code
 * (emit_target_baseline).  After this call the module can only be destroyed.  The object runs the last version that the
 * processor can run.  Call this inside guard_run.  The error is UNSUPPORTED if the versions differ in what a caller
 * sees, if a program has a thunk that no object can contain, if an output cannot be carried as the options say, or if
 * the weights are 2 GiB or more and not separate.  It is RESOURCE if the arena has more than most_arena bytes, or if it
 * has a limit but its size depends on symbolic dimensions. */
STATUS_MUST_USE status aot_write(arena *a, emit_module *module, uint32_t n, const aot_version *versions,
                                 const aot_options *o, aot_files *out);

/* Returns the first 60 characters of `text` as a C identifier: letters, digits and '_'; other characters become '_'.
 * It is never empty and does not begin with a digit. */
const char *aot_identifier(arena *a, const char *text);

#endif
