/* program.h - a compiled computation as plain data: what a compiler hands over, what a .oxla file holds, what an
 * executable is made from.  Thunks over buffer slices, constants, and machine code; no pointer into the compiler.
 *
 * A program borrows its bytes (constants, code, configs) from the arena or mapped file it was made on. */
#ifndef RUNTIME_PROGRAM_PROGRAM_H
#define RUNTIME_PROGRAM_PROGRAM_H

#include "base/arena.h"
#include "base/tensor/shape.h"

/* A size, offset or stride: not negative, the number itself; negative, entry ~n of the run's table of sizes.  Today's
 * compilers write constants only. */
typedef int64_t rt_size;

typedef enum rt_space {
  RT_ARENA,    /* the run's scratch memory */
  RT_CONSTANT, /* constant `index` of the program */
  RT_PARAM,    /* the caller's input `index` */
  RT_RESULT,   /* the caller's output `index`, written in place */
  RT_HANDLE,   /* slot `index` of the run's table of host values */
  RT_SPACE_COUNT
} rt_space;

/* A slice of a space: an array whose element (i, j, ..) stands at offset + (i*strides[0] + j*strides[1] + ..) *
 * element size.  Strides are in elements, not negative, the innermost 1 unless the thunk kind takes any. */
typedef struct rt_buffer {
  uint8_t space, type, rank; /* rt_space, dtype */
  bool kept;                 /* of an output: what it holds before is read, too */
  uint32_t index;
  rt_size offset; /* bytes */
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

/* A node of the model that thunks come from. */
typedef struct rt_node {
  const char *text;          /* "a: Conv" */
  const char *operator_name; /* "Conv" */
} rt_node;

/* One step of a program: a kernel, a library call, control flow. */
struct rt_thunk {
  const char *kind; /* name of its rt_thunk_kind */
  /* Where it comes from, for messages and profiles: the HLO operation, or the kind of fusion, and the nodes, by their
   * numbers in the program. */
  const char *operation;
  const uint32_t *nodes;
  uint32_t n_nodes;
  uint32_t contraction; /* which of the nodes contracts, so that the others add little to it; n_nodes: none */
  uint32_t n_inputs, n_buffers;
  rt_buffer *buffers; /* inputs, then outputs and scratch, as the kind says */
  uint32_t n_bodies;
  uint32_t origin;     /* number of its rt_origin, from 1 on; 0 means not known. A file does not have it */
  rt_sequence *bodies; /* of control flow */
  rt_span config;      /* what else the kind needs: written by the compiler with rt_writer, read by load */
  /* For profiles: what one run computes and moves (0: not known), and what the thunk is made of and why. */
  int64_t operations, bytes;
  const char *note;
  /* Filled by rt_executable_create: */
  const struct rt_thunk_kind *ops;
  void *state;
};

typedef struct rt_io {
  const char *name;
  shape shape; /* static */
  /* Not NULL: the program is for an input that holds exactly this (shape_bytes of it), since it decided sizes. */
  const void *value;
  /* A result that tells how many elements of result `sized` along `axis` mean something: s64[], at most the dimension
   * of its shape.  Such results stand behind all others and are the session's own business. */
  bool is_size;
  uint32_t sized;
  uint8_t axis;
} rt_io;

typedef struct rt_program {
  const char *target; /* name of the rt_target that runs it */
  const char *cpu;    /* what the code was compiled for, in the target's words; checked when loaded */
  uint32_t n_params, n_results, n_constants, n_code, n_nodes;
  rt_io *params, *results;
  rt_span *constants; /* 64-byte aligned */
  rt_span *names; /* of constants: how a session's programs share them (weight_pool.h); no bytes: it has none.  May be
                     NULL */
  rt_span *code;  /* object files */
  rt_span *code_names; /* of code, likewise: what is in it.  May be NULL */
  rt_node *nodes;      /* that thunks come from, each once */
  uint64_t arena_bytes;
  rt_sequence body;
} rt_program;

/* Writes "a: Conv + b: Relu (output fusion)", cut if it is very long, and returns how much of it names nodes. */
enum { RT_LABEL_BYTES = 2048 };
size_t rt_thunk_write_label(const rt_program *p, const rt_thunk *t, char text[RT_LABEL_BYTES]);
const char *rt_thunk_label(arena *a, const rt_program *p, const rt_thunk *t);

rt_span rt_program_code_name(const rt_program *p, uint32_t k);
/* The name of constant k, and the constant of such a name and size (n_constants: there is none). */
rt_span rt_program_name(const rt_program *p, uint32_t k);
uint32_t rt_program_find(const rt_program *p, rt_span name, uint64_t size);

/* Results that are no sizes of others. */
uint32_t rt_program_outputs(const rt_program *p);
/* What of result k means something once a run has filled `results` (all results' addresses): its dimensions, cut to the
 * sizes that came with it.  Returns false if all of it does. */
bool rt_program_extents(const rt_program *p, uint32_t k, void *const *results, int64_t extents[SHAPE_MAX_RANK]);

/* --- config bytes: little-endian, bounded when read --- */

typedef struct rt_writer {
  arena *arena;
  uint8_t *bytes;
  uint32_t n, cap;
} rt_writer;

void rt_put_i64(rt_writer *w, int64_t v);
void rt_put_f64(rt_writer *w, double v);
void rt_put_i64s(rt_writer *w, uint32_t n, const int64_t *v); /* count first */
void rt_put_text(rt_writer *w, const char *text);             /* NULL reads back as "" */
void rt_put_bytes(rt_writer *w, const void *data, size_t n);  /* size first */
rt_span rt_written(const rt_writer *w);

/* After a read past the end all reads give 0 or "", and rt_reader_end fails. */
typedef struct rt_reader {
  const uint8_t *at, *end;
  bool bad;
} rt_reader;

rt_reader rt_reader_make(rt_span s);
int64_t rt_get_i64(rt_reader *r);
/* An integer within [low, high], or bad. */
int64_t rt_get_in(rt_reader *r, int64_t low, int64_t high);
double rt_get_f64(rt_reader *r);
/* A list on the arena. */
const int64_t *rt_get_i64s(rt_reader *r, arena *a, uint32_t *n);
const char *rt_get_text(rt_reader *r); /* borrowed from the span, NUL-terminated */
rt_span rt_get_bytes(rt_reader *r);    /* borrowed */
/* INVALID_FILE if a read failed or bytes are left. */
STATUS_MUST_USE status rt_reader_end(const rt_reader *r, const char *what);

/* Number of elements, bytes from the first to the last element (0 for an empty array), of constant extents. */
int64_t rt_buffer_elements(const rt_buffer *b);
int64_t rt_buffer_bytes(const rt_buffer *b);
/* Row-major without holes. */
bool rt_buffer_is_dense(const rt_buffer *b);

#endif
