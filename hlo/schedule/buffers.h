/* buffers.h - buffer assignment: every value of a scheduled module gets a slice of the arena, a constant, a parameter
 * or a result, decided before anything runs. */
#ifndef HLO_SCHEDULE_BUFFERS_H
#define HLO_SCHEDULE_BUFFERS_H

#include "hlo/ir/ir.h"
#include "hlo/analysis/overlap.h"

typedef enum hlo_space { HLO_IN_ARENA, HLO_IN_CONSTANT, HLO_IN_PARAM, HLO_IN_RESULT } hlo_space;

typedef struct hlo_buffer {
  hlo_space space;
  uint32_t index;  /* constant (in order of first use), parameter or result number */
  uint64_t offset; /* bytes, a multiple of 64 in the arena */
  uint64_t bytes;
} hlo_buffer;

typedef struct hlo_buffer_rules {
  /* Returns true if result `result` may be written over operand `operand`, if no other operand lies there.  NULL means
   * never. */
  bool (*may_share)(void *data, const hlo_instr *i, uint32_t operand, uint32_t result);
  /* How the implementation of `i` reads and writes: what the checks hold may_share's answers against.
   * NULL: HLO_READS_WHILE_WRITING. */
  hlo_access (*access)(void *data, const hlo_instr *i);
  bool (*is_view)(const hlo_instr *i);                 /* NULL means never */
  uint64_t (*scratch)(void *data, const hlo_instr *i); /* NULL if there is none */
  void *data;
} hlo_buffer_rules;

typedef struct hlo_buffers hlo_buffers;

/* Do they begin at the same byte?  Then a value of one is there for the other without a copy. */
static inline bool hlo_same_slice(hlo_buffer x, hlo_buffer y) {
  return x.space == y.space && x.index == y.index && x.offset == y.offset;
}

/* While and conditional bodies share the arena with what is live around them; a while's carried values keep one slice
 * through init, parameter, root and result where lifetimes allow (hlo_carry_needs_copy tells where they do not). */
STATUS_MUST_USE status hlo_assign_buffers(arena *a, const hlo_module *m, const hlo_buffer_rules *rules,
                                          hlo_buffers **out);
/* INTERNAL where a result lies over an operand that is still read while the result is written (hlo/analysis/overlap.h),
 * or over another result or scratch memory of its instruction.  Linear: for every compilation. */
STATUS_MUST_USE status hlo_check_overlaps(arena *a, const hlo_module *m, const hlo_buffer_rules *rules,
                                          const hlo_buffers *b);
/* Follows the module through its buffers, loops twice: INTERNAL where a value is overwritten before it is read, or
 * buffers of an instruction overlap that the rules keep apart.  Time grows with the square of the values: for tests,
 * and for who looks at the table. */
STATUS_MUST_USE status hlo_check_buffers(arena *a, const hlo_module *m, const hlo_buffer_rules *rules,
                                         const hlo_buffers *b);
hlo_buffer hlo_slice_of(const hlo_buffers *b, hlo_value v);
/* bytes 0: none. */
hlo_buffer hlo_scratch_of(const hlo_buffers *b, const hlo_instr *i);
uint64_t hlo_arena_bytes(const hlo_buffers *b);
/* The most bytes that are live at once: no assignment of this schedule can be smaller. */
uint64_t hlo_arena_lower_bound(const hlo_buffers *b);
uint32_t hlo_n_constants(const hlo_buffers *b);
const literal *hlo_constant_at(const hlo_buffers *b, uint32_t index);
/* A table for people: one line a value with its slice, lifetime, what it is written over and the nodes that it comes
 * from; then peak against lower bound.  On the arena. */
const char *hlo_buffers_report(arena *a, const hlo_module *m, const hlo_buffers *b);

#endif
