/* provenance.h - which nodes of the model a thunk comes from. */
#ifndef LOWER_PROVENANCE_H
#define LOWER_PROVENANCE_H

#include "base/hash.h"
#include "hlo/ir/ir.h"
#include "runtime/program/program.h"

/* The nodes of a program while it is made. */
typedef struct provenance {
  arena *arena;
  rt_program *program;
  str_map numbers;  /* the text of a node: its number in the program + 1 */
  uint32_t *listed; /* by a node's number: the number of the last thunk that lists the node */
  uint32_t n_listed, cap_nodes, cap_listed, n_thunks;
} provenance;

provenance provenance_make(arena *a, rt_program *p);
/* Sets the thunk's operation and nodes to those of `i`; new nodes are added to the program. */
void provenance_tell(provenance *p, const hlo_instr *i, rt_thunk *t);

#endif
