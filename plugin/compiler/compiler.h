/* compiler.h - the interface of the compiler library (libonnx-xla-compiler.so, "the compiler half" in messages), which
 * the main library opens when a model must be read or compiled.  A process that only runs .oxla files therefore maps
 * neither LLVM nor protobuf.
 *
 * Both libraries contain copies of base/ and runtime/. Arenas, statuses and programs are passed between them as data,
 * and each function of this interface runs inside a guard of its own (guard_run). */
#ifndef PLUGIN_COMPILER_COMPILER_H
#define PLUGIN_COMPILER_COMPILER_H

#include "base/dim/guard.h"
#include "base/tensor/string_table.h"
#include "base/tensor/literal_list.h"
#include "runtime/program/image.h"
#include "runtime/program/target.h"
#include "verify/verify.h"

/* An input or output as the model declares it.  A dimension without a fixed size is -1 and has a name or NULL. */
typedef struct model_value {
  const char *name;
  shape shape;
  shape_kind element; /* the kind of the elements of a sequence or an optional */
  dtype key;          /* the type of the keys of a map, or of the maps in a sequence */
  const char *dim_names[SHAPE_MAX_RANK];
} model_value;

/* Returns true if an input that is declared like this takes values of the kind that `given` has. */
static inline bool model_value_takes(const model_value *v, const shape *given) {
  return given->kind == v->shape.kind || (v->shape.kind == SHAPE_UNRANKED && given->kind == SHAPE_ARRAY) ||
         (v->shape.kind == SHAPE_OPTIONAL && given->kind == v->element);
}

typedef struct model_property {
  const char *key, *value;
} model_property;

/* An opened model: what it declares, and the compiler's own data.  Everything is on the arena that `open` was given. */
typedef struct compiler_model {
  const char *name;
  uint32_t n_inputs, n_defaults, n_outputs, n_properties;
  model_value *inputs;   /* the inputs that a caller must give */
  model_value *defaults; /* the inputs with an initializer, which a compiler_constant may replace */
  model_value *outputs;
  model_property *properties; /* the model's metadata */
  uint32_t n_nodes;           /* the number of ONNX operators, with functions inlined */
  uint32_t n_initializers;    /* initializers of the main graph, including the constants that `open` was given */
  uint32_t n_files;
  const char **files;          /* files of external data: paths relative to the model's folder */
  const string_table *strings; /* the numbers of the model's strings, which arrays of strings have; never NULL */
  const void *model;           /* the compiler's own data (opened_model in internal.h) */
} compiler_model;

typedef struct compiler_dim {
  const char *name;
  int64_t value;
} compiler_dim;

/* An input that never changes: it is compiled into the program as if it were an initializer of the model, in place of
 * the one that the model may have for it. */
typedef struct compiler_constant {
  const char *name;
  literal value; /* the data is borrowed as long as the model is open */
} compiler_constant;

/* An output that becomes an input of the next run, and the dimension along which it grows. */
typedef struct compiler_carry {
  uint32_t output, input;
  int axis;
} compiler_carry;

/* The size that is assumed for open dimensions when a program for all sizes is compiled and nothing is known of them.
 * It is not 1, since a batch, a length or a width of 1 is a special case. */
enum { COMPILER_LIKELY_SIZE = 64 };

