/* lower.h - makes a program from an optimised HLO module; shared by all backends.  It schedules the module, assigns
 * buffers to the operands and results of each instruction, lowers control flow, and calls the backend for everything
 * else. */
#ifndef LOWER_LOWER_H
#define LOWER_LOWER_H

#include "hlo/ir/ir.h"
#include "hlo/analysis/overlap.h"
#include "runtime/program/target.h"

typedef struct lower_context lower_context;
struct size_table; /* lower/sizes.h */

/* The time in nanoseconds that it takes to start a parallel loop on other threads and, at the end of the loop, to wait
 * for these threads. */
enum { LOWER_FORK_NANOSECONDS = 700 };

/* The estimated nanoseconds that an instruction takes on one thread (serial), and on all threads if nothing else runs
 * (alone).  A negative `serial` means that the instruction must not run at the same time as others. */
typedef struct lower_time {
  double serial, alone;
} lower_time;

typedef struct lower_backend {
  const char *target;
  /* Whether the functions below take instructions with symbolic dimensions, and the kinds of the backend's thunks have
   * rt_thunk_kind.bind.  Otherwise a module with such dimensions is refused. */
  bool takes_symbols;
  /* Appends the thunks that compute `i`.  It is called for all instructions except parameters, constants, views, while,
   * conditional, check and run-seed. */
  status (*emit)(lower_context *c, const hlo_instr *i);
  /* Returns true if result `result` may be in the same buffer as operand `operand`, provided that no other operand is
   * in that buffer.  NULL means that no result may share a buffer with an operand. */
  bool (*may_share)(void *data, const hlo_instr *i, uint32_t operand, uint32_t result);
  /* Returns the order in which the thunks of `i` read and write, with which the answers of may_share are compared.
   * NULL means HLO_READS_WHILE_WRITING. */
  hlo_access (*access)(void *data, const hlo_instr *i);
  /* Returns true if the thunks of `i` read operands that are constants at any address, so that a weight is not copied
   * only because of its place in the model's file.  NULL means that constants must be aligned. */
  bool (*reads_any_address)(void *data, const hlo_instr *i);
  /* Returns true if the result is the operand's buffer with another shape (reshape, bitcast), so that no thunk is
   * needed.  NULL means that no instruction is such a view. */
  bool (*is_view)(const hlo_instr *i);
  /* Returns the number of bytes of scratch memory that `i` needs while it runs, which may be symbolic.  The scratch
   * memory is the thunk's buffer after the results.  NULL means that no instruction needs scratch memory. */
  dim (*scratch)(void *data, const hlo_instr *i);
  /* Returns the estimated time of `i`, which is not control flow.  If the member is NULL, all instructions run one
   * after the other. */
  lower_time (*time)(void *data, const hlo_instr *i);
  uint32_t threads; /* the number of threads that a run will use */
  /* Receives work that must be done, on any thread, before the program is used.  If the member is NULL, such work is
   * done at once. */
  void (*later)(void *data, double nanoseconds, status (*run)(void *run_data), void *run_data);
  /* as in rt_compile_options: no result may share an operand's buffer, and may_share is not called */
  bool out_of_place;
  rt_origins *origins; /* as in rt_compile_options */
  /* whether to fill rt_report.buffers, and to run the long check of the buffers (hlo_check_buffers) */
  bool keep_text;
  /* The pool in which large constants are registered (weight_pool.h); NULL means that the program owns them. */
  const struct rt_sharing *sharing;
  void *data;
} lower_backend;

/* Schedules the module, assigns buffers and makes the program on `a`.  Sets those numbers of the report that concern
 * the arena (rt_report.arena_bytes and others). *sizes becomes the table of the program's sizes, to which the caller
 * may add further ones; the caller then calls size_table_finish. `sizes` may be NULL if no further sizes are needed. */
STATUS_MUST_USE status lower_program(hlo_module *m, const lower_backend *b, arena *a, struct size_table *sizes,
                                     rt_program **out, rt_report *report);

/* --- functions for lower_backend.emit --- */

/* Return lower_backend.data, and the arena on which the program is made. */
void *lower_data(const lower_context *c);
arena *lower_arena(const lower_context *c);
/* Appends a thunk to the current sequence.  Its buffers are those of i's operands, then those of its results, then the
 * scratch memory. */
rt_thunk *lower_thunk(lower_context *c, const char *kind, const hlo_instr *i);
/* Appends a thunk as lower_thunk does, but with buffer b in place of operand k.  If that operand is a constant that no
 * other thunk reads, the program does not contain it. */
rt_thunk *lower_thunk_replacing(lower_context *c, const char *kind, const hlo_instr *i, uint32_t k, rt_buffer b);
/* Appends a thunk without buffers; lower_add_buffer adds them. */
rt_thunk *lower_bare_thunk(lower_context *c, const char *kind, const hlo_instr *i);
void lower_add_buffer(lower_context *c, rt_thunk *t, rt_buffer b);
/* Appends some words to the thunk's note for profiles, such as the algorithm and why it was chosen.  May be called more
 * than once. */
void lower_note(lower_context *c, rt_thunk *t, const char *format, ...) STATUS_PRINTF(3, 4);
/* Returns the buffer that holds v. */
rt_buffer lower_buffer(const lower_context *c, hlo_value v);
/* Returns a dimension as a size of the program.  `d` may be a signed number (base/dim/dim.h). */
rt_size lower_size(lower_context *c, dim d);
/* Returns the sizes of the symbols that dimensions of inputs determine, each once, and sets *n to their number. */
const rt_size *lower_symbols(lower_context *c, uint32_t *n);
/* Returns a list of n sizes. */
const rt_size *lower_sizes(lower_context *c, uint32_t n, const dim *dims);
/* Sets *out to the scratch memory of `i`.  Returns false if it has none. */
bool lower_scratch(const lower_context *c, const hlo_instr *i, rt_buffer *out);
/* Adds a constant that the backend made, such as packed weights, to the program and returns its index.  The program may
 * refer to `data` without copying it. */
uint32_t lower_constant(lower_context *c, const void *data, uint64_t bytes);
/* Returns a dense buffer over constant k. */
rt_buffer lower_constant_buffer(lower_context *c, uint32_t k, const shape *s);
/* Returns a buffer of n counters of type s32, which are 0 when a thunk begins and which it must set to 0 again
 * (RT_COUNTERS). */
rt_buffer lower_counters_buffer(lower_context *c, dim n);

#endif
