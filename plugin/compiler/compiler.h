/* compiler.h - what the compiler half offers to the half that runs.  It is a library of its own
 * (libonnx-xla-compiler.so), opened when a model must be read or compiled, so that a process which only runs .oxla
 * files maps neither LLVM nor protobuf.
 *
 * The two libraries carry copies of base/ and runtime/: arenas, statuses and programs pass between them as data, and
 * each function here runs inside a guard of its own. */
#ifndef PLUGIN_COMPILER_COMPILER_H
#define PLUGIN_COMPILER_COMPILER_H

#include "base/tensor/literal.h"
#include "runtime/program/image.h"
#include "runtime/program/target.h"
#include "verify/verify.h"

/* An input or output as the model declares it; a dimension without a fixed size is -1, with its name or NULL. */
typedef struct model_value {
  const char *name;
  shape shape;
  const char *dim_names[SHAPE_MAX_RANK];
} model_value;

typedef struct model_property {
  const char *key, *value;
} model_property;

/* A model that can be compiled.  Everything lives on the arena it was opened on. */
typedef struct compiler_model {
  const char *name;
  uint32_t n_inputs, n_outputs, n_properties;
  model_value *inputs, *outputs; /* inputs: those that must be given */
  model_property *properties;    /* the model's metadata */
  uint32_t n_nodes;              /* ONNX operators, functions inlined */
  uint32_t n_initializers;       /* of the main graph, given constants included */
  uint32_t n_files;              /* beside the model's, in which tensors of it lie: paths from its folder */
  const char **files;
  const void *model; /* the compiler's own */
} compiler_model;

typedef struct compiler_dim {
  const char *name;
  int64_t value;
} compiler_dim;

/* An input that never changes: compiled in as if the model had it as an initializer. */
typedef struct compiler_constant {
  const char *name;
  literal value; /* the data is borrowed for the life of the source */
} compiler_constant;

/* What to make of a source. */
typedef struct compile_request {
  const char *backend; /* "cpu", "ref", or the path of a backend's shared object */
  rt_compile_options options;
  const compiler_dim *dims;
  uint32_t n_dims;
  const shape *const
      *inputs; /* by the source's inputs: whole shapes, entries NULL where unknown; NULL means all unknown */
  /* By the source's inputs: what they hold, where that is known; entries, or all, NULL.  Those that decide sizes are
   * used, and the program is then for these values (rt_io.value). */
  const void *const *values;
  int64_t open_dim; /* what an open dimension is; 0 means an error */
} compile_request;

/* A model that runs piece by piece, with the pieces it has been compiled to so far.  Thread-safe. */
typedef struct segmented_model segmented_model;

/* One run of it. */
typedef struct segments_run_options {
  const shape *const *shapes; /* by the source's inputs */
  const void *const *values;
  rt_thread_pool *pool;
  mem_budget *budget;           /* of this run; may be NULL */
  uint64_t seed;                /* of random operators */
  struct rt_profiler *profiler; /* NULL means off */
  bool check_memory;            /* of all its runs */
  /* Called with each piece as it was imported, and its inputs, before it runs for the first time.  NULL means nobody
   * looks. */
  status (*watch)(void *data, hlo_module *segment, const literal *inputs);
  void *watch_data;
} segments_run_options;

/* An array in memory of its own: budget_free(budget, data, bytes, 64) with the budget of the pieces. */
typedef struct compiler_array {
  shape shape;
  void *data;
  size_t bytes; /* at least shape_bytes */
} compiler_array;

typedef struct operator_use {
  const char *domain, *name;
  int64_t opset;
  int since; /* version whose meaning is in force; 0 means the operator is unknown */
  bool supported;
  uint64_t count;
} operator_use;

/* What is wrong with a node of the main graph, or in its body. */
typedef struct compiler_finding {
  status_code code;
  uint32_t node; /* its number */
  const char *text;
} compiler_finding;

/* What stands between a model and running it. */
typedef struct support_report {
  operator_use *ops;
  uint32_t n_ops, n_values, n_problems, n_notes;
  const char **values;    /* "input x: f32[batch,3]", as declared */
  const char **problems;  /* what is not supported */
  const char **notes;     /* what its user must give */
  const char **dim_names; /* of inputs, each once */
  uint32_t n_dim_names;
  compiler_finding *findings; /* problems and guesses, by node; what depends on a node with one is not looked at */
  uint32_t n_findings;
} support_report;

