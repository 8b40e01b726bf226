/* scope.h - how names are looked up while a segment of a graph is imported.  Only files of frontend/import/ and
 * importers of control flow, of sequences and of dynamic dimensions (sizes.h) include it. */
#ifndef FRONTEND_IMPORT_SCOPE_H
#define FRONTEND_IMPORT_SCOPE_H

#include "frontend/import/frame.h"
#include "frontend/import/importer.h"

/* The reasons why a node of the frame (the graph that runs segment by segment, frame.h) cannot be imported in this
 * segment.  If the import of a node fails and no reason is noted here, the node is invalid or not supported, or it has
 * pinned symbols (symbolic.h). */
typedef struct onnx_requirements {
  bool deferred;         /* the node reads a result of a deferred node, or a value that this segment must compute
                            first */
  bool host_interpreted; /* the node must be host-interpreted (ONNX_NODE_HOST_INTERPRETED) */
  onnx_array_uses asked; /* arrays of the frame whose content the node needs */
  onnx_names contents;   /* values of this segment whose content the node needs */
} onnx_requirements;

/* A dimension of a value whose size is known only at run time.  The value's shape has the bound of the dimension;
 * elements beyond `size` are undefined. */
typedef struct onnx_dynamic_dim {
  hlo_value value;
  int axis;
  hlo_value size; /* s64[] */
  uint32_t node;  /* the index of the frame's node whose import declared the dimension */
} onnx_dynamic_dim;

/* The state of the import of one segment. */
typedef struct onnx_importer {
  arena *arena; /* the module's arena */
  hlo_module *module;
  const onnx_frame *frame;
  onnx_segment *segment;
  onnx_array_uses params, constants; /* the arrays that the module has as parameters (in order) and as constants */
  str_map deferred;                  /* names of values that this segment lacks: results of deferred nodes, and missing
                                        inputs */
  onnx_requirements requirements;    /* the requirements of the node that is being imported */
  uint32_t node;                     /* the index of the frame's node that is being imported */
  bool sequences;                    /* whether the frame, or a frame around it, has sequences */
  bool tells_inputs;                 /* whether contents of the graph's inputs can be symbols */
  uint32_t n_written_out;            /* how many iterations of SequenceMap nodes have been unrolled so far */
  onnx_dynamic_dim *dynamic;
  uint32_t n_dynamic, cap_dynamic;
} onnx_importer;

/* A graph or a function's body while it is imported.  If the body has a computation of its own (captures is not NULL),
 * outer values become parameters; if it is imported in place, they are used directly. */
struct onnx_scope {
  onnx_scope *outer; /* the scope in which names are looked up next; NULL for a function's body and for the scope of the
                        frame itself */
  const onnx_frame *frame; /* if not NULL, names of the frame are visible as well */
  onnx_scope *around; /* the scope of the node that has or calls this body; NULL for the scope of the frame itself */
  uint64_t place;     /* a hash that identifies the body by the nodes around it */
  hlo_value step;     /* the iteration number in the body of a loop, s64[]; otherwise its def is NULL */
  hlo_value run_seed, path; /* set by random_stream.c when they are first needed; until then def is NULL */
  onnx_importer *importer;
  hlo_builder *b;
  str_map values; /* from a name to an hlo_value * */
  onnx_captures *captures;
  uint32_t n_inputs;             /* the number of parameters before the captures */
  const onnx_function *function; /* the function to which this body belongs, with the node that calls it, or NULL */
  const Onnx__NodeProto *call;
  const onnx_opsets *opsets;
  size_t n_nodes; /* the body's own nodes, in order; Gradient searches them for the nodes to differentiate */
  Onnx__NodeProto *const *nodes;
  const Onnx__NodeProto *gradient; /* the Gradient node for which the scope imports nodes a second time, or NULL */
  int depth;
};

/* Makes a scope for a body of the node.  `name` is the attribute that holds the body, or "" for a function's body. */
onnx_scope onnx_scope_make(onnx_scope *around, const Onnx__NodeProto *node, const char *name, hlo_builder *b,
                           onnx_captures *captures);
/* Returns an error if function calls and subgraphs nest too deeply, since importing and running them recurses on the C
 * stack. */
STATUS_MUST_USE status onnx_scope_check_depth(const onnx_scope *s);
/* Returns a hash that identifies a node among the nodes of its graph. */
uint64_t onnx_node_hash(const Onnx__NodeProto *node);
/* Returns the value by which nodes in s refer to `outer`, a value of the scope around s.  It is a parameter or a copied
 * constant if s has a computation of its own, otherwise `outer` itself. */
hlo_value onnx_scope_capture(onnx_scope *s, hlo_value outer);
void onnx_scope_define(onnx_scope *s, const char *name, hlo_value v);
/* Returns "label: message" on the arena, with the labels of the enclosing function calls in front.  s must be the scope
 * of the frame or of a function's body, and not be inside of a subgraph. */
const char *onnx_describe_failure(const onnx_scope *s, const Onnx__NodeProto *node, status failed);
/* Adds the failure of a node of s, a scope as in onnx_describe_failure, to onnx_frame.findings.  Returns false, and
 * adds nothing, if the frame lists no findings or if the failure does not mean that the model is invalid or
 * unsupported.  The caller still owns the failure. */
bool onnx_list_finding(onnx_scope *s, const Onnx__NodeProto *node, status failed);
/* Returns true if the requirements say that the node needs contents of values, and not merely that it reads a result of
 * a deferred node. */
bool onnx_requires_contents(const onnx_requirements *w);
/* Looks a name up in the scope, its frame and the scopes around it.  Returns false if it is not defined, or, after
 * setting requirements.deferred, if a deferred node defines it.  If it returns true, out->def may be NULL: the name is
 * then an input of a function that the call leaves out, or looking it up failed, and the builder of the frame's scope
 * has the error. */
bool onnx_scope_lookup(onnx_scope *s, const char *name, hlo_value *out);
/* Looks the name up in the scope's frame and the frames around that, and defines it in the scope.  Returns false as
 * onnx_scope_lookup does. */
bool onnx_frame_value(onnx_scope *s, const char *name, hlo_value *out);

/* Returns true if s is the scope of the frame, and the node or one of its bodies reads a sequence of the frame or of a
 * frame around it.  If so, and if the node is a function call or its row of onnx_ops.def has `for_sequences`, it is
 * host-interpreted.  If the node were imported, its module would depend on the length of the sequence and would have to
 * be compiled again whenever a loop appends to the sequence. */
bool onnx_reads_sequences(const onnx_scope *s, const Onnx__NodeProto *node);

STATUS_MUST_USE status onnx_import_node(onnx_scope *s, const Onnx__NodeProto *node);
/* Imports some of a body's nodes, in order. */
STATUS_MUST_USE status onnx_import_nodes(onnx_scope *s, size_t n, Onnx__NodeProto *const *nodes);
/* Imports the graph's initializers and nodes; roots[] receives its outputs.  The inputs must be defined already. */
STATUS_MUST_USE status onnx_import_graph(onnx_scope *s, const Onnx__GraphProto *g, hlo_value *roots);
STATUS_MUST_USE status onnx_import_initializers(onnx_scope *s, const Onnx__GraphProto *g);
/* Adds parameters until the computation has one for each of the first n captures. */
void onnx_add_capture_params(const onnx_captures *captures, uint32_t n, uint32_t n_inputs, hlo_computation *c);

#endif
