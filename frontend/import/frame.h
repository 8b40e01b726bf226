/* frame.h - the state of a graph that runs segment by segment: the values that its nodes have computed so far, and the
 * import of its next segment as a module.
 *
 * Most models become one module.  A model whose sizes depend on what it computes runs segment by segment.  A node that
 * needs the content of a value which is not known yet is deferred, and so is every node that depends on it; the other
 * nodes become one module.  After that module has run, its results are arrays of the frame.  If a deferred node needs
 * the content of such an array, the array is a constant in the next segments.  Then the next segment is imported.  If
 * the body of a node (of a Loop, for example) needs the contents of values that the body itself computes, the caller,
 * plugin/compiler/interpreter.c, runs that body with a frame of its own. */
#ifndef FRONTEND_IMPORT_FRAME_H
#define FRONTEND_IMPORT_FRAME_H

#include "base/tensor/literal.h"
#include "frontend/model/model.h"
#include "hlo/ir/builder.h"

/* A value from outside of a segment: an input of the caller, or the result of an earlier segment.  It may also be a
 * sequence of such arrays.  Then the kind of value.shape is SHAPE_SEQUENCE, and each of the elements has its own data,
 * `known` and `asked`.  Or it is an optional without an element: a list without elements of the kind SHAPE_OPTIONAL.
 * A sequence of maps has no `elements`, since nothing in a model reads one. */
typedef struct onnx_array {
  literal value; /* if data is NULL, only the shape is known */
  bool known;    /* whether the value is a constant in the modules of segments; otherwise it is a parameter */
  bool asked;    /* set by an import if a size depends on the content; import again with `known` set */
  /* Bit k of open_dims is set if dimension k may have another size in the next run, and bit k of open_elements if
   * element k of a known array of integers may have another value in the next run.  An import with symbols (symbolic.h)
   * makes such a dimension or element a symbol. */
  uint32_t open_dims;
  uint64_t open_elements;
  uint32_t n;                   /* the number of elements of a sequence */
  struct onnx_array **elements; /* the elements of a sequence, never NULL even if there are none; NULL for an array */
} onnx_array;

/* What is known of a symbol: that it equals an expression of other symbols, as text (total is past+seq, batch is 1). */
typedef struct onnx_definition {
  const char *symbol, *equals;
  const char *source;   /* what needs the definition: a node (onnx_node_source), or a text such as "the content of input
                           'x'" */
  const char *multiple; /* if `equals` is a multiple of a new symbol plus a constant, that symbol, otherwise NULL */
} onnx_definition;

/* The hint that a symbol had in the attempt from which a definition comes. */
typedef struct onnx_known_hint {
  const char *symbol;
  int64_t hint;
} onnx_known_hint;

typedef struct onnx_definitions {
  uint32_t n, cap;
  onnx_definition *items;
  /* The hints of the symbols in `equals`, since a definition may be used before the array is met that has the symbol.
   */
  uint32_t n_hints, cap_hints;
  onnx_known_hint *hints;
} onnx_definitions;

typedef enum onnx_node_state {
  ONNX_NODE_DEFERRED,        /* the node needs values that have not been computed yet */
  ONNX_NODE_DONE,            /* the node ran in this segment or in an earlier one */
  ONNX_NODE_HOST_INTERPRETED /* the node cannot be part of a module, so the caller runs it outside of one: a function
                                call, If, Loop or Scan whose body needs the contents of values that the body
                                computes, or a node that reads sequences of the frame (onnx_reads_sequences) */
} onnx_node_state;

/* Whether a node that could not be imported asked for equations of sizes (pins, for example), with which the import is
 * repeated: they were not tried yet, or it could not be imported with them either. */
typedef enum onnx_equations { ONNX_EQUATIONS_NONE, ONNX_EQUATIONS_ASKED, ONNX_EQUATIONS_IN_VAIN } onnx_equations;

