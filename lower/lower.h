/* lower.h - from scheduled HLO to a program: what all backends share.  Walks the schedule, gives every instruction's
 * operands and results their buffers, lowers control flow, and asks the backend for everything else. */
#ifndef LOWER_LOWER_H
#define LOWER_LOWER_H

#include "hlo/ir/ir.h"
#include "hlo/analysis/overlap.h"
#include "runtime/program/target.h"

typedef struct lower_context lower_context;

/* What it takes to share out work among threads, until others have begun and after they are done. */
enum { LOWER_FORK_NANOSECONDS = 700 };

/* Nanoseconds of one thread, and of all where nothing else runs.  Negative: it must run by itself. */
typedef struct lower_time {
  double serial, alone;
} lower_time;

typedef struct lower_backend {
  const char *target;
  /* Appends the thunks that compute `i`; every op but parameter, constant, while and conditional comes here. */
  status (*emit)(lower_context *c, const hlo_instr *i);
  /* Returns true if result `result` may be written over operand `operand` (their buffers are then the same one), if no
   * other operand lies there.  NULL means never. */
  bool (*may_share)(void *data, const hlo_instr *i, uint32_t operand, uint32_t result);
  /* How the thunks of `i` read and write, which is what may_share's answers are checked by.  NULL means
   * HLO_READS_WHILE_WRITING. */
  hlo_access (*access)(void *data, const hlo_instr *i);
  /* Returns true if the result is the operand's buffer seen in another shape: reshape, bitcast; no thunk is made. */
  bool (*is_view)(const hlo_instr *i);
  /* Bytes of scratch memory that `i` wants while it runs; given as its last buffer.  NULL if there is none. */
  uint64_t (*scratch)(void *data, const hlo_instr *i);
  /* About how long `i` takes, which is no control flow.  NULL means everything runs one after the other. */
  lower_time (*time)(void *data, const hlo_instr *i);
  uint32_t threads; /* that a run will use */
  /* Takes work that must be done before the program is used, on any thread.  NULL if it is done at once. */
  void (*later)(void *data, double nanoseconds, status (*run)(void *run_data), void *run_data);
  bool out_of_place;                /* rt_compile_options.out_of_place: may_share is not asked */
  rt_origins *origins;              /* rt_compile_options.origins */
  bool keep_text;                   /* fill report->buffers, and check that what shares bytes may */
  const struct rt_sharing *sharing; /* where large constants go (weight_pool.h); NULL means the program owns them */
  void *data;
} lower_backend;

/* Schedules the module, assigns buffers and makes the program on `a`.  Fills the arena numbers of the report. */
STATUS_MUST_USE status lower_program(hlo_module *m, const lower_backend *b, arena *a, rt_program **out,
                                     rt_report *report);

/* --- for emit --- */

void *lower_data(const lower_context *c);
arena *lower_arena(const lower_context *c);
/* A new thunk at the end of the current sequence, its buffers those of i's operands, then of its results, then the
 * scratch. */
rt_thunk *lower_thunk(lower_context *c, const char *kind, const hlo_instr *i);
/* The same with another buffer in the place of operand k, which the program then need not have. */
rt_thunk *lower_thunk_replacing(lower_context *c, const char *kind, const hlo_instr *i, uint32_t k, rt_buffer b);
/* One without buffers; add them with lower_add_buffer. */
rt_thunk *lower_bare_thunk(lower_context *c, const char *kind, const hlo_instr *i);
void lower_add_buffer(lower_context *c, rt_thunk *t, rt_buffer b);
/* What a profile says of the thunk: which way it is computed, and why.  A few words; may be called more than once. */
void lower_note(lower_context *c, rt_thunk *t, const char *format, ...) STATUS_PRINTF(3, 4);
rt_buffer lower_buffer(const lower_context *c, hlo_value v);
/* The scratch memory of `i`; false: it wants none. */
bool lower_scratch(const lower_context *c, const hlo_instr *i, rt_buffer *out);
/* A constant of the backend's own (packed weights); gives its number. */
uint32_t lower_constant(lower_context *c, const void *data, uint64_t bytes);
/* A dense buffer over constant k. */
rt_buffer lower_constant_buffer(lower_context *c, uint32_t k, const shape *s);
/* Object code for the program; gives its number. */
uint32_t lower_code(lower_context *c, rt_span object);

#endif