/* How to compile a model. */
typedef struct compile_request {
  const char *backend; /* a name (backend.h) */
  rt_compile_options options;
  const compiler_dim *dims;
  uint32_t n_dims;
  const dim_range *ranges; /* the sizes that named dimensions may have; a program for all sizes serves only these */
  uint32_t n_ranges;
  /* The shapes of the model's inputs, in their order.  An entry is NULL if the shape is unknown; the list is NULL if
   * all are unknown. */
  const shape *const *inputs;
  /* The contents of the model's inputs, in their order.  An entry is NULL if the contents are unknown; the list may be
   * NULL.  If sizes depend on the contents of an input, the program is compiled for these contents only (rt_io.value),
   * unless all_sizes is set and the elements of the input can be symbols (rt_io.told). */
  const void *const *values;
  /* Whether the program is to serve all sizes (frontend/import/symbolic.h).  Then the sizes of `inputs` are only
   * hints. */
  bool all_sizes;
  bool not_static; /* with all_sizes: whether it is an error, before anything is compiled, if all sizes are pinned */
  /* With all_sizes: whether no other program can be compiled for sizes that this one does not serve. */
  bool alone;
  /* Whether the dimensions in `dims` are fixed to their sizes although the program is to serve all sizes of
   * the others. */
  bool fixed_dims;
  /* The outputs that are carried.  The program writes them in place where that is possible.  It carries an output that
   * does not grow in the parameter of its input (rt_io.carried).  An output that grows can only be carried by a program
   * for all sizes, in a further parameter that comes after those of the inputs. */
  const compiler_carry *carried;
  uint32_t n_carried;
  int64_t open_dim; /* the value of symbolic dimensions that have no other value; 0 means that these are an error */
  /* The shapes of the inputs for which `inputs` has none, in the order of the model's inputs, as
   * compiler_api.assume_sizes returns them; NULL if open_dim is the size of all their open dimensions. */
  const shape *assumed;
  /* Called by `compile` when the model has been imported.  From then on `compile` reads nothing of the compiler_model
   * that another compilation may change, so that one may begin.  But if the model has external data, `compile` still
   * reads the list of its mapped files, which another compilation may extend.  May be NULL. */
  void (*imported)(void *data);
  void *imported_data;
  /* For segments: called after a segment was compiled, if its program `p` has code that the weight pool did not have.
   * This code is the first n_new code objects of `p`.  May be NULL. */
  void (*compiled)(void *data, const rt_program *p, uint32_t n_new);
  void *compiled_data;
  const rt_code_cache *code_cache; /* for segments: see rt_target.load_code; may be NULL */
} compile_request;

/* A model that runs segment by segment, since its sizes depend on what it computes, with the segments that have been
 * compiled so far.  A segment is a part of the model that is compiled on its own.  Thread-safe. */
typedef struct segmented_model segmented_model;

/* The inputs and options of one run of a segmented_model. */
typedef struct segments_run_options {
  const shape *const *shapes; /* in the order of the model's inputs, as are `values` */
  const void *const *values;  /* the data of literals (literal_list.h) */
  rt_thread_pool *pool;
  mem_budget *budget;    /* the budget of this run; may be NULL */
  uint64_t seed;         /* the seed of random operators */
  string_table *strings; /* the numbers of strings; those that the model makes are added; NULL: it may make none */
  struct rt_profiler *profiler; /* NULL if the run is not profiled */
  bool check_memory;            /* whether accesses to memory are checked (runtime/exec/check_memory.h) */
  /* Called before a segment with a program runs for the first time, with its module as imported and its inputs.  May be
   * NULL. */
  status (*watch)(void *data, hlo_module *segment, const literal *inputs);
  void *watch_data;
  /* Called with one line for each segment that is compiled, and then, with `is_detail`, with one line for each
   * definition of a symbol and each guard of its program.  May be NULL. */
  void (*log)(void *data, bool is_detail, const char *line);
  void *log_data;
} segments_run_options;

/* The data of a literal (literal_list.h), in one block of memory.  The receiver frees it with budget_free(budget, data,
 * bytes, 64), where `budget` is the one that segments_create was given. */
typedef struct compiler_array {
  shape shape;
  void *data;
  size_t bytes; /* the size of the allocation, which is at least literal_packed_bytes */
} compiler_array;

typedef struct operator_use {
  const char *domain, *name;
  int64_t opset;
  int since; /* the operator set version that introduced the operator in the form that the model uses; 0 means that
                the operator is unknown */
  bool supported;
  uint64_t count;
} operator_use;

/* A problem of a node of the main graph, or of a node in one of its bodies. */
typedef struct compiler_finding {
  status_code code;
  uint32_t node; /* the index of the node of the main graph */
  const char *text;
} compiler_finding;

