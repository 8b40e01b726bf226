/* compiler.h - the interface of the compiler half.  It is a library of its own (libonnx-xla-compiler.so), which is
 * opened when a model must be read or compiled, so that a process which only runs .oxla files maps neither LLVM nor
 * protobuf.
 *
 * Both libraries have copies of base/ and runtime/. Arenas, statuses and programs are passed between them as data, and
 * each function here runs inside a guard of its own. */
#ifndef PLUGIN_COMPILER_COMPILER_H
#define PLUGIN_COMPILER_COMPILER_H

#include "base/tensor/literal.h"
#include "runtime/program/image.h"
#include "runtime/program/target.h"
#include "verify/verify.h"

/* An input or output as the model declares it.  A dimension without a fixed size is -1 and has a name or NULL. */
typedef struct model_value {
  const char *name;
  shape shape;
  const char *dim_names[SHAPE_MAX_RANK];
} model_value;

typedef struct model_property {
  const char *key, *value;
} model_property;

/* A model that can be compiled.  Everything is on the arena on which it was opened. */
typedef struct compiler_model {
  const char *name;
  uint32_t n_inputs, n_outputs, n_properties;
  model_value *inputs, *outputs; /* inputs are those that must be given */
  model_property *properties;    /* the model's metadata */
  uint32_t n_nodes;              /* the number of ONNX operators, with functions inlined */
  uint32_t n_initializers;       /* of the main graph, including given constants */
  uint32_t n_files;              /* files beside the model that contain tensors: paths relative to its folder */
  const char **files;
  const void *model; /* for the compiler only */
} compiler_model;

typedef struct compiler_dim {
  const char *name;
  int64_t value;
} compiler_dim;

/* An input that never changes: it is compiled into the program as if it were an initializer of the model. */
typedef struct compiler_constant {
  const char *name;
  literal value; /* the data is borrowed as long as the source lives */
} compiler_constant;

/* How to compile a source. */
typedef struct compile_request {
  const char *backend; /* "cpu", "ref", or the path of a backend's shared object */
  rt_compile_options options;
  const compiler_dim *dims;
  uint32_t n_dims;
  const shape *const
      /* In the order of the source's inputs: whole shapes, with NULL for an unknown one; NULL means that all are
       * unknown. */
      *inputs;
  /* In the order of the source's inputs: their contents, with NULL for unknown ones; may be NULL.  Contents on which
   * sizes depend are used, and the program is then for these values only (rt_io.value). */
  const void *const *values;
  int64_t open_dim; /* the value of an open dimension; 0 means that it is an error */
} compile_request;

/* A model that runs segment by segment, with the segments that have been compiled so far.  It is thread-safe. */
typedef struct segmented_model segmented_model;

/* One run of it. */
typedef struct segments_run_options {
  const shape *const *shapes; /* in the order of the source's inputs */
  const void *const *values;
  rt_thread_pool *pool;
  mem_budget *budget;           /* the budget of this run; may be NULL */
  uint64_t seed;                /* the seed of random operators */
  struct rt_profiler *profiler; /* NULL means off */
  bool check_memory;            /* for all its runs */
  /* Is called with each segment as it was imported, and its inputs, before it runs for the first time.  May be NULL. */
  status (*watch)(void *data, hlo_module *segment, const literal *inputs);
  void *watch_data;
} segments_run_options;

/* An array in memory of its own, to be freed by budget_free(budget, data, bytes, 64) with the segments' budget. */
typedef struct compiler_array {
  shape shape;
  void *data;
  size_t bytes; /* at least shape_bytes */
} compiler_array;

typedef struct operator_use {
  const char *domain, *name;
  int64_t opset;
  int since; /* the version whose meaning is in force; 0 means that the operator is unknown */
  bool supported;
  uint64_t count;
} operator_use;

/* What is wrong with a node of the main graph, or with a node in its body. */
typedef struct compiler_finding {
  status_code code;
  uint32_t node; /* its index */
  const char *text;
} compiler_finding;

