/* program.h - a compiled computation as plain data.  A compiler returns it, a .oxla file holds it, and an executable is
 * made from it.  It consists of thunks over buffer slices, constants and machine code, and has no pointers into the
 * compiler.
 *
 * A program borrows its bytes (constants, code, configs) from the arena or mapped file on which it was made. */
#ifndef RUNTIME_PROGRAM_PROGRAM_H
#define RUNTIME_PROGRAM_PROGRAM_H

#include "base/arena.h"
#include "base/dim/guard.h"
#include "base/tensor/shape.h"

/* A size, offset or stride.  If it is not negative, it is the number itself.  If it is negative, it is the result of
 * node -(size + 1) of rt_program.sizes, which is known when the program is bound to the sizes of a run's inputs
 * (runtime/exec/binding.h).  Only programs for many sizes have negative ones. */
typedef int64_t rt_size;

/* A node of a program's expressions of sizes: a symbol, or an operation of constants and of nodes before it. */
typedef struct rt_size_node {
  uint8_t op;   /* a dim_kind: DIM_SYMBOL, or DIM_ADD to DIM_NEG */
  rt_size a, b; /* the operands; for DIM_SYMBOL the symbol is the size of dimension b of parameter a */
  /* For DIM_SYMBOL, what the dimension is called in messages: a symbol of the model, or an expression of one, such as
   * 32*width.m for a width that must be a multiple of 32.  Other nodes may have no name, which is NULL or "". */
  const char *name;
} rt_size_node;

/* A condition on sizes (base/dim/guard.h): the program is right only for sizes at which it holds. */
typedef struct rt_guard {
  uint8_t relation;   /* a dim_relation */
  rt_size a, b;       /* the sizes that are compared; their values may be negative */
  const char *text;   /* such as "seq <= 512" */
  const char *source; /* who asked for it: the label of an ONNX node, or the name of a pass */
} rt_guard;

/* What the compiler found out about a symbol of the model: it equals a number (then it is pinned), or an expression of
 * other symbols.  The program serves no other sizes. */
typedef struct rt_definition {
  const char *symbol, *equals;
  const char *source; /* who asked for it: the label of an ONNX node */
} rt_definition;

/* A piece of the arena of a program for many sizes, which gets its offset when the program is bound.  It is live from
 * time `first` to time `last`, both included; pieces that are live at different times may share bytes. */
typedef struct rt_slot {
  rt_size bytes;
  uint32_t first, last;
} rt_slot;

typedef enum rt_space {
  RT_ARENA,    /* the memory of the run for intermediate values; for many sizes: slot `index` of the program */
  RT_CONSTANT, /* constant `index` of the program */
  RT_PARAM,    /* the caller's input `index` */
  RT_RESULT,   /* the caller's output `index`, which thunks write directly */
  /* Memory of the run, only on devices.  It is 0 when a thunk begins, since each thunk that changes it makes it 0
   * again.  All thunks use the same memory; its size is the most that one of them needs. */
  RT_COUNTERS,
  RT_SPACE_COUNT,
  RT_STAGED = RT_SPACE_COUNT /* array `index` of rt_run.staged; programs never have it, only thunks while they run */
} rt_space;

/* A slice of a space: an array whose element (i, j, ..) is at offset + (i*strides[0] + j*strides[1] + ..) * element
 * size.  Strides are counted in elements and are not negative.  The innermost stride is 1, unless the kind of the thunk
 * permits other strides. */
typedef struct rt_buffer {
  uint8_t space, type, rank; /* an rt_space, a dtype, and the number of dimensions */
  bool kept;                 /* for an output: whether the thunk also reads what the buffer contained before */
  uint32_t index;
  rt_size offset; /* in bytes */
  const rt_size *extents, *strides;
} rt_buffer;

typedef struct rt_span {
  const void *data;
  uint64_t size;
} rt_span;

struct rt_thunk_kind;
typedef struct rt_thunk rt_thunk;

/* Thunks that run one after the other. */
typedef struct rt_sequence {
  uint32_t n, cap;
  rt_thunk *thunks;
} rt_sequence;

