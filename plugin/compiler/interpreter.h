/* interpreter.h - the interface between segments.c, which runs frames (frontend/import/frame.h), and interpreter.c,
 * which runs host-interpreted nodes between segments: control flow, operators on sequences (sequences.c), and operators
 * that no kernel computes (host/). Everything that belongs to a run is freed when the run ends, so functions that fail
 * need not free anything.
 *
 * Arrays are counted by reference.  A function that returns an array through `out` gives the caller a reference. */
#ifndef PLUGIN_COMPILER_INTERPRETER_H
#define PLUGIN_COMPILER_INTERPRETER_H

#include "frontend/import/frame.h"
#include "plugin/compiler/compiler.h"

struct segment;

/* A body (a subgraph of a node, or the function that a node calls), identified by the nodes around it, and the segments
 * that were compiled for it. */
typedef struct interpreter_site {
  struct interpreter_site *next, *children;
  struct segment *segments;
  size_t node; /* the index of the node in the parent's body */
  int which;   /* the number of the body among those of the node: 0, 1, ... */
} interpreter_site;

/* One run of a segmented model. */
typedef struct interpreter_run {
  segmented_model *segments;
  mem_budget *budget; /* the budget for arrays */
  const segments_run_options *options;
  arena *scratch;
  /* The list of all arrays that are not freed yet.  The end of the run frees them, so code that fails releases none. */
  struct host_array *arrays;
  struct frame_list *frames;
} interpreter_run;

/* An array or sequence of a frame, with a reference count, since frames, sequences and lists share it.  `base` must be
 * the first member. */
typedef struct host_array {
  onnx_array base;
  uint32_t references;
  size_t bytes;
  interpreter_run *run;
  struct host_array *next, *previous;
} host_array;

static inline void *host_array_data(const host_array *a) { return (void *)(uintptr_t)a->base.value.data; }
static inline const shape *host_array_shape(const host_array *a) { return &a->base.value.shape; }

/* Make an array with one reference, which is the caller's: without contents, or as a copy of a literal. */
STATUS_MUST_USE status host_array_new(interpreter_run *run, const shape *s, host_array **out);
STATUS_MUST_USE status host_array_copy(interpreter_run *run, const literal *l, host_array **out);
/* Makes a sequence, a map (whose elements are its keys and its values), or an optional without an element (`kind` is
 * SHAPE_OPTIONAL and n is 0), with one reference, and takes over the caller's references to the elements. */
STATUS_MUST_USE status host_list_new(interpreter_run *run, shape_kind kind, dtype type, uint32_t n,
                                     host_array *const *elements, host_array **out);
/* Makes a sequence of maps, which nothing in a model reads, as the block of memory that an output is (literal_pack).
 * The caller writes it to *memory, beginning with the literal_list. */
STATUS_MUST_USE status host_packed_new(interpreter_run *run, const shape *s, size_t bytes, host_array **out,
                                       void **memory);
static inline bool host_is_sequence(const host_array *a) { return a->base.value.shape.kind == SHAPE_SEQUENCE; }
static inline host_array *host_list_element(const host_array *sequence, uint32_t k) {
  return (host_array *)sequence->base.elements[k];
}
host_array *host_array_retain(host_array *a);
void host_array_release(host_array *a); /* NULL is allowed */
/* Copy a literal of any kind (literal_list.h) to an array, sequence, map or optional, and back into one block, which
 * the caller owns and frees with host_memory_free. */
STATUS_MUST_USE status host_array_from(interpreter_run *run, const literal *l, host_array **out);
STATUS_MUST_USE status host_array_pack(const host_array *a, compiler_array *out);
/* Frees the host_array but not its data, which the caller now owns and frees with host_memory_free. */
compiler_array host_array_let_go(host_array *a);
void host_memory_free(mem_budget *budget, compiler_array a);
/* Frees all arrays of the run, whatever their reference counts are. */
void host_arrays_free(interpreter_run *run);

/* Finds or adds the entry for body `which` of node `node` of the parent's body. */
STATUS_MUST_USE status interpreter_site_below(interpreter_run *run, interpreter_site *parent, size_t node, int which,
                                              interpreter_site **out);

/* Create and end a frame; the arguments are those of onnx_frame_create.  Ending it drops its references to
 * arrays. */
onnx_frame *interpreter_frame(interpreter_run *run, const onnx_frame *outer, const Onnx__GraphProto *graph,
                              const onnx_function *function, const Onnx__NodeProto *call);
void interpreter_frame_end(interpreter_run *run, onnx_frame *f);
/* Defines `a` as the value `name` of the frame, and takes over the caller's reference to `a`.  The name is copied.  If
 * it is "", the reference is dropped. */
void interpreter_define(onnx_frame *f, const char *name, host_array *a);
/* Finds the value that has this name in the frame or in the frames around it, also if it is an initializer, which is
 * copied.  Fails if there is none. */
STATUS_MUST_USE status interpreter_find(interpreter_run *run, const onnx_frame *f, const char *name, host_array **out);
/* Runs all nodes of the frame.  `outputs`, with f->n_outputs entries, gets references to its outputs. */
STATUS_MUST_USE status interpreter_run_frame(interpreter_run *run, interpreter_site *site, onnx_frame *f,
                                             host_array **outputs);

/* Runs the host-interpreted node k of the frame and defines its outputs. */
STATUS_MUST_USE status interpreter_run_node(interpreter_run *run, interpreter_site *site, onnx_frame *f, size_t k);

#endif