/* What to verify a source with. */
typedef struct compiler_verify_options {
  const literal *inputs; /* by the source's inputs */
  bool all_algorithms;   /* these as in verify_options */
  const char *folder;
  uint64_t seed;
  void (*progress)(void *data, const char *what, double share);
  void *progress_data;
} compiler_verify_options;

enum { COMPILER_ABI = 8 };

typedef struct compiler_api {
  uint32_t abi;
  void (*adopt_guard)(const guard_owner *other); /* the compiler half's copy of guard_adopt */
  const char *versions;                          /* of LLVM and the libraries, for people */
  int ir_version, opset_version;                 /* the newest of ONNX and ai.onnx that are read */
  /* A model as bytes, which are borrowed.  `path` is that of their file, mapped on `a`, which names it in messages and
   * in whose folder external data lies; NULL means a model in memory. */
  status (*open)(arena *a, const char *path, const void *bytes, size_t size, uint32_t n_constants,
                 const compiler_constant *constants, compiler_model **out);
  /* HLO text as a source of its own. */
  status (*open_hlo)(arena *a, const char *name, const char *text, size_t size, compiler_model **out);
  /* Imports, optimises, lowers.  The program lives on `a` and borrows the source's constants, and (options.sharing, of
   * which only `shared` is given here) shared arrays.  *out NULL: sizes depend on what the model computes; it runs
   * piece by piece. */
  status (*compile)(const compiler_model *s, const compile_request *request, arena *a, rt_program **out,
                    rt_report *report);
  /* The request's inputs and values are not looked at, strings and lists in it are borrowed.  NULL is allowed for
   * destroy. */
  status (*segments_create)(const compiler_model *s, const compile_request *request, mem_budget *budget,
                            segmented_model **out);
  void (*segments_destroy)(segmented_model *p);
  /* outputs[n_outputs] of the source. */
  status (*segments_run)(segmented_model *p, const segments_run_options *run, compiler_array *outputs);
  /* The source as the bytes of one model file, borrowed from it.  UNSUPPORTED where it is more than that. */
  status (*bytes)(const compiler_model *s, rt_span *out);
  /* Whether it could be compiled, without doing it: names every unsupported operator at once, then what the import
   * finds, then outputs that are not what the model declares. */
  status (*check)(const compiler_model *s, const compile_request *request, mem_budget *budget);
  /* The module as text: as imported (after NULL), after the last run of the named pass of the target's pipeline, or
   * ("final") as it is lowered.  no_constants: large ones are "...", for people. */
  status (*print)(const compiler_model *s, const compile_request *request, const char *after, bool no_constants,
                  arena *a, const char **text);
  /* Whether the target computes what the reference evaluator does (verify/verify.h).  The report's texts are on the
   * arena. */
  status (*verify)(const compiler_model *s, const compile_request *request, const compiler_verify_options *o, arena *a,
                   verify_report *out);
  /* PTX text of the module's elementwise fusions. */
  status (*print_ptx)(const compiler_model *s, const compile_request *request, arena *a, const char **text);
  /* What became of a node, by its name or that of an output: what it was imported as, what removed it or it is a part
   * of, how that is computed and where it lies. */
  status (*explain)(const compiler_model *s, const compile_request *request, const char *node, arena *a,
                    const char **text);
  /* Operators in use, sorted. */
  status (*list_ops)(const compiler_model *s, arena *a, operator_use **out, uint32_t *n);
  /* All operators of a model, which is given as to `open`, and all that is not supported in it.  Fails only if it
   * cannot be read. */
  status (*check_support)(arena *a, const char *path, rt_span bytes, const compile_request *request,
                          support_report *out);
  /* Named passes, comma-separated, on HLO text. */
  status (*opt)(arena *a, const char *name, const char *text, size_t size, const char *passes, const char **out);
  /* "name: contract" lines of all passes. */
  const char *(*pass_list)(arena *a);
  /* All operators that the standard has, and which are supported: a page in Markdown. */
  const char *(*op_page)(arena *a);
  status (*backend)(const char *name, const rt_backend **out);
  /* ONNX tensor files. */
  status (*read_pb)(arena *a, const char *path, const char **name, literal *out);
  status (*tensor_to_pb)(arena *a, const char *name, const literal *l, uint8_t **bytes, size_t *size);
} compiler_api;

/* The function that libonnx-xla-compiler.so exports as "onnx_xla_compiler_get". */
typedef const compiler_api *compiler_entry(uint32_t abi);
compiler_entry onnx_xla_compiler_get;

#endif
