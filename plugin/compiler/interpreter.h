/* interpreter.h - the interface between segments.c, which runs frames, and interpreter.c, which runs host-interpreted
 * nodes.  Everything that belongs to a run is freed at its end, so nothing here needs to be undone on failure. */
#ifndef PLUGIN_COMPILER_INTERPRETER_H
#define PLUGIN_COMPILER_INTERPRETER_H

#include "frontend/import/frame.h"
#include "plugin/compiler/compiler.h"

struct segment;

/* A body in the model, identified by the nodes around it.  Its segments are kept here. */
typedef struct interpreter_site {
  struct interpreter_site *next, *children;
  struct segment *segments;
  size_t node; /* of the parent's body */
  int which;   /* of the node's graphs */
} interpreter_site;

typedef struct interpreter_run {
  segmented_model *segments;
  mem_budget *budget; /* of its arrays */
  const segments_run_options *options;
  arena *scratch;
  struct host_array *arrays; /* all that are alive */
  struct frame_list *frames;
} interpreter_run;

/* An array or sequence of a frame (base comes first), counted: frames, sequences and lists share it. */
typedef struct host_array {
  onnx_array base;
  uint32_t references;
  size_t bytes;
  interpreter_run *run;
  struct host_array *next, *previous;
} host_array;

static inline void *host_array_data(const host_array *a) { return (void *)(uintptr_t)a->base.value.data; }
static inline const shape *host_array_shape(const host_array *a) { return &a->base.value.shape; }

/* With one reference, the caller's. */
STATUS_MUST_USE status host_array_new(interpreter_run *run, const shape *s, host_array **out);
STATUS_MUST_USE status host_array_copy(interpreter_run *run, const literal *l, host_array **out);
/* The references to the elements are taken over. */
STATUS_MUST_USE status host_sequence_new(interpreter_run *run, dtype type, uint32_t n, host_array *const *elements,
                                         host_array **out);
static inline host_array *host_sequence_element(const host_array *sequence, uint32_t k) {
  return (host_array *)sequence->base.elements[k];
}
host_array *host_array_retain(host_array *a);
void host_array_release(host_array *a); /* NULL is allowed */
/* The memory stays and is the caller's, who ends it with host_memory_free. */
compiler_array host_array_let_go(host_array *a);
void host_memory_free(mem_budget *budget, compiler_array a);
/* All of them, whoever holds them. */
void host_arrays_free(interpreter_run *run);

/* The place of a body of this node (which: 0, 1, ..). */
STATUS_MUST_USE status interpreter_site_below(interpreter_run *run, interpreter_site *parent, size_t node, int which,
                                              interpreter_site **out);

onnx_frame *interpreter_frame(interpreter_run *run, const onnx_frame *outer, const Onnx__GraphProto *graph,
                              const onnx_function *function, const Onnx__NodeProto *call);
void interpreter_frame_end(interpreter_run *run, onnx_frame *f);
/* Defines that value in the frame, with the caller's reference; the name is copied, "" drops it. */
void interpreter_define(onnx_frame *f, const char *name, host_array *a);
/* What the frame sees under that name: a reference for the caller. */
STATUS_MUST_USE status interpreter_find(interpreter_run *run, const onnx_frame *f, const char *name, host_array **out);
/* All nodes; outputs[n_outputs] get references. */
STATUS_MUST_USE status interpreter_run_frame(interpreter_run *run, interpreter_site *site, onnx_frame *f,
                                             host_array **outputs);

/* Node k of the frame: If, Loop, Scan or the call of a function; defines its outputs. */
STATUS_MUST_USE status interpreter_run_node(interpreter_run *run, interpreter_site *site, onnx_frame *f, size_t k);

#endif