/* The reason why a node cannot be imported. */
typedef struct onnx_finding {
  status_code code, subject;
  uint32_t node;    /* the index of the node in the frame; for a node in a body or a function, the index of the frame's
                       node that has the body or calls the function */
  const char *text; /* one line, which begins with the node's label */
} onnx_finding;

typedef struct onnx_findings {
  uint32_t n, cap;
  onnx_finding *items;
} onnx_findings;

/* A graph that runs segment by segment: the main graph, a subgraph or a function's body.  A subgraph sees those values
 * of the frames around it that have been computed already. */
typedef struct onnx_frame {
  const onnx_model *model;
  const struct onnx_frame *outer; /* the frame around a subgraph; NULL if nothing around it is visible */
  const Onnx__GraphProto *graph;  /* NULL if the frame is a function's body */
  /* If the frame is a function's body, the function and the node that calls it, whose references to attributes
   * onnx_node_bind has replaced; otherwise NULL. */
  const onnx_function *function;
  const Onnx__NodeProto *call;
  size_t n_nodes, n_outputs;
  Onnx__NodeProto *const *nodes;
  uint8_t *states; /* the onnx_node_state of each node */
  str_map arrays;  /* from a name to an onnx_array * */
  arena *arena;    /* has the frame's tables; the arrays may be elsewhere */
  uint64_t place;  /* a hash that identifies the body, so that random operators in different bodies draw different
                      numbers; 0 means the main graph */
  int depth;       /* the number of frames around this one, including those of functions */
  bool unchecked;  /* as in onnx_import_options (import.h) */
  /* The table of the symbols in the shapes of arrays; NULL if all dimensions are constants.  The two members
   * below are set only if it is not NULL: what is known of the symbols, and the least hint that a symbol for
   * an open dimension or element gets. */
  dim_table *dims;
  const onnx_definitions *definitions;
  int64_t least_hint;
  uint8_t *equations; /* the onnx_equations of each node in an import of an open segment (symbolic.h), otherwise NULL */
  /* If not NULL, a node that cannot be imported is listed here, and the import continues as if that node and those that
   * depend on it were deferred. */
  onnx_findings *findings;
  const char *differing; /* if inputs give one name of a dimension different sizes, a text that says so */
} onnx_frame;

/* The name under which the frame of a loop's body has a hash of the iteration numbers of all loops around it, u64[];
 * random operators use it. */
#define ONNX_FRAME_STEP ""

/* Returns a frame without arrays, either of a graph or, if `graph` is NULL, of the body of `function`.  `call` is the
 * node that calls the function.  Its own references to attributes must have been replaced already (onnx_node_bind), and
 * it must live as long as the frame. */
onnx_frame *onnx_frame_create(arena *a, const onnx_model *m, const onnx_frame *outer, const Onnx__GraphProto *graph,
                              const onnx_function *function, const Onnx__NodeProto *call);
const char *onnx_frame_output(const onnx_frame *f, size_t k);
const onnx_opsets *onnx_frame_opsets(const onnx_frame *f);
/* Returns node k of the frame.  In a function's body, attributes that refer to attributes of the call are replaced by
 * them (onnx_node_bind). */
STATUS_MUST_USE status onnx_frame_node(const onnx_frame *f, arena *a, size_t k, const Onnx__NodeProto **out);

/* Looks a value up in the frame and the frames around it.  If it is an array of a frame, sets *array; if it is an
 * initializer, reads it onto `a` and sets *initializer, whose elements need not be aligned (onnx_tensor_weights); the
 * other is NULL.  Both are NULL if there is no such value. */
STATUS_MUST_USE status onnx_frame_find(const onnx_frame *f, arena *a, const char *name, onnx_array **array,
                                       literal **initializer);
/* Returns the name of element k of a sequence.  It is not valid UTF-8, so that no value of a model has the same name.
 */
const char *onnx_element_name(arena *a, const char *sequence, uint32_t k);
/* Returns true if the name is an input of a function and the call of that function leaves it out, so that it has no
 * value. */
bool onnx_frame_leaves_out(const onnx_frame *f, const char *name);