/* What prevents a model from being compiled or run. */
typedef struct support_report {
  operator_use *ops;
  uint32_t n_ops, n_values, n_problems, n_notes;
  const char **values;    /* inputs and outputs as declared, such as "input x: f32[batch,3]" */
  const char **problems;  /* reasons why the model cannot be compiled or run */
  const char **notes;     /* hints, such as which inputs or sizes the user must give */
  const char **dim_names; /* the names of the inputs' symbolic dimensions, each once */
  uint32_t n_dim_names;
  /* Problems of nodes, including those that are reported as notes since another size of a symbolic dimension may avoid
   * them.  Nodes that depend on such a node are not checked. */
  compiler_finding *findings;
  uint32_t n_findings;
} support_report;

/* The inputs and options for compiler_api.verify. */
typedef struct compiler_verify_options {
  const literal *inputs; /* in the order of the model's inputs */
  string_table *strings; /* segments_run_options.strings */
  bool all_algorithms;   /* this member and all that follow mean the same as in verify_options */
  const char *folder;
  uint64_t seed;
  void (*progress)(void *data, const char *what, double share);
  void *progress_data;
} compiler_verify_options;

/* How an object file is written (aot/aot.h). */
typedef struct compiler_object_options {
  const char *prefix;        /* a C identifier with which the names in the object begin */
  const char *file, *header; /* the names of the object file or library and of the header, without their folder */
  bool archive, separate_weights;
  uint64_t most_arena; /* the largest number of bytes that the arena may have; 0 means no limit */
} compiler_object_options;

typedef struct compiler_text {
  const char *name, *text;
} compiler_text;

/* An object file and its header, on the arena of the call. */
typedef struct compiler_object {
  rt_span object;
  const char *header;
  rt_span weights; /* the contents of the file of weights, if separate_weights is set */
  uint32_t n_example;
  const compiler_text *example; /* files of a program that runs the object */
  const rt_program *program; /* the program from which the object was written; if the object has several versions, that
                                of the last one */
} compiler_object;

enum { COMPILER_ABI = 21 };

