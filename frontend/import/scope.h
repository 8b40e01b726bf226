/* scope.h - where names are looked up while a piece of a graph is imported; private to import.c, importer.c, segment.c
 * and sizes.c. */
#ifndef FRONTEND_IMPORT_SCOPE_H
#define FRONTEND_IMPORT_SCOPE_H

#include "frontend/import/frame.h"
#include "frontend/import/importer.h"

/* Why a node of the frame cannot be imported now; all empty: it is wrong, or not supported. */
typedef struct onnx_requirements {
  bool deferred;         /* it reads what a waiting node gives, or what must leave this piece first */
  bool host_interpreted; /* its body needs contents of its own values */
  onnx_array_uses asked; /* arrays whose content it needs */
  onnx_names contents;   /* values of this piece whose content it needs */
} onnx_requirements;

/* A dimension whose size is known only at run time: the shape has its bound, elements beyond `size` hold anything. */
typedef struct onnx_dynamic_dim {
  hlo_value value;
  int axis;
  hlo_value size; /* s64[] */
  uint32_t node;  /* number of the frame's node that made it */
} onnx_dynamic_dim;

typedef struct onnx_importer {
  arena *arena; /* the module's */
  hlo_module *module;
  const onnx_frame *frame;
  onnx_segment *segment;
  onnx_array_uses params, constants; /* params: the entry's, in order */
  str_map deferred;                  /* names that nodes give which wait */
  onnx_requirements requirements;
  uint32_t node;          /* of the frame: being imported */
  bool sequences;         /* the frame has some */
  uint32_t n_written_out; /* steps of SequenceMap so far */
  onnx_dynamic_dim *dynamic;
  uint32_t n_dynamic, cap_dynamic;
} onnx_importer;

/* One graph or function body being imported.  A body with a computation of its own (captures not NULL) turns
 * outer values into parameters; one that is imported in place sees them as they are. */
struct onnx_scope {
  onnx_scope *outer;        /* NULL means the frame, or a function, which sees nothing around it */
  const onnx_frame *frame;  /* not NULL: names are also what the frame has */
  onnx_scope *around;       /* where the node stands whose body this is, of functions too; NULL means the frame */
  uint64_t place;           /* of the nodes around it, a number that tells bodies apart */
  hlo_value step;           /* in the body of a loop: s64[], the number of the step; else no value */
  hlo_value run_seed, path; /* random.c's, once they are asked for */
  onnx_importer *importer;
  hlo_builder *b;
  str_map values; /* name -> hlo_value * */
  onnx_captures *captures;
  uint32_t n_inputs;             /* parameters before the captures */
  const onnx_function *function; /* whose body this belongs to, with the node that called it; or NULL */
  const Onnx__NodeProto *call;
  const onnx_opsets *opsets;
  size_t n_nodes; /* the body's own nodes, in order: a Gradient finds there what to differentiate */
  Onnx__NodeProto *const *nodes;
  const Onnx__NodeProto *gradient; /* not NULL: this is what a Gradient imports once more */
  int depth;
};

/* For the body that attribute `name` (of a function: "") of a node is. */
onnx_scope onnx_scope_make(onnx_scope *around, const Onnx__NodeProto *node, const char *name, hlo_builder *b,
                           onnx_captures *captures);
/* Function calls and subgraphs nest only so deep: walking and running them recurses on the C stack. */
STATUS_MUST_USE status onnx_scope_check_depth(const onnx_scope *s);
/* A number for a node among those of its graph. */
uint64_t onnx_node_hash(const Onnx__NodeProto *node);
/* A value of the scope around s, as s sees it. */
hlo_value onnx_scope_capture(onnx_scope *s, hlo_value outer);
void onnx_scope_define(onnx_scope *s, const char *name, hlo_value v);
/* "label: message", on the arena. */
const char *onnx_describe_failure(const onnx_scope *s, const Onnx__NodeProto *node, status failed);
/* Lists the failure of a node, where the frame has a list and the failure is the model's.  It stays the caller's. */
bool onnx_list_finding(onnx_scope *s, const Onnx__NodeProto *node, status failed);
bool onnx_requires_contents(const onnx_requirements *w);
bool onnx_scope_lookup(onnx_scope *s, const char *name, hlo_value *out);
/* What the frame of the scope, or one around it, has under that name; defines it in the scope. */
bool onnx_frame_value(onnx_scope *s, const char *name, hlo_value *out);

/* Returns true if the node, or its body, reads a sequence of the frame.  If it is a call, or its row says so
 * (onnx_host_for_sequences), it is host-interpreted, so that no module depends on how long sequences are that grow step
 * by step. */
bool onnx_reads_sequences(const onnx_scope *s, const Onnx__NodeProto *node);

STATUS_MUST_USE status onnx_import_node(onnx_scope *s, const Onnx__NodeProto *node);
/* Some of a body's nodes, in their order. */
STATUS_MUST_USE status onnx_import_nodes(onnx_scope *s, size_t n, Onnx__NodeProto *const *nodes);
/* The graph's initializers and nodes; roots[] get its outputs.  Inputs must be defined already. */
STATUS_MUST_USE status onnx_import_graph(onnx_scope *s, const Onnx__GraphProto *g, hlo_value *roots);
STATUS_MUST_USE status onnx_import_initializers(onnx_scope *s, const Onnx__GraphProto *g);
/* Makes parameters until the computation has one for each of the first n captures. */
void onnx_add_capture_params(const onnx_captures *captures, uint32_t n, uint32_t n_inputs, hlo_computation *c);

#endif
