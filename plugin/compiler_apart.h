/* compiler_apart.h - between compiler_pieces.c, which runs frames, and compiler_apart.c, which runs the nodes that stand apart.
 * Everything that belongs to a run is freed at its end, whatever happened: nothing here needs to be undone on failure. */
#ifndef PLUGIN_COMPILER_APART_H
#define PLUGIN_COMPILER_APART_H

#include "frontend/frame.h"
#include "plugin/compiler.h"

struct piece;

/* A body in the model, by the way that leads to it: what its pieces are kept under. */
typedef struct pieces_site {
  struct pieces_site *next, *children;
  struct piece *pieces;
  size_t node; /* of the parent's body */
  int which;   /* of the node's graphs */
} pieces_site;

typedef struct pieces_run {
  plug_pieces *pieces;
  mem_budget *budget; /* of its arrays */
  const plug_piece_run *options;
  arena *scratch;
  struct pieces_array *arrays; /* all that are alive */
  struct frame_list *frames;
} pieces_run;

/* An array or sequence of a frame (base comes first), counted: frames, sequences and lists share it. */
typedef struct pieces_array {
  onnx_array base;
  uint32_t references;
  size_t bytes;
  pieces_run *run;
  struct pieces_array *next, *previous;
} pieces_array;

static inline void *pieces_array_data(const pieces_array *a) { return (void *)(uintptr_t)a->base.value.data; }
static inline const shape *pieces_array_shape(const pieces_array *a) { return &a->base.value.shape; }

/* With one reference, the caller's. */
STATUS_MUST_USE status pieces_array_new(pieces_run *run, const shape *s, pieces_array **out);
STATUS_MUST_USE status pieces_array_copy(pieces_run *run, const literal *l, pieces_array **out);
/* The references to the elements are taken over. */
STATUS_MUST_USE status pieces_sequence_new(pieces_run *run, dtype type, uint32_t n, pieces_array *const *elements,
                                           pieces_array **out);
static inline pieces_array *pieces_element(const pieces_array *sequence, uint32_t k) {
  return (pieces_array *)sequence->base.elements[k];
}
pieces_array *pieces_array_retain(pieces_array *a);
void pieces_array_release(pieces_array *a); /* NULL is fine */
/* The memory stays and is the caller's, who ends it with pieces_memory_free. */
plug_array pieces_array_let_go(pieces_array *a);
void pieces_memory_free(mem_budget *budget, plug_array a);
/* All of them, whoever holds them. */
void pieces_arrays_free(pieces_run *run);

/* The place of a body of this node (which: 0, 1, ..). */
STATUS_MUST_USE status pieces_site_below(pieces_run *run, pieces_site *parent, size_t node, int which, pieces_site **out);

onnx_frame *pieces_frame(pieces_run *run, const onnx_frame *outer, const Onnx__GraphProto *graph,
                         const onnx_function *function, const Onnx__NodeProto *call);
void pieces_frame_end(pieces_run *run, onnx_frame *f);
/* Gives the frame that value, with the caller's reference; the name is copied, "" drops it. */
void pieces_define(onnx_frame *f, const char *name, pieces_array *a);
/* What the frame sees under that name: a reference for the caller. */
STATUS_MUST_USE status pieces_find(pieces_run *run, const onnx_frame *f, const char *name, pieces_array **out);
/* All nodes; outputs[n_outputs] get references. */
STATUS_MUST_USE status pieces_run_frame(pieces_run *run, pieces_site *site, onnx_frame *f, pieces_array **outputs);

/* Node k of the frame: If, Loop, Scan or the call of a function; defines its outputs. */
STATUS_MUST_USE status pieces_run_apart(pieces_run *run, pieces_site *site, onnx_frame *f, size_t k);

#endif