typedef struct onnx_names {
  uint32_t n, cap;
  const char **items;
} onnx_names;
/* Calls `visit` with each name that a node reads, one or more times: its inputs, and the outer values that its
 * subgraphs read.  Ends as soon as `visit` returns true, and returns whether it did. */
typedef bool onnx_reads_fn(void *data, const char *name);
bool onnx_visit_reads(arena *a, const Onnx__NodeProto *node, onnx_reads_fn *visit, void *data);
/* Appends the names that a node reads to *out, on the arena, each once. */
void onnx_node_reads(arena *a, const Onnx__NodeProto *node, onnx_names *out);

/* Adds the names that a node reads to a set: they get a value that is not NULL. */
void onnx_add_reads(str_map *names, const Onnx__NodeProto *node);

/* An array that a segment uses, and its name. */
typedef struct onnx_array_use {
  const char *name;
  onnx_array *array;
  /* A set of elements of an array of integers: bit k stands for element k.  In a list of constants, these are the
   * elements that are symbols of the module; the other elements are constants.  In a list of parameters, the set is
   * empty if the parameter is the array itself; otherwise it has one element, whose value the parameter tells
   * (onnx_told_shape). */
  uint64_t elements;
} onnx_array_use;

/* Returns true if an array of this shape is a short list of integers or truth values, whose elements can be symbols. */
bool onnx_holds_sizes(const shape *s);
/* Returns the shape of the parameter by which the caller tells the value of one element of an array: u8[element,0], an
 * empty array whose first extent is that value.  Each told element has a parameter of its own, since an array whose
 * extents are two such values may be too large. */
shape onnx_told_shape(dim element);

typedef struct onnx_array_uses {
  uint32_t n, cap;
  onnx_array_use *items;
} onnx_array_uses;

/* A sequence, or an optional without an element, that is a result of a segment.  Its n elements are the module's
 * results from number `first` on. */
typedef struct onnx_leaving {
  const char *name;
  shape_kind kind;
  dtype type;
  uint32_t n, first;
} onnx_leaving;

typedef struct onnx_segment {
  /* The module's parameters and results have the names of the graph's values; the additional roots for sizes of dynamic
   * dimensions (hlo_module.size_of) have no names. */
  hlo_module *module;
  onnx_array_uses params;    /* for each parameter of the module: the array that it is, or whose element it tells */
  onnx_array_uses constants; /* arrays that the module uses as constants */
  onnx_array_uses sequences; /* sequences that the segment uses element by element */
  onnx_leaving *leaving;
  uint32_t n_leaving, cap_leaving;
  uint8_t *states;     /* the states of the frame's nodes after this segment has run */
  bool *known;         /* for each result: true if later segments use it as a constant */
  uint32_t *open_dims; /* for each result: its onnx_array.open_dims and open_elements after this segment */
  uint64_t *open_elements;
  bool complete;        /* whether all nodes of the frame will have run after this segment */
  const char *reason;   /* why the first node that needs contents is deferred or host-interpreted; NULL if no node needs
                           contents */
  const char *deferred; /* why the first node is deferred or host-interpreted; NULL if none is */
  onnx_definitions definitions; /* the definitions with which onnx_import_open_segment imported the segment */
} onnx_segment;

/* Imports as many of the nodes that have not run yet as possible.  If a node needs the content of an array whose
 * content is not known, the array's `asked` is set and the node is deferred; the caller should import again with that
 * array known.  With `signature`, f must be the frame of a graph.  Then all inputs of the graph that are arrays of the
 * frame become parameters, in order, even those that are known; and if the segment completes the frame, all outputs
 * become results, in order. */
STATUS_MUST_USE status onnx_import_segment(arena *a, const onnx_frame *f, bool signature, hlo_eval_fn *eval,
                                           onnx_segment *out);
/* Notes in f->equations which nodes did not become part of the segment although they asked for equations.  Returns true
 * if there are any: then the import is to begin again without these equations. */
bool onnx_segment_asked_in_vain(const onnx_frame *f, const onnx_segment *p);

#endif
