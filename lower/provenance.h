/* provenance.h - finds out from which nodes of the ONNX model a thunk comes. */
#ifndef LOWER_PROVENANCE_H
#define LOWER_PROVENANCE_H

#include "base/hash.h"
#include "hlo/ir/ir.h"
#include "runtime/program/program.h"

/* The nodes of a program, collected while the program is made. */
typedef struct provenance {
  arena *arena;
  rt_program *program;
  str_map numbers;  /* maps the text of a node to its index in the program + 1 */
  uint32_t *listed; /* for each node of the program: the number of the last thunk that lists the node */
  uint32_t n_listed, cap_nodes, cap_listed, n_thunks;
} provenance;

provenance provenance_make(arena *a, rt_program *p);
/* Sets rt_thunk.operation and the nodes of the thunk to those of `i`.  New nodes are added to the program. */
void provenance_tell(provenance *p, const hlo_instr *i, rt_thunk *t);

#endif
