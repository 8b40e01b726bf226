/* runner.h - what the files of onnx-xla-run share: it opens a .oxla file, finds the program for its inputs, and runs
 * it.  Nothing here can compile. */
#ifndef PLUGIN_RUNNER_RUNNER_H
#define PLUGIN_RUNNER_RUNNER_H

#include "plugin/compiler/compiler.h"
#include "runtime/exec/executable.h"

/* A .oxla file, and what it tells of its model. */
typedef struct runner_file {
  const rt_image *image;
  const compiler_model *source;
} runner_file;

/* Opens a file, which stays mapped until the arena is destroyed.  With `verify`, its constants are compared with their
 * checksums.  Fails if the file needs what onnx-xla-run does not have: a compiler, or another backend than cpu. */
STATUS_MUST_USE status runner_open(arena *a, const char *path, bool verify, runner_file *out);

/* Sets the shapes that are not known: a size that the file leaves open is 1, as for onnx-xla run.  Fails if a known
 * shape has another type or rank than the input. */
STATUS_MUST_USE status runner_shape_inputs(const runner_file *f, literal *inputs);

/* Finds the program for these inputs, which have values, loads it, and binds it to their sizes if it is for many sizes.
 * It is kept until the arena is destroyed, and so are programs for many sizes that were loaded first but do not serve
 * the inputs.  The other programs of the file are not loaded. */
STATUS_MUST_USE status runner_load(arena *a, const runner_file *f, const literal *inputs, const rt_binding **out);

/* Runs a program and sets outputs[], one for each output of the model, to the results, which are on the arena. */
STATUS_MUST_USE status runner_execute(arena *a, const runner_file *f, const rt_binding *b, const literal *inputs,
                                      const rt_run_options *options, literal *outputs);

#endif