typedef struct compiler_api {
  uint32_t abi;
  void (*adopt_guard)(const guard_owner *other); /* the compiler library's copy of guard_adopt, which the main library
                                                    calls with its own guard */
  const char *versions;                          /* text with the versions of LLVM and of the libraries */
  int ir_version, opset_version;                 /* the newest versions of ONNX and ai.onnx that can be read */
  /* Opens a model from bytes, which are borrowed.  `path` is the path of the file that contains them, which must be
   * mapped on `a`, or NULL for a model in memory.  The path is used in messages, and external data is looked for in its
   * folder. */
  status (*open)(arena *a, const char *path, const void *bytes, size_t size, uint32_t n_constants,
                 const compiler_constant *constants, compiler_model **out);
  /* Opens HLO text as a model. */
  status (*open_hlo)(arena *a, const char *name, const char *text, size_t size, compiler_model **out);
  /* Imports the model, optimises and compiles it.  The program is on `a` and borrows the model's constants and arrays
   * of the weight pool.  Of options.sharing, which may be NULL, the caller sets only the member `weight_pool`.  *out is
   * NULL if sizes depend on what the model computes; such a model runs segment by segment. */
  status (*compile)(const compiler_model *s, const compile_request *request, arena *a, rt_program **out,
                    rt_report *report);
  /* Sets out[k] to a shape of input k at which the model can be imported for all sizes.  Sizes to which the request
   * gives no value are assumed.  The error is UNSUPPORTED or INVALID_MODEL if no such sizes are found.  If `beyond` is
   * not NULL, sizes beyond an upper bound of the program for these are looked for (frontend/import/assume.h), and
   * *beyond says whether there are any.  Allocates on `a` only what it needs meanwhile. */
  status (*assume_sizes)(const compiler_model *s, const compile_request *request, arena *a, shape *out, bool *beyond);
  /* Compiles the model to an object file.  The error is UNSUPPORTED if sizes depend on what the model computes in such
   * a way that it runs segment by segment, or if it needs what no object can contain. */
  status (*write_object)(const compiler_model *s, const compile_request *request, const compiler_object_options *o,
                         arena *a, compiler_object *out, rt_report *report);
  /* Creates a segmented_model.  The request's inputs and values are not used.  Its strings and lists are borrowed, and
   * so are `s`, `budget` and the weight pool of options.sharing.  segments_destroy accepts NULL. */
  status (*segments_create)(const compiler_model *s, const compile_request *request, mem_budget *budget,
                            segmented_model **out);
  void (*segments_destroy)(segmented_model *p);
  /* Runs the model once.  `outputs` has an entry for each of the model's outputs; after a failure all entries are
   * zeros. */
  status (*segments_run)(segmented_model *p, const segments_run_options *run, compiler_array *outputs);
  /* Returns the bytes of the model's file, which are borrowed from the model.  The error is UNSUPPORTED if the model is
   * HLO text or has external data or constants beside its file. */
  status (*bytes)(const compiler_model *s, rt_span *out);
  /* Returns a hash of the model's file, without external data; 0 if the model is HLO text. */
  uint64_t (*model_hash)(const compiler_model *s);
  /* Returns an error if the model cannot be compiled, as far as can be told without compiling it.  The error is the
   * first of these: all unsupported operators together, an output that is declared with an unsupported type, an error
   * of the import, an output whose type or shape differs from its declaration. */
  status (*check)(const compiler_model *s, const compile_request *request, mem_budget *budget);
  /* Returns the module as text.  `after` is NULL for the module as imported, the name of a pass of the target's
   * pipeline for the module after the last run of that pass that changed it, or "final" for the module after all
   * passes.  If no_constants is set, large constants are printed as "...". */
  status (*print)(const compiler_model *s, const compile_request *request, const char *after, bool no_constants,
                  arena *a, const char **text);
  /* Compares the results of the target with those of the reference evaluator (verify/verify.h).  The report's texts are
   * on the arena. */
  status (*verify)(const compiler_model *s, const compile_request *request, const compiler_verify_options *o, arena *a,
                   verify_report *out);
  /* Explains what became of a node, which is given by its name or by the name of one of its outputs.  The text lists
   * the instructions that the import made of the node.  If a pass has removed the last of them, the text names that
   * pass; otherwise it lists the instructions of the final module that contain the rest of them, with their algorithm,
   * thunks and buffers. */
  status (*explain)(const compiler_model *s, const compile_request *request, const char *node, arena *a,
                    const char **text);
  /* Returns the operators that the model uses, sorted. */
  status (*list_ops)(const compiler_model *s, arena *a, operator_use **out, uint32_t *n);
  /* Lists the operators of a model and everything in it that is not supported.  `path` and `bytes` are as for `open`.
   * The request may have the model's own names of dimensions (dim_find_name); names that the model does not have are
   * ignored.  Fails only if the model cannot be read. */
  status (*check_support)(arena *a, const char *path, rt_span bytes, const compile_request *request,
                          support_report *out);
  /* Applies passes, given as comma-separated names, to HLO text and returns the new text. */
  status (*opt)(arena *a, const char *name, const char *text, size_t size, const char *passes, const char **out);
  /* Returns a line for each pass, with its name and what it does. */
  const char *(*pass_list)(arena *a);
  /* Returns a page in Markdown that lists the operators of the ONNX standard and says which are supported. */
  const char *(*op_page)(arena *a);
  /* Finds a backend by its name or path (backend.h). */
  status (*backend)(const char *name, const rt_backend **out);
  /* Read a file of a value that is declared with this kind and type (.pb), and make the bytes of one
   * (frontend/model/value.h). */
  status (*read_pb)(arena *a, const char *path, const shape *declared, string_table *strings, const char **name,
                    literal *out);
  status (*value_to_pb)(arena *a, const char *name, const shape *declared, const literal *l, string_table *strings,
                        uint8_t **bytes, size_t *size);
} compiler_api;

/* The function that libonnx-xla-compiler.so exports as "onnx_xla_compiler_get".  Returns NULL if `abi` is not the
 * library's COMPILER_ABI. */
typedef const compiler_api *compiler_entry(uint32_t abi);
compiler_entry onnx_xla_compiler_get;

#endif
