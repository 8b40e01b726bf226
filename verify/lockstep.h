/* lockstep.h - runs a program instruction by instruction beside the reference evaluator.
 *
 * When the thunks of an instruction have run, its results are copied out of their buffers.  They are compared with what
 * the reference evaluator computes from the operands that the program itself computed.  So each comparison concerns one
 * instruction, and errors do not add up.  A difference comes from the kernel of that instruction, from its buffers, or
 * from the buffer of a value that it reads. */
#ifndef VERIFY_LOCKSTEP_H
#define VERIFY_LOCKSTEP_H

#include "runtime/exec/executable.h"
#include "verify/compare.h"

typedef struct verify_lockstep {
  /* Set by the caller. */
  const rt_origins *origins; /* what compiling has stored for rt_compile_options.origins */
  const hlo_module *module;  /* the module after all passes */
  const literal *inputs;     /* the inputs of the module's entry computation */
  dtype reduced_precision;
  /* counts the memory for copies of values, which is about that of all values that are live at the same time; may be
   * NULL */
  mem_budget *budget;
  /* Called for each instruction whose results differ, with the values of its operands (NULL for control flow), the
   * right results, its last thunk, the program of that thunk, and the difference.  If it fails, the run ends with that
   * failure. */
  status (*differs)(void *data, const hlo_instr *i, const literal *operands, const literal *want, const rt_program *p,
                    const rt_thunk *t, const verify_difference *d);
  /* Called for each instruction, except control flow, whose results were compared, with its operands and the results of
   * the reference evaluator.  May be NULL. */
  status (*compared)(void *data, const hlo_instr *i, const literal *operands, const literal *want);
  /* Called from time to time with the number of instructions of the entry computation that have run.  May be NULL. */
  void (*progress)(void *data, uint32_t done, uint32_t all);
  void *data;
  /* Set by the run. */
  uint32_t n_compared; /* the number of comparisons: an instruction in a loop counts each time that it runs, and control
                          flow does not count */
  double seconds_target, seconds_reference;
} verify_lockstep;

/* The function for rt_run_options.drive.  Its data is a verify_lockstep. */
status verify_drive(void *lockstep, const rt_sequence *body, rt_run *r);

#endif
