/* lockstep.h - runs a program instruction by instruction beside the reference evaluator.
 *
 * After the thunks of an instruction its results are copied out of its buffers and compared with what the reference
 * evaluator computes from the values that the program itself computed before.  So each comparison is about one
 * instruction, and errors do not add up.  A difference comes from that instruction's kernel, from its buffers, or from
 * those of a value that it reads. */
#ifndef VERIFY_LOCKSTEP_H
#define VERIFY_LOCKSTEP_H

#include "runtime/exec/executable.h"
#include "verify/compare.h"

typedef struct verify_lockstep {
  /* Set by the caller. */
  const rt_origins *origins; /* from compiling */
  const hlo_module *module;  /* the module as it is after compiling */
  const literal *inputs;     /* the inputs of its entry */
  dtype reduced_precision;
  /* limits the values that are kept, which are about those that live at the same time; may be NULL */
  mem_budget *budget;
  /* Called for each instruction whose results differ, with the values of its operands (NULL for control flow), the
   * right results, and its last thunk and that thunk's program.  If it fails, the run ends with that failure. */
  status (*differs)(void *data, const hlo_instr *i, const literal *operands, const literal *want, const rt_program *p,
                    const rt_thunk *t, const verify_difference *d);
  /* Called for each instruction that computes something, with its results by the reference evaluator.  May be NULL. */
  status (*compared)(void *data, const hlo_instr *i, const literal *operands, const literal *want);
  /* Called now and then with the number of instructions of the entry that are done.  May be NULL. */
  void (*progress)(void *data, uint32_t done, uint32_t all);
  void *data;
  /* Set by the run. */
  uint32_t n_compared; /* instructions, counted each time that they ran */
  double seconds_target, seconds_reference;
} verify_lockstep;

/* The function for rt_run_options.drive; its data is a verify_lockstep. */
status verify_drive(void *lockstep, const rt_sequence *body, rt_run *r);

#endif
