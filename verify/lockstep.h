/* lockstep.h - a program runs beside the reference evaluator, instruction by instruction.
 *
 * After each instruction's thunks its results are copied from where they lie and compared with what the
 * reference makes of the values that the program itself computed before.  So each comparison is about one
 * instruction, and nothing adds up: what differs is that instruction's kernel, its buffers, or those of a
 * value that it reads. */
#ifndef VERIFY_LOCKSTEP_H
#define VERIFY_LOCKSTEP_H

#include "runtime/exec/executable.h"
#include "verify/compare.h"

typedef struct verify_lockstep {
  /* Given. */
  const rt_origins *origins; /* from compiling */
  const hlo_module *module;  /* as compiling left it */
  const literal *inputs;     /* of its entry */
  dtype reduced_precision;
  mem_budget *budget; /* of the values that are kept: about those that live at the same time.  May be NULL */
  /* Called for each instruction that differs, with its operands' values (NULL for control flow), what its
   * results should be, and its last thunk with its program.  A failure that it returns ends the run. */
  status (*differs)(void *data, const hlo_instr *i, const literal *operands, const literal *want, const rt_program *p,
                    const rt_thunk *t, const verify_difference *d);
  /* Called for each instruction that computes something, with what the reference makes of it.  May be NULL.
   */
  status (*compared)(void *data, const hlo_instr *i, const literal *operands, const literal *want);
  /* Called now and then with the instructions of the entry that are done.  May be NULL. */
  void (*progress)(void *data, uint32_t done, uint32_t all);
  void *data;
  /* Filled. */
  uint32_t n_compared; /* instructions, each time that they ran */
  double seconds_target, seconds_reference;
} verify_lockstep;

/* For rt_run_options.drive, with a verify_lockstep as its data. */
status verify_drive(void *lockstep, const rt_sequence *body, rt_run *r);

#endif
