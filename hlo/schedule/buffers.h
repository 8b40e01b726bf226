/* buffers.h - buffer assignment: decides at compile time where every value of a scheduled module is kept: in a slice
 * of the arena, in a constant, a parameter or a result. */
#ifndef HLO_SCHEDULE_BUFFERS_H
#define HLO_SCHEDULE_BUFFERS_H

#include "hlo/ir/ir.h"
#include "hlo/analysis/overlap.h"

typedef enum hlo_space { HLO_IN_ARENA, HLO_IN_CONSTANT, HLO_IN_PARAM, HLO_IN_RESULT } hlo_space;

typedef struct hlo_buffer {
  hlo_space space;
  uint32_t index;  /* the number of the constant (hlo_constant_at), parameter or result */
  uint64_t offset; /* in bytes; a multiple of 64 in the arena, 0 in a slot */
  dim bytes;
} hlo_buffer;

/* If a module has symbolic dimensions, its arena consists of numbered slots without offsets; the offsets are decided
 * when the program is bound to sizes.  The index of a buffer in such an arena is the number of its slot.  A slot is
 * live from time `first` to time `last`, both included. */
typedef struct hlo_slot {
  dim bytes;
  uint32_t first, last;
} hlo_slot;

typedef struct hlo_buffer_rules {
  /* Returns true if result number `result` of `i` may overwrite operand number `operand`.  If several operands share
   * memory, it is asked for each of them.  NULL means never. */
  bool (*may_share)(void *data, const hlo_instr *i, uint32_t operand, uint32_t result);
  /* Returns how the implementation of `i` reads and writes, against which the answers of may_share are checked.  NULL
   * means HLO_READS_WHILE_WRITING. */
  hlo_access (*access)(void *data, const hlo_instr *i);
  /* Returns true if the result of i is a view of operand 0, which has the operand's memory; NULL means that there are
   * no views. */
  bool (*is_view)(const hlo_instr *i);
  /* Returns the bytes of scratch memory, which may be symbolic; NULL means that there is none. */
  dim (*scratch)(void *data, const hlo_instr *i);
  void *data;
} hlo_buffer_rules;

typedef struct hlo_buffers hlo_buffers;

/* Returns true if x and y begin at the same byte, so that a value in x need not be copied to be in y. */
static inline bool hlo_same_slice(hlo_buffer x, hlo_buffer y) {
  return x.space == y.space && x.index == y.index && x.offset == y.offset;
}

/* Returns true if x and y have a byte in common.  Buffers of symbolic size begin at offset 0 of what they are in. */
static inline bool hlo_slices_overlap(hlo_buffer x, hlo_buffer y) {
  return x.bytes && y.bytes && x.space == y.space && x.index == y.index &&
         (y.bytes < 0 || x.offset < y.offset + (uint64_t)y.bytes) &&
         (x.bytes < 0 || y.offset < x.offset + (uint64_t)x.bytes);
}

/* Assigns a buffer to every value of the module.  Bodies of while and branches of conditional share the arena
 * with what is live around them.  A value that a while carries keeps one slice as initial value, parameter,
 * root and result if lifetimes allow it.  Where they do not, the slices differ, and the value must be copied
 * from one to the other (by lower/). */
STATUS_MUST_USE status hlo_assign_buffers(arena *a, const hlo_module *m, const hlo_buffer_rules *rules,
                                          hlo_buffers **out);
/* Returns INTERNAL if a result of an instruction overlaps an operand that is still read while the result is written
 * (hlo/analysis/overlap.h), or another result; or if the instruction's scratch memory overlaps a result or an operand.
 * It takes linear time and runs in every compilation. */
STATUS_MUST_USE status hlo_check_overlaps(arena *a, const hlo_module *m, const hlo_buffer_rules *rules,
                                          const hlo_buffers *b);
/* Simulates a run of the module, with two iterations of each loop, and tracks which value each buffer holds.  Returns
 * INTERNAL if a value is overwritten before it is read, or if buffers of an instruction overlap that the rules keep
 * apart.  It takes time quadratic in the number of values, so it is for tests and for printing the table. */
STATUS_MUST_USE status hlo_check_buffers(arena *a, const hlo_module *m, const hlo_buffer_rules *rules,
                                         const hlo_buffers *b);
hlo_buffer hlo_slice_of(const hlo_buffers *b, hlo_value v);
/* Returns the scratch memory of i; its size is 0 if there is none. */
hlo_buffer hlo_scratch_of(const hlo_buffers *b, const hlo_instr *i);
/* Returns the slots of the arena of a module with symbolic dimensions; NULL for other modules. */
const hlo_slot *hlo_slots(const hlo_buffers *b, uint32_t *n);
uint64_t hlo_arena_bytes(const hlo_buffers *b);
/* Returns the largest number of bytes that are live at one time.  No assignment for this schedule can be smaller. */
uint64_t hlo_arena_lower_bound(const hlo_buffers *b);
uint32_t hlo_n_constants(const hlo_buffers *b);
const literal *hlo_constant_at(const hlo_buffers *b, uint32_t index);
/* Returns a table for people, on the arena: a line for each value with its slice, its lifetime, the operand that it
 * overwrites, and the nodes from which it comes; at the end the size of the arena and its lower bound. */
const char *hlo_buffers_report(arena *a, const hlo_module *m, const hlo_buffers *b);

#endif