/* A node of the ONNX model from which thunks were compiled. */
typedef struct rt_node {
  const char *text;          /* name and operator, such as "a: Conv" */
  const char *operator_name; /* such as "Conv" */
} rt_node;

/* One step of a program: a call of a kernel or of a library, or control flow. */
struct rt_thunk {
  const char *kind; /* the name of the rt_thunk_kind */
  /* What the thunk was compiled from, for messages and profiles: the HLO operation or the kind of fusion, and the nodes
   * of the model, as indices of rt_program.nodes. */
  const char *operation;
  const uint32_t *nodes;
  uint32_t n_nodes;
  /* for a fusion with a contraction: the index in `nodes` of the node from which the contraction comes (the other nodes
   * belong to its epilogue); n_nodes for other thunks */
  uint32_t contraction;
  uint32_t n_inputs, n_buffers;
  rt_buffer *buffers; /* the inputs, the outputs, scratch memory if the kind needs any, and counters if it needs any */
  uint32_t n_bodies;
  /* the index of the thunk's rt_origin, plus 1; 0 if it is not known.  It is not stored in files */
  uint32_t origin;
  rt_sequence *bodies; /* for control flow: one sequence for each body */
  /* Sizes that the kind needs besides those of the buffers, such as the grid and the arguments of a kernel; they may be
   * signed. */
  uint32_t n_sizes;
  const rt_size *sizes;
  /* Bytes with whatever else the kind needs.  The compiler writes them with rt_writer; rt_thunk_kind.load reads them.
   */
  rt_span config;
  /* For profiles: the number of operations and of moved bytes of one run (0 if it is not known), and a note, such as
   * which algorithm computes the thunk and why it was chosen. */
  int64_t operations, bytes;
  const char *note;
  /* Set by rt_executable_create: the thunk's kind, and what rt_thunk_kind.load has made. */
  const struct rt_thunk_kind *ops;
  void *state;
};

typedef struct rt_io {
  const char *name;
  shape shape; /* each dimension is an rt_size */
  /* If not NULL, the program may only be run with an input of exactly these contents (shape_bytes of them), since sizes
   * depend on them. */
  const void *value;
  /* For a parameter that tells an element of an input: the number of the input's parameter plus 1, and the index of the
   * element; 0 for others.  If the value of the element is n, the parameter has the shape u8[n,0] (told.h).  Such
   * parameters come after those of the inputs. */
  uint32_t told, element;
  /* Whether this result is a size: the number of elements of result `sized` that are defined along its dimension
   * `axis`.  A size is s64[] and at most the extent that the shape of result `sized` has there.  Sizes come after all
   * other results.  They are no outputs of the model, and only serve to tell the extents of outputs
   * (rt_program_extents). */
  bool is_size;
  uint32_t sized;
  uint8_t axis;
  /* For a result that is the next value of a parameter of the same shape: the number of that parameter plus 1; 0 for
   * others.  The same memory may be passed for both.  If in_place is set, the result's memory contains the parameter's
   * contents before the first thunk runs, and the program writes only the elements that change. */
  uint32_t carried;
  bool in_place;
  /* Whether the array of a carried result has room to grow: only its first `length` elements along `axis` are
   * defined. */
  bool has_room;
  rt_size length;
} rt_io;

typedef struct rt_program {
  const char *target; /* the name of the rt_target that runs the program */
  /* the processor for which the code was compiled, as the target writes it; checked when the program is loaded */
  const char *cpu;
  uint32_t n_params, n_results, n_constants, n_code, n_nodes;
  rt_io *params, *results;
  rt_span *constants; /* aligned to 64 bytes, but for those that all thunks read at any address */
  /* Names of the constants, by which the programs of a session share them (weight_pool.h).  The name of a constant that
   * is not shared is empty.  The array may be NULL. */
  rt_span *names;
  rt_span *code;       /* object files; for GPUs also PTX, or bundles (code_bundle.h) */
  rt_span *code_names; /* names of the code, which identify its contents; may be NULL */
  rt_node *nodes;      /* the nodes of the model from which thunks were compiled, each once */
  uint64_t arena_bytes;
  /* If there are sizes, this is a program for many sizes: it is bound before it runs, and its arena consists of slots,
   * so that arena_bytes is 0. */
  uint32_t n_sizes, n_guards, n_slots, n_definitions;
  rt_size_node *sizes;
  rt_guard *guards;
  rt_definition *definitions; /* only for messages, since the shapes of the parameters contain them already */
  rt_slot *slots;
  rt_sequence body;
} rt_program;