/* What prevents a model from being compiled or run. */
typedef struct support_report {
  operator_use *ops;
  uint32_t n_ops, n_values, n_problems, n_notes;
  const char **values;    /* inputs and outputs as declared, such as "input x: f32[batch,3]" */
  const char **problems;  /* what is not supported */
  const char **notes;     /* what the user must give */
  const char **dim_names; /* of inputs, each once */
  uint32_t n_dim_names;
  /* By node: problems, and possible ones; nodes that depend on such a node are not looked at. */
  compiler_finding *findings;
  uint32_t n_findings;
} support_report;

/* What to verify a source with. */
typedef struct compiler_verify_options {
  const literal *inputs; /* in the order of the source's inputs */
  bool all_algorithms;   /* the following are as in verify_options */
  const char *folder;
  uint64_t seed;
  void (*progress)(void *data, const char *what, double share);
  void *progress_data;
} compiler_verify_options;

enum { COMPILER_ABI = 8 };

typedef struct compiler_api {
  uint32_t abi;
  void (*adopt_guard)(const guard_owner *other); /* the compiler half's copy of guard_adopt */
  const char *versions;                          /* the versions of LLVM and the libraries, for people */
  int ir_version, opset_version;                 /* the newest versions of ONNX and ai.onnx that can be read */
  /* Opens a model from bytes, which are borrowed.  `path` is the path of their file, which is mapped on `a`; it is used
   * in messages, and external data is looked for in its folder.  NULL means a model in memory. */
  status (*open)(arena *a, const char *path, const void *bytes, size_t size, uint32_t n_constants,
                 const compiler_constant *constants, compiler_model **out);
  /* Opens HLO text as a source. */
  status (*open_hlo)(arena *a, const char *name, const char *text, size_t size, compiler_model **out);
  /* Imports, optimises and lowers.  The program is on `a` and borrows the source's constants and shared arrays (of
   * options.sharing only `shared` is given here).  *out is NULL if sizes depend on what the model computes, so that it
   * runs segment by segment. */
  status (*compile)(const compiler_model *s, const compile_request *request, arena *a, rt_program **out,
                    rt_report *report);
  /* The request's inputs and values are not used; its strings and lists are borrowed. segments_destroy accepts NULL. */
  status (*segments_create)(const compiler_model *s, const compile_request *request, mem_budget *budget,
                            segmented_model **out);
  void (*segments_destroy)(segmented_model *p);
  /* outputs has n_outputs entries. */
  status (*segments_run)(segmented_model *p, const segments_run_options *run, compiler_array *outputs);
  /* Returns the source as the bytes of one model file, borrowed from it.  It is UNSUPPORTED if the model consists of
   * several files. */
  status (*bytes)(const compiler_model *s, rt_span *out);
  /* Returns an error if it cannot be compiled, as far as can be told without compiling: names every unsupported
   * operator at once, then the first error of the import, then outputs that differ from the model's declaration. */
  status (*check)(const compiler_model *s, const compile_request *request, mem_budget *budget);
  /* Returns the module as text: as imported (`after` is NULL), after the last run of that pass of the target's
   * pipeline, or ("final") as it is lowered.  With no_constants, large constants are "...", for people. */
  status (*print)(const compiler_model *s, const compile_request *request, const char *after, bool no_constants,
                  arena *a, const char **text);
  /* Compares what the target computes with the reference evaluator (verify/verify.h).  The report's texts are on the
   * arena. */
  status (*verify)(const compiler_model *s, const compile_request *request, const compiler_verify_options *o, arena *a,
                   verify_report *out);
  /* Returns PTX of the module's elementwise fusions. */
  status (*print_ptx)(const compiler_model *s, const compile_request *request, arena *a, const char **text);
  /* Explains what became of a node, given by its name or that of an output: as what it was imported, what removed it or
   * what it is a part of, how that is computed and where its result is. */
  status (*explain)(const compiler_model *s, const compile_request *request, const char *node, arena *a,
                    const char **text);
  /* Returns the operators in use, sorted. */
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
