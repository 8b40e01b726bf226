/* program.h - a compiled computation as plain data: what a compiler returns, a .oxla file holds, and an executable is
 * made from.  It consists of thunks over buffer slices, constants and machine code, and has no pointers into the
 * compiler.
 *
 * A program borrows its bytes (constants, code, configs) from the arena or mapped file on which it was made. */
#ifndef RUNTIME_PROGRAM_PROGRAM_H
#define RUNTIME_PROGRAM_PROGRAM_H

#include "base/arena.h"
#include "base/tensor/shape.h"

/* A size, offset or stride.  It is not negative. */
typedef int64_t rt_size;

typedef enum rt_space {
  RT_ARENA,    /* the run's scratch memory */
  RT_CONSTANT, /* constant `index` of the program */
  RT_PARAM,    /* the caller's input `index` */
  RT_RESULT,   /* the caller's output `index`, written in place */
  RT_SPACE_COUNT
} rt_space;

/* A slice of a space: an array whose element (i, j, ..) is at offset + (i*strides[0] + j*strides[1] + ..) * element
 * size.  Strides are counted in elements and not negative.  The innermost one is 1 unless the thunk kind takes any. */
typedef struct rt_buffer {
  uint8_t space, type, rank; /* an rt_space, a dtype */
  bool kept;                 /* for an output: whether the thunk also reads what it held before */
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

/* A node of the model from which thunks come. */
typedef struct rt_node {
  const char *text;          /* "a: Conv" */
  const char *operator_name; /* "Conv" */
} rt_node;

/* One step of a program: a kernel, a library call, control flow. */
struct rt_thunk {
  const char *kind; /* the name of its rt_thunk_kind */
  /* Where it comes from, for messages and profiles: the HLO operation or the kind of fusion, and the nodes, by their
   * numbers in the program. */
  const char *operation;
  const uint32_t *nodes;
  uint32_t n_nodes;
  uint32_t contraction; /* which of the nodes is a contraction, which takes most of the time; n_nodes if none is */
  uint32_t n_inputs, n_buffers;
  rt_buffer *buffers; /* inputs, then outputs and scratch memory, as the kind says */
  uint32_t n_bodies;
  uint32_t origin;     /* the number of its rt_origin, from 1 on; 0 if it is not known. It is not stored in files */
  rt_sequence *bodies; /* the bodies of control flow */
  /* Whatever else the kind needs: written by the compiler with rt_writer, read when the program is loaded. */
  rt_span config;
  /* For profiles: what one run computes and moves (0 if it is not known), and what the thunk is made of and why. */
  int64_t operations, bytes;
  const char *note;
  /* Set by rt_executable_create. */
  const struct rt_thunk_kind *ops;
  void *state;
};

typedef struct rt_io {
  const char *name;
  shape shape; /* a static shape */
  /* If not NULL, the program is for an input that holds exactly these shape_bytes bytes, since sizes depend on them. */
  const void *value;
  /* Whether this result is the size of another one: only so many elements of result `sized` along `axis` are defined.
   * It is s64[] and at most the extent in the shape.  Such results come after all others and are used by the session
   * only. */
  bool is_size;
  uint32_t sized;
  uint8_t axis;
} rt_io;

typedef struct rt_program {
  const char *target; /* the name of the rt_target that runs it */
  const char *cpu; /* the processor for which the code was compiled, in the target's words; checked when it is loaded */
  uint32_t n_params, n_results, n_constants, n_code, n_nodes;
  rt_io *params, *results;
  rt_span *constants; /* aligned to 64 bytes */
  /* Names of the constants, under which a session's programs share them (weight_pool.h); empty for a constant without
   * one.  May be NULL. */
  rt_span *names;
  rt_span *code;       /* object files */
  rt_span *code_names; /* names of the code, which identify its contents. May be NULL */
  rt_node *nodes;      /* the nodes from which thunks come, each once */
  uint64_t arena_bytes;
  rt_sequence body;
} rt_program;

/* Writes "a: Conv + b: Relu (output fusion)", cut if it is very long, and returns how much of it names nodes. */
enum { RT_LABEL_BYTES = 2048 };
size_t rt_thunk_write_label(const rt_program *p, const rt_thunk *t, char text[RT_LABEL_BYTES]);
const char *rt_thunk_label(arena *a, const rt_program *p, const rt_thunk *t);

rt_span rt_program_code_name(const rt_program *p, uint32_t k);
/* Return the name of constant k, and the constant of such a name and size, or n_constants if there is none. */
rt_span rt_program_name(const rt_program *p, uint32_t k);
uint32_t rt_program_find(const rt_program *p, rt_span name, uint64_t size);

/* Returns the number of results that are not sizes of others. */
uint32_t rt_program_outputs(const rt_program *p);
/* Sets extents to the dimensions of result k that are defined after a run has filled `results` (the addresses of all
 * results).  Returns false if all of it is. */
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
void rt_put_text(rt_writer *w, const char *text);             /* NULL reads back as "" */
void rt_put_bytes(rt_writer *w, const void *data, size_t n);  /* writes the size first */
rt_span rt_written(const rt_writer *w);

/* After a read past the end, all reads return 0 or "", and rt_reader_end fails. */
typedef struct rt_reader {
  const uint8_t *at, *end;
  bool bad;
} rt_reader;

rt_reader rt_reader_make(rt_span s);
int64_t rt_get_i64(rt_reader *r);
/* Returns an integer within [low, high]; any other is an error of the reader. */
int64_t rt_get_in(rt_reader *r, int64_t low, int64_t high);
double rt_get_f64(rt_reader *r);
/* Returns a list on the arena. */
const int64_t *rt_get_i64s(rt_reader *r, arena *a, uint32_t *n);
const char *rt_get_text(rt_reader *r); /* borrowed from the span, NUL-terminated */
rt_span rt_get_bytes(rt_reader *r);    /* borrowed */
/* Returns INVALID_FILE if a read failed or bytes are left. */
STATUS_MUST_USE status rt_reader_end(const rt_reader *r, const char *what);

/* Return the number of elements, and the bytes from the first to the last element (0 for an empty array).  Extents must
 * be constant. */
int64_t rt_buffer_elements(const rt_buffer *b);
int64_t rt_buffer_bytes(const rt_buffer *b);
/* Returns true if it is row-major without holes. */
bool rt_buffer_is_dense(const rt_buffer *b);

#endif