/* Writes the thunk's label, such as "a: Conv + b: Relu (output fusion)", and cuts it if it is longer than
 * RT_LABEL_BYTES.  Returns the length of the first part of the label, which names the nodes. */
enum { RT_LABEL_BYTES = 2048 };
size_t rt_thunk_write_label(const rt_program *p, const rt_thunk *t, char text[RT_LABEL_BYTES]);
const char *rt_thunk_label(arena *a, const rt_program *p, const rt_thunk *t);

rt_span rt_program_code_name(const rt_program *p, uint32_t k);
/* rt_program_name returns the name of constant k, which may be empty.  rt_program_find returns the index of the
 * constant with this name and size, or n_constants if there is none. */
rt_span rt_program_name(const rt_program *p, uint32_t k);
uint32_t rt_program_find(const rt_program *p, rt_span name, uint64_t size);

/* Returns the number of results that are not sizes (rt_io.is_size). */
uint32_t rt_program_outputs(const rt_program *p);
/* After a run: sets `extents` to the dimensions of the defined part of result k, which the sizes among the results
 * tell.  `results` has the addresses of all results.  Returns false if result k has no sizes, so that the whole of it
 * is defined. */
bool rt_program_extents(const rt_program *p, uint32_t k, void *const *results, int64_t extents[SHAPE_MAX_RANK]);

/* --- config bytes: little-endian, bounded when read --- */

typedef struct rt_writer {
  arena *arena;
  uint8_t *bytes;
  uint32_t n, cap;
} rt_writer;

void rt_put_i64(rt_writer *w, int64_t v);
void rt_put_f64(rt_writer *w, double v);
void rt_put_i64s(rt_writer *w, uint32_t n, const int64_t *v); /* writes n first */
void rt_put_text(rt_writer *w, const char *text);             /* NULL is read as "" */
void rt_put_bytes(rt_writer *w, const void *data, size_t n);  /* writes n first */
rt_span rt_written(const rt_writer *w);

/* Reads config bytes.  After a read beyond their end, or of a value that is damaged, `bad` is set.  Then all later
 * reads return 0 or "" (rt_get_in returns `low`), and rt_reader_end fails. */
typedef struct rt_reader {
  const uint8_t *at, *end;
  bool bad;
} rt_reader;

rt_reader rt_reader_make(rt_span s);
int64_t rt_get_i64(rt_reader *r);
/* Reads an integer.  If it is not within [low, high], this returns `low`, and all later reads fail. */
int64_t rt_get_in(rt_reader *r, int64_t low, int64_t high);
double rt_get_f64(rt_reader *r);
/* Returns a list of *n integers on the arena. */
const int64_t *rt_get_i64s(rt_reader *r, arena *a, uint32_t *n);
const char *rt_get_text(rt_reader *r); /* borrowed from the span, NUL-terminated */
rt_span rt_get_bytes(rt_reader *r);    /* borrowed */
/* Returns INVALID_FILE if a read failed or if bytes are left that were not read.  The message begins with `what`. */
STATUS_MUST_USE status rt_reader_end(const rt_reader *r, const char *what);

/* These are for buffers whose sizes are numbers.  rt_buffer_elements returns the number of elements, rt_buffer_bytes
 * the number of bytes from the first to the last element, which is 0 for an empty array.  Numbers that do not fit,
 * which a damaged file may have, become INT64_MAX. */
int64_t rt_buffer_elements(const rt_buffer *b);
int64_t rt_buffer_bytes(const rt_buffer *b);
/* Returns true if the buffer is row-major without gaps. */
bool rt_buffer_is_dense(const rt_buffer *b);

#endif
