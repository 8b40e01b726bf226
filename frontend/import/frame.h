/* frame.h - a graph while it runs: what its nodes have given so far, and the next piece of it as a module.
 *
 * Most models become one module.  One whose sizes depend on what it computes runs piece by piece: a node that needs
 * the content of a value which is not known yet waits, and everything that depends on it; the rest is one module.  When
 * that has run, its results are arrays of the frame, those that were asked for count as constants, and the next piece
 * follows. A node whose own body needs such contents (a loop whose values change their shapes) is left to the caller,
 * who runs the body as a frame of its own.  plugin/compiler/segments.c is that caller. */
#ifndef FRONTEND_IMPORT_FRAME_H
#define FRONTEND_IMPORT_FRAME_H

#include "base/tensor/literal.h"
#include "frontend/model/model.h"
#include "hlo/ir/builder.h"

/* A value from outside of a piece: the caller's input, or the result of an earlier piece; also a sequence of such
 * arrays, which is of kind SHAPE_SEQUENCE and has neither data nor flags of its own. */
typedef struct onnx_array {
  literal value;                /* data NULL: only the shape is known */
  bool known;                   /* pieces take it for the constant it is; otherwise it is a parameter */
  bool asked;                   /* a size depends on it: import again with known set.  Written by imports. */
  uint32_t n;                   /* of a sequence */
  struct onnx_array **elements; /* not NULL if it is a sequence */
} onnx_array;

typedef enum onnx_node_state {
  ONNX_NODE_DEFERRED,        /* for values that are not there yet */
  ONNX_NODE_DONE,            /* by this piece or an earlier one */
  ONNX_NODE_HOST_INTERPRETED /* a call, If, Loop or Scan whose body needs contents of its own values, or what moves
                              * elements of the frame's sequences (onnx_reads_sequences): run it by itself */
} onnx_node_state;

/* What is wrong with a node, on one line that begins with its label. */
typedef struct onnx_finding {
  status_code code, subject;
  uint32_t node; /* its number in the frame; of one in a body, that of the node around it */
  const char *text;
} onnx_finding;

typedef struct onnx_findings {
  uint32_t n, cap;
  onnx_finding *items;
  const char *deferred; /* of the first node that needs contents of computed values, which ones; or NULL */
} onnx_findings;

/* The main graph, a subgraph or a function's body.  Of an outer frame only what is there can be seen. */
typedef struct onnx_frame {
  const onnx_model *model;
  const struct onnx_frame *outer; /* around a subgraph; NULL means that nothing around it can be seen */
  const Onnx__GraphProto *graph;  /* NULL means the function's body itself */
  const onnx_function *function;  /* whose body this is or belongs to, with the bound node that calls it; or NULL */
  const Onnx__NodeProto *call;
  size_t n_nodes, n_outputs;
  Onnx__NodeProto *const *nodes;
  uint8_t *states;         /* onnx_node_state of each */
  str_map arrays;          /* name -> onnx_array * */
  arena *arena;            /* of the frame's tables, not of the arrays */
  uint64_t place;          /* a number that tells bodies apart; 0 means the main graph */
  int depth;               /* frames around it, of functions too */
  bool unchecked;          /* as onnx_import_options has it */
  onnx_findings *findings; /* not NULL: a node that cannot be imported is listed here, and the import goes on without it
                            * and what depends on it, as if they waited */
} onnx_frame;

/* The array of a frame that is a step of loops, u64[]: a number that tells its steps apart, for random operators. */
#define ONNX_FRAME_STEP ""

/* A frame without arrays; graph or function as above.  `call` must be bound and live as long. */
onnx_frame *onnx_frame_create(arena *a, const onnx_model *m, const onnx_frame *outer, const Onnx__GraphProto *graph,
                              const onnx_function *function, const Onnx__NodeProto *call);
const char *onnx_frame_output(const onnx_frame *f, size_t k);
const onnx_opsets *onnx_frame_opsets(const onnx_frame *f);
/* The node with the references to the call's attributes replaced. */
STATUS_MUST_USE status onnx_frame_node(const onnx_frame *f, arena *a, size_t k, const Onnx__NodeProto **out);

/* A value as the frame sees it: an array of its own or of a frame around it, or (*array NULL) an initializer, read onto
 * `a`. Both NULL if there is none. */
STATUS_MUST_USE status onnx_frame_find(const onnx_frame *f, arena *a, const char *name, onnx_array **array,
                                       literal **initializer);
/* An element of a sequence has a name too, which no value of a model can have: it is no UTF-8. */
const char *onnx_element_name(arena *a, const char *sequence, uint32_t k);
/* An input of the function that the call leaves out: a name without a value. */
bool onnx_frame_leaves_out(const onnx_frame *f, const char *name);

/* What a node reads: its inputs, and the names that its subgraphs take from around them.  On the arena. */
typedef struct onnx_names {
  uint32_t n, cap;
  const char **items;
} onnx_names;
void onnx_node_reads(arena *a, const Onnx__NodeProto *node, onnx_names *out);

/* An array that a piece uses, by name. */
typedef struct onnx_array_use {
  const char *name;
  onnx_array *array;
} onnx_array_use;

typedef struct onnx_array_uses {
  uint32_t n, cap;
  onnx_array_use *items;
} onnx_array_uses;

/* A sequence that a piece gives: its elements are results, one after the other. */
typedef struct onnx_leaving {
  const char *name;
  dtype type;
  uint32_t n, first;
} onnx_leaving;

typedef struct onnx_segment {
  /* The parameters and results carry the frame's names; hidden results (hlo_module.sizes) have none. */
  hlo_module *module;
  onnx_array **params;       /* in the order of the module's parameters */
  onnx_array_uses constants; /* arrays that the module takes for constants */
  onnx_array_uses sequences; /* sequences that it takes as they are, element by element */
  onnx_leaving *leaving;
  uint32_t n_leaving, cap_leaving;
  uint8_t *states;    /* of the frame's nodes once this piece has run */
  bool *known;        /* by result: it counts as a constant from then on */
  bool complete;      /* nothing is left to do */
  const char *reason; /* why the first node waits that does */
} onnx_segment;

/* Imports what can be imported of the nodes that wait.  Asks for contents of arrays by setting `asked`: then the piece
 * does less than it could, and should be imported again with those known.  signature: all inputs of the graph become
 * parameters, in order, known or not; when nothing waits, all its outputs become results, in order. */
STATUS_MUST_USE status onnx_import_segment(arena *a, const onnx_frame *f, bool signature, hlo_eval_fn *eval,
                                           onnx_segment *out);

#endif
